// The CPU's device memory: anonymous pages of the process.
#pragma once

#include "plimsoll/base/units.h"
#include "plimsoll/runtime/backend.h"

namespace plimsoll::cpu {

// Maps `size` bytes, zero at first, and touches every page, so that a machine that cannot back them
// says so now. Raises Exit::does_not_fit when the system refuses.
runtime::Memory map_pages(Bytes size);

}  // namespace plimsoll::cpu

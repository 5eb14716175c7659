// Whether the system gives what a run wants of it, asked before libraries that cannot say no.
#pragma once

#include "plimsoll/base/units.h"

namespace plimsoll {

// Starts and ends `count` - 1 threads beside this one. Raises Exit::does_not_fit, with how many
// there can be, where the thread library would end the process later (`ulimit -u`, `ulimit -v`).
void require_threads(int count);

// Reserves and gives back `memory` and 64 MiB beside it for the libraries, some of which crash
// without. Raises Exit::does_not_fit when the address space is too small (`ulimit -v`).
void require_address_space(Bytes memory);

}  // namespace plimsoll

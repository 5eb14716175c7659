// How fast this machine multiplies matrices: the yardstick for a run's FLOP/s.
#pragma once

#include "plimsoll/runtime/backend.h"

namespace plimsoll::train {

// FLOP/s of a product of the format, the best of several repetitions of a 1024 x 1024 x 1024
// product through the backend itself. Takes about half a second and 20 MiB.
double measured_matmul_rate(const runtime::Backend& backend, Format format);

}  // namespace plimsoll::train

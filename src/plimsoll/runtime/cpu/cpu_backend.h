// The CPU as a device: our kernels (kernels/), and the matrix products of matmul.h.
#pragma once

#include <memory>

#include "plimsoll/runtime/backend.h"

namespace plimsoll::cpu {

// `threads`: 0 means one a core. Sets OpenMP's number of threads for the process.
std::unique_ptr<runtime::Backend> make_cpu_backend(int threads);

}  // namespace plimsoll::cpu

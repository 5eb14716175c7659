// The CPU as a device: our kernels (kernels/), and the matrix products of matmul.h.
#pragma once

#include <memory>
#include <optional>

#include "plimsoll/runtime/backend.h"
#include "plimsoll/runtime/cpu/kernels/gemm_bf16.h"

namespace plimsoll::cpu {

// `threads`: 0 means one a core. Sets the process's thread_count() (threads.h). `bf16`: the
// kernel of bf16 products, one of bf16_kernels(); nothing: the fastest.
std::unique_ptr<runtime::Backend> make_cpu_backend(int threads,
                                                   std::optional<Bf16Kernel> bf16 = {});

}  // namespace plimsoll::cpu

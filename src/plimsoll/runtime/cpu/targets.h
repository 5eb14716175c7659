// Names of what runs on this CPU, for logs and run directories.
#pragma once

#include <string>

#include "plimsoll/numerics/format.h"

namespace plimsoll::cpu {

// "AVX2", "AVX3", ... : the instruction set our kernels were dispatched to.
std::string simd_target();

// "own GEMM (AVX2), bf16 values in f32 arithmetic"
std::string gemm_description(Format format);

}  // namespace plimsoll::cpu

// Names of what runs on this CPU, for logs and run directories.
#pragma once

#include <string>

namespace plimsoll::cpu {

// "AVX2", "AVX3", ... : the instruction set our kernels were dispatched to.
std::string simd_target();

}  // namespace plimsoll::cpu

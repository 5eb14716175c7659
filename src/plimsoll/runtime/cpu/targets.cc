#include "plimsoll/runtime/cpu/targets.h"

#include <fmt/format.h>
#include <hwy/targets.h>

namespace plimsoll::cpu {

std::string simd_target() {
  // Highway orders targets from best to worst, from the lowest bit up.
  const int64_t supported = hwy::SupportedTargets() & ~(HWY_DISABLED_TARGETS);
  return hwy::TargetName(supported & -supported);
}

std::string gemm_description(Format format) {
  return fmt::format("own GEMM ({}){}", simd_target(),
                     format == Format::bf16 ? ", bf16 values in f32 arithmetic" : "");
}

}  // namespace plimsoll::cpu

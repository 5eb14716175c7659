#include "plimsoll/runtime/cpu/targets.h"

#include <hwy/targets.h>

namespace plimsoll::cpu {

std::string simd_target() {
  // Highway orders targets from best to worst, from the lowest bit up.
  const int64_t supported = hwy::SupportedTargets() & ~(HWY_DISABLED_TARGETS);
  return hwy::TargetName(supported & -supported);
}

}  // namespace plimsoll::cpu

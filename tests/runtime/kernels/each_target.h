// One test on every instruction set that kernels were compiled for and this CPU has.
#pragma once

#include <hwy/targets.h>

namespace plimsoll::cpu {

// Runs `check` with each Highway target that this CPU has in turn.
template <class Check>
void for_each_target(const Check& check) {
  for (int64_t targets = hwy::SupportedTargets(); targets != 0; targets &= targets - 1) {
    const int64_t target = targets & -targets;
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    check(hwy::TargetName(target));
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

}  // namespace plimsoll::cpu

#include "plimsoll/runtime/cpu/kernels/scalars.h"

#include <algorithm>

namespace plimsoll::cpu {

void sum_losses(const View& losses, const View& targets, step::LossTotal& total) {
  double sum = 0;  // of this micro-step first, so that the order of additions is that of the tokens
  for (const float loss : losses.span<float>()) sum += loss;
  total.sum += sum;
  total.targets += std::ranges::count_if(targets.span<int32_t>(), [](int32_t t) { return t >= 0; });
}

void step_guard(std::span<const QuantizerStatistics> statistics, QuantizerControl* control,
                int64_t growth, int32_t& skip) {
  const bool overflowed = std::ranges::any_of(
      statistics, [](const QuantizerStatistics& of) { return of.not_finite > 0; });
  skip = overflowed;
  if (!control) return;
  if (overflowed) {
    control->loss_scale_log2 = std::max(control->loss_scale_log2 - 1, 0);
    control->steps_without_overflow = 0;
  } else if (++control->steps_without_overflow >= growth) {
    control->loss_scale_log2 = std::min(control->loss_scale_log2 + 1, 126);
    control->steps_without_overflow = 0;
  }
}

}  // namespace plimsoll::cpu

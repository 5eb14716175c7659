#include "plimsoll/train/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace plimsoll::train {

double learning_rate(const config::ScheduleConfig& config, int64_t step, int64_t steps) {
  if (step <= config.warmup_steps) {
    return config.lr * static_cast<double>(step) / static_cast<double>(config.warmup_steps);
  }
  const double after_warmup = static_cast<double>(step - config.warmup_steps);
  const double decay_steps = static_cast<double>(std::max<int64_t>(1, steps - config.warmup_steps));
  const double progress = std::min(1.0, after_warmup / decay_steps);  // 0 at the end of warm-up
  double share = 1;  // of the way from the minimum to the peak
  switch (config.decay) {
    case config::Decay::constant:
      return config.lr;
    case config::Decay::cosine:
      share = 0.5 * (1 + std::cos(std::numbers::pi * progress));
      break;
    case config::Decay::linear:
      share = 1 - progress;
      break;
    case config::Decay::wsd: {
      if (config.decay_fraction == 0) return config.lr;
      const double wanted = config.decay_fraction * static_cast<double>(steps);
      const double tail = std::clamp(wanted, 1.0, decay_steps);  // never into the warm-up
      share = std::min(1.0, static_cast<double>(steps - step) / tail);
      break;
    }
  }
  const double minimum = config.lr * config.min_lr_fraction;
  return minimum + (config.lr - minimum) * share;
}

}  // namespace plimsoll::train

// Learning rate by step.
#pragma once

#include <cstdint>

#include "plimsoll/config/config.h"

namespace plimsoll::train {

// `step` counts from 1 to `steps`. Linear warm-up from lr / warmup_steps to lr, then the decay to
// lr * min_lr_fraction at the last step: cosine (Loshchilov & Hutter 2017), linear, or wsd:
// constant, then linear over the last decay_fraction of the steps (Hu et al. 2024, "MiniCPM"), or
// over all that the warm-up leaves when that is less; with decay_fraction = 0 constant to the end.
double learning_rate(const config::ScheduleConfig& config, int64_t step, int64_t steps);

}  // namespace plimsoll::train

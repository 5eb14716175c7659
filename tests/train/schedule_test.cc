#include "plimsoll/train/schedule.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

namespace plimsoll::train {
namespace {

config::ScheduleConfig random_schedule() {
  return {.lr = 1e-3,
          .min_lr_fraction = *rc::gen::element(0.0, 0.1, 1.0),
          .warmup_steps = *rc::gen::inRange<int64_t>(0, 20),
          .decay = *rc::gen::element(config::Decay::constant, config::Decay::cosine,
                                     config::Decay::linear, config::Decay::wsd),
          .decay_fraction = *rc::gen::element(0.0, 0.1, 0.5, 1.0)};
}

RC_GTEST_PROP(Schedule, StaysBetweenZeroAndThePeakAndEndsAtTheMinimum, ()) {
  const config::ScheduleConfig config = random_schedule();
  const int64_t steps = config.warmup_steps + *rc::gen::inRange<int64_t>(1, 50);
  for (int64_t step = 1; step <= steps; ++step) {
    const double lr = learning_rate(config, step, steps);
    RC_ASSERT(lr > 0 || config.min_lr_fraction == 0);
    RC_ASSERT(lr <= config.lr * (1 + 1e-12));
  }
  const bool constant = config.decay == config::Decay::constant ||
                        (config.decay == config::Decay::wsd && config.decay_fraction == 0);
  const double end = constant ? 1 : config.min_lr_fraction;
  RC_ASSERT(std::abs(learning_rate(config, steps, steps) - config.lr * end) < 1e-15);
}

RC_GTEST_PROP(Schedule, RisesInTheWarmUpAndNeverAfterIt, ()) {
  const config::ScheduleConfig config = random_schedule();
  const int64_t steps = config.warmup_steps + *rc::gen::inRange<int64_t>(1, 50);
  for (int64_t step = 2; step <= steps; ++step) {
    const double change =
        learning_rate(config, step, steps) - learning_rate(config, step - 1, steps);
    if (step <= config.warmup_steps) RC_ASSERT(change > 0);
    if (step > config.warmup_steps + 1) RC_ASSERT(change <= 1e-15);
  }
}

RC_GTEST_PROP(Schedule, NeverFallsByMoreThanItsDecaySpreads, ()) {
  const config::ScheduleConfig config = random_schedule();
  const int64_t after = *rc::gen::inRange<int64_t>(1, 50);
  const int64_t steps = config.warmup_steps + after;
  // The steps that the fall from the peak has; a cosine is at most pi / 2 steeper than a line.
  double tail = static_cast<double>(after);
  if (config.decay == config::Decay::wsd) {
    tail = std::clamp(config.decay_fraction * static_cast<double>(steps), 1.0, tail);
  }
  for (int64_t step = config.warmup_steps + 1; step <= steps; ++step) {
    const double before = step == 1 ? config.lr : learning_rate(config, step - 1, steps);
    RC_ASSERT(before - learning_rate(config, step, steps) <= 1.58 * config.lr / tail);
  }
}

TEST(Schedule, WsdWhoseDecayOverlapsTheWarmUpFallsOverWhatIsLeft) {
  const config::ScheduleConfig config = {.lr = 1e-3,
                                         .min_lr_fraction = 0.1,
                                         .warmup_steps = 18,
                                         .decay = config::Decay::wsd,
                                         .decay_fraction = 0.2};
  EXPECT_DOUBLE_EQ(learning_rate(config, 18, 20), 1e-3);
  EXPECT_DOUBLE_EQ(learning_rate(config, 19, 20), 5.5e-4);
  EXPECT_DOUBLE_EQ(learning_rate(config, 20, 20), 1e-4);
}

TEST(Schedule, WsdIsConstantUntilItsTail) {
  const config::ScheduleConfig config = {.lr = 1,
                                         .min_lr_fraction = 0,
                                         .warmup_steps = 10,
                                         .decay = config::Decay::wsd,
                                         .decay_fraction = 0.2};
  EXPECT_EQ(learning_rate(config, 10, 100), 1);
  EXPECT_EQ(learning_rate(config, 80, 100), 1);
  EXPECT_NEAR(learning_rate(config, 90, 100), 0.5, 1e-12);
  EXPECT_NEAR(learning_rate(config, 100, 100), 0, 1e-12);
}

}  // namespace
}  // namespace plimsoll::train

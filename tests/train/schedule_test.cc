#include "plimsoll/train/schedule.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace plimsoll::train {
namespace {

config::ScheduleConfig random_schedule() {
  return {.lr = 1e-3,
          .min_lr_fraction = *rc::gen::element(0.0, 0.1, 1.0),
          .warmup_steps = *rc::gen::inRange<int64_t>(0, 20),
          .decay = *rc::gen::element(config::Decay::constant, config::Decay::cosine,
                                     config::Decay::linear, config::Decay::wsd),
          .decay_fraction = *rc::gen::element(0.1, 0.5, 1.0)};
}

RC_GTEST_PROP(Schedule, StaysBetweenZeroAndThePeakAndEndsAtTheMinimum, ()) {
  const config::ScheduleConfig config = random_schedule();
  const int64_t steps = config.warmup_steps + *rc::gen::inRange<int64_t>(1, 50);
  for (int64_t step = 1; step <= steps; ++step) {
    const double lr = learning_rate(config, step, steps);
    RC_ASSERT(lr > 0 || config.min_lr_fraction == 0);
    RC_ASSERT(lr <= config.lr * (1 + 1e-12));
  }
  const double end = config.decay == config::Decay::constant ? 1 : config.min_lr_fraction;
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

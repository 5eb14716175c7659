#include "plimsoll/runtime/cpu/kernels/scalars.h"

#include <gtest/gtest.h>

#include <array>

namespace plimsoll::cpu {
namespace {

View view_of(auto& values, Format format) {
  return {reinterpret_cast<std::byte*>(values.data()), format, static_cast<int64_t>(values.size()),
          1};
}

TEST(SumLosses, AddsTheMicroStepsAndCountsTheTargetsThatCount) {
  std::array<float, 4> losses = {1, 0, 2, 0.5f};
  std::array<int32_t, 4> targets = {7, -1, 0, 3};
  step::LossTotal total;
  sum_losses(view_of(losses, Format::f32), view_of(targets, Format::i32), total);
  EXPECT_EQ(total.sum, 3.5);
  EXPECT_EQ(total.targets, 3);
  sum_losses(view_of(losses, Format::f32), view_of(targets, Format::i32), total);
  EXPECT_EQ(total.sum, 7);
  EXPECT_EQ(total.targets, 6);
}

TEST(StepGuard, SkipsWhatIsNotFinite) {
  std::array<QuantizerStatistics, 3> statistics;
  int32_t skip = 7;
  step_guard(statistics, nullptr, 2, skip);
  EXPECT_EQ(skip, 0);
  statistics[2].not_finite = 1;
  step_guard(statistics, nullptr, 2, skip);
  EXPECT_EQ(skip, 1);
}

TEST(StepGuard, HalvesTheScaleOnOverflowAndDoublesItAfterAWhile) {
  std::array<QuantizerStatistics, 1> fine, overflowed;
  overflowed[0].not_finite = 3;
  QuantizerControl control = {.loss_scale_log2 = 1};
  int32_t skip = 0;
  const auto step = [&](const auto& statistics) {
    step_guard(statistics, &control, 3, skip);
    return control.loss_scale_log2;
  };
  EXPECT_EQ(step(fine), 1);
  EXPECT_EQ(step(fine), 1);
  EXPECT_EQ(step(fine), 2);  // the third without overflow
  EXPECT_EQ(step(fine), 2);
  EXPECT_EQ(step(overflowed), 1);
  EXPECT_EQ(skip, 1);
  EXPECT_EQ(control.steps_without_overflow, 0u);
  EXPECT_EQ(step(overflowed), 0);
  EXPECT_EQ(step(overflowed), 0);  // not below 1
  control.loss_scale_log2 = 126;
  control.steps_without_overflow = 2;
  EXPECT_EQ(step(fine), 126);
}

}  // namespace
}  // namespace plimsoll::cpu

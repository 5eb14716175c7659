#include "plimsoll/numerics/delayed_scaling.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace plimsoll {
namespace {

constexpr float inf = std::numeric_limits<float>::infinity();

// Scale after each step in which `amaxes` were seen, one a step.
std::vector<float> scales_after(const std::vector<float>& amaxes, size_t length,
                                AmaxAlgorithm algorithm, int margin = 0) {
  std::vector<float> history(length), scales;
  float scale = 1;
  DelayedScaling state{history, scale};
  for (const float amax : amaxes) {
    state.observe(amax);
    state.update(algorithm, 448, margin);
    scales.push_back(scale);
  }
  return scales;
}

TEST(DelayedScaling, FollowsTheLargestOfItsHistory) {
  EXPECT_EQ(scales_after({1, 8, 2, 0.5f, 0.25f, 0.25f, 0, inf, 0.25f, 0.25f, 0.25f, 0.25f, 1}, 4,
                         AmaxAlgorithm::max),
            (std::vector<float>{448, 56, 56, 56, 56, 224, 224, 224, 224, 224, 224, 1792, 448}));
}

TEST(DelayedScaling, FollowsTheMostRecent) {
  EXPECT_EQ(scales_after({1, 8, 2, 0, inf, 3}, 1, AmaxAlgorithm::most_recent),
            (std::vector<float>{448, 56, 224, 224, 224, 149.333328f}));
}

TEST(DelayedScaling, KeepsTheOrderOfItsHistory) {
  std::vector<float> history(4);
  float scale = 1;
  DelayedScaling state{history, scale};
  for (const float amax : {1.0f, 8.0f, 2.0f, 0.5f}) {
    state.observe(amax);
    state.update(AmaxAlgorithm::max, 448);
  }
  EXPECT_EQ(history, (std::vector<float>{0, 8, 2, 0.5f}));
  state.update(AmaxAlgorithm::max, 448);  // nothing ran
  EXPECT_EQ(history, (std::vector<float>{0, 8, 2, 0.5f}));
}

TEST(DelayedScaling, JoinsTheMagnitudesOfAStep) {
  std::vector<float> history(2);
  float scale = 1;
  DelayedScaling state{history, scale};
  for (const float amax : {1.0f, 4.0f, 2.0f}) state.observe(amax);
  EXPECT_EQ(scale, 1);  // quantising does not change the scale
  state.update(AmaxAlgorithm::max, 448);
  EXPECT_EQ(scale, 112);
}

TEST(DelayedScaling, LeavesRoomByItsMarginAndStaysFinite) {
  EXPECT_EQ(scales_after({1}, 4, AmaxAlgorithm::max, 2), std::vector<float>{112});
  EXPECT_EQ(scales_after({1e-40f}, 4, AmaxAlgorithm::max), std::vector<float>{f32_max});
}

TEST(DelayedScaling, IsFrozenByNaNAsByInf) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(scales_after({1, nan, 2, 2, 2}, 3, AmaxAlgorithm::max),
            scales_after({1, inf, 2, 2, 2}, 3, AmaxAlgorithm::max));
  EXPECT_EQ(scales_after({1, nan, 2}, 1, AmaxAlgorithm::most_recent),
            (std::vector<float>{448, 448, 224}));
}

// Growth by four times is seen one step late: that step saturates, the next does not.
TEST(DelayedScaling, SaturatesForExactlyOneStepPerGrowth) {
  std::vector<float> history(16);
  float scale = 1;
  DelayedScaling state{history, scale};
  int saturated_steps = 0;
  for (int step = 0; step < 40; ++step) {
    const float amax = std::ldexp(3.0f, step / 10 * 2);
    if (step > 0 && amax * scale > max_finite<e4m3>) {
      ++saturated_steps;
      EXPECT_EQ(step % 10, 0);
    }
    state.observe(amax);
    state.update(AmaxAlgorithm::max, max_finite<e4m3>);
  }
  EXPECT_EQ(saturated_steps, 3);
}

}  // namespace
}  // namespace plimsoll

#include "plimsoll/train/generate.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace plimsoll::train {
namespace {

TEST(Draw, TakesTheFirstOfTheLargestAtTemperatureZero) {
  EXPECT_EQ(draw(std::vector<float>{1, 3, 3, 2}, 0, 0, 0.99), 1);
}

TEST(Draw, NeverLeavesTheTopK) {
  const std::vector<float> logits = {0, 5, 4, 1};
  for (int i = 0; i < 100; ++i) {
    const int32_t token = draw(logits, 10, 2, (i + 0.5) / 100);
    EXPECT_TRUE(token == 1 || token == 2) << token;
  }
}

TEST(Draw, FollowsTheSoftmax) {
  const std::vector<float> logits = {0, std::log(3.0f)};
  int ones = 0;
  for (int i = 0; i < 1000; ++i) ones += draw(logits, 1, 0, (i + 0.5) / 1000);
  EXPECT_NEAR(ones, 750, 1);
}

TEST(Draw, GetsMoreVariedWithTheTemperature) {
  const std::vector<float> logits = {0, 2};
  const auto share = [&](double temperature) {
    int ones = 0;
    for (int i = 0; i < 1000; ++i) ones += draw(logits, temperature, 0, (i + 0.5) / 1000);
    return ones;
  };
  EXPECT_GT(share(0.5), share(1));
  EXPECT_GT(share(1), share(4));
}

}  // namespace
}  // namespace plimsoll::train

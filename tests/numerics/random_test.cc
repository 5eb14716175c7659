#include "plimsoll/numerics/random.h"

#include <gtest/gtest.h>

namespace plimsoll {
namespace {

// Known-answer vectors of Random123's kat_vectors for philox4x32, 10 rounds.
TEST(Philox, GivesThePublishedWords) {
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}), (Philox{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  constexpr uint32_t ones = 0xffffffff;
  EXPECT_EQ(philox({ones, ones, ones, ones}, {ones, ones}),
            (Philox{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Philox{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(NormalPair, HasMeanZeroAndVarianceOne) {
  double sum = 0, squares = 0;
  constexpr int pairs = 50000;
  for (uint32_t i = 0; i < pairs; ++i) {
    const Philox words = philox({i, 0, 0, 0}, {7, 0});
    for (const double x : normal_pair(words[0], words[1])) {
      sum += x;
      squares += x * x;
    }
  }
  EXPECT_NEAR(sum / (2 * pairs), 0, 0.015);  // 5 standard errors
  EXPECT_NEAR(squares / (2 * pairs), 1, 0.025);
}

TEST(Uniform, IsNeverZeroOrOne) {
  EXPECT_GT(uniform(0), 0);
  EXPECT_LT(uniform(0xffffffff), 1);
}

}  // namespace
}  // namespace plimsoll

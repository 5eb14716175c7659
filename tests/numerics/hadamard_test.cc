#include "plimsoll/numerics/hadamard.h"

#include <gtest/gtest.h>

#include <cmath>

#include "plimsoll/numerics/random.h"

namespace plimsoll {
namespace {

TEST(Hadamard, GivesTheRecordedValues) {
  float x[16], y[16];
  for (int i = 0; i < 16; ++i) x[i] = 0.25f * static_cast<float>(i + 1);
  hadamard16(x, y);
  const float expected[] = {-3.875f, -1.875f, 1.875f, -0.125f, 1.875f, -0.125f, -3.875f, 2.125f,
                            2.125f,  4.125f,  0.375f, 0.375f,  0.375f, -0.625f, 2.625f,  -4.375f};
  for (int j = 0; j < 16; ++j) EXPECT_EQ(y[j], expected[j]) << j;
}

TEST(Hadamard, HasTheFixedSigns) {
  const int signs[] = {1, 1, 1, -1, 1, -1, -1, -1, -1, -1, -1, 1, -1, 1, -1, -1};
  for (int i = 0; i < 16; ++i) {
    float x[16] = {}, y[16];
    x[i] = 4;
    hadamard16(x, y);
    EXPECT_EQ(y[0], signs[i]) << i;
  }
}

// x^T y and (HSx)^T(HS'y) over `groups` groups of 16 bf16 values, with the norm that scales errors.
struct Products {
  double plain = 0, transformed = 0, norm = 0;
};

Products products(bool rounded, uint32_t signs_of_y, int groups = 256) {
  Products result;
  double squares_x = 0, squares_y = 0;
  for (int group = 0; group < groups; ++group) {
    float x[16], y[16], hx[16], hy[16];
    for (uint32_t i = 0; i < 16; ++i) {
      const Philox words = philox({static_cast<uint32_t>(group), i, 0, 0}, {9, 0});
      const auto pair = normal_pair(words[0], words[1]);
      x[i] = static_cast<float>(bf16(static_cast<float>(pair[0])));
      // Correlated, as a gradient and its activations are; an uncorrelated product is about zero.
      y[i] = static_cast<float>(bf16(static_cast<float>(pair[0] + pair[1])));
    }
    hadamard16_unrounded(x, hx);
    hadamard16_unrounded(y, hy, signs_of_y);
    for (int i = 0; i < 16; ++i) {
      if (rounded) {
        hx[i] = static_cast<float>(bf16(hx[i]));
        hy[i] = static_cast<float>(bf16(hy[i]));
      }
      result.plain += static_cast<double>(x[i]) * y[i];
      result.transformed += static_cast<double>(hx[i]) * hy[i];
      squares_x += static_cast<double>(x[i]) * x[i];
      squares_y += static_cast<double>(y[i]) * y[i];
    }
  }
  result.norm = std::sqrt(squares_x * squares_y);
  return result;
}

TEST(Hadamard, LeavesTheProductOfTwoOperandsUnchanged) {
  const Products exact = products(false, hadamard_signs);
  EXPECT_LT(std::abs(exact.transformed - exact.plain), 1e-6 * exact.norm);
  const Products rounded = products(true, hadamard_signs);
  EXPECT_LT(std::abs(rounded.transformed - rounded.plain), 0x1p-8 * rounded.norm);
}

// Shows that the test above would notice.
TEST(Hadamard, ChangesTheProductWhenOneOperandHasAWrongSign) {
  for (int i = 0; i < 16; ++i) {
    const Products wrong = products(false, hadamard_signs ^ 1u << i);
    EXPECT_GT(std::abs(wrong.transformed - wrong.plain), 0x1p-6 * wrong.norm) << i;
  }
}

}  // namespace
}  // namespace plimsoll

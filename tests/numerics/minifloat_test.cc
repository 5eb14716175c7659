// Codes of the 8, 6 and 4 bit floats, for chosen inputs. minifloat_golden_test.cc takes all.
#include "plimsoll/numerics/minifloat.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace plimsoll {
namespace {

constexpr float inf = std::numeric_limits<float>::infinity();
constexpr float nan = std::numeric_limits<float>::quiet_NaN();

float up(float x) { return std::nextafter(x, inf); }
float down(float x) { return std::nextafter(x, -inf); }

struct Vector {
  float x;
  int saturating;
  int overflowing = -1;  // -1: the same
};

template <MiniFloat F>
void expect_vectors(const std::vector<Vector>& vectors) {
  for (const auto& [x, saturating, overflowing] : vectors) {
    EXPECT_EQ(encode<F>(x), saturating) << x;
    if constexpr (layout(F).nan_code >= 0) {
      EXPECT_EQ(encode_overflowing<F>(x), overflowing < 0 ? saturating : overflowing) << x;
    }
  }
}

// The vectors below were executed on CUDA 13.0's headers.
TEST(MiniFloat, EncodesE4M3AsCudaDoes) {
  expect_vectors<e4m3>({{0x1p-11f, 0x00},
                        {0x1p-10f, 0x00},
                        {up(0x1p-10f), 0x01},
                        {0x1p-9f, 0x01},
                        {1.5f * 0x1p-9f, 0x02},
                        {2.5f * 0x1p-9f, 0x02},
                        {3.5f * 0x1p-9f, 0x04},
                        {7 * 0x1p-9f, 0x07},
                        {7.5f * 0x1p-9f, 0x08},
                        {0x1p-6f, 0x08},
                        {1, 0x38},
                        {1.0625f, 0x38},
                        {1.125f, 0x39},
                        {1.1875f, 0x3a},
                        {240, 0x77},
                        {248, 0x78},
                        {256, 0x78},
                        {448, 0x7e},
                        {463.9f, 0x7e},
                        {464, 0x7e},
                        {up(464), 0x7e, 0x7f},
                        {480, 0x7e, 0x7f},
                        {-1000, 0xfe, 0xff},
                        {inf, 0x7e, 0x7f},
                        {-inf, 0xfe, 0xff},
                        {nan, 0x7f},
                        {-nan, 0x7f},
                        {-0.0f, 0x80}});
}

TEST(MiniFloat, EncodesE5M2AsCudaDoes) {
  expect_vectors<e5m2>({{0x1p-18f, 0x00},
                        {0x1p-17f, 0x00},
                        {up(0x1p-17f), 0x01},
                        {0x1p-16f, 0x01},
                        {1.5f * 0x1p-16f, 0x02},
                        {2.5f * 0x1p-16f, 0x02},
                        {3.5f * 0x1p-16f, 0x04},
                        {0x1p-14f, 0x04},
                        {1, 0x3c},
                        {1.125f, 0x3c},
                        {1.375f, 0x3e},
                        {49152, 0x7a},
                        {53248, 0x7a},
                        {57344, 0x7b},
                        {61439, 0x7b},
                        {61440, 0x7b, 0x7c},
                        {65536, 0x7b, 0x7c},
                        {inf, 0x7b, 0x7c},
                        {-inf, 0xfb, 0xfc},
                        {nan, 0x7f}});
}

TEST(MiniFloat, EncodesE2M1AsCudaDoes) {
  expect_vectors<e2m1>(
      {{0.25f, 0},    {up(0.25f), 1}, {0.49f, 1},     {0.5f, 1},   {down(0.75f), 1}, {0.75f, 2},
       {1, 2},        {1.25f, 2},     {up(1.25f), 3}, {1.5f, 3},   {1.75f, 4},       {2.5f, 4},
       {up(2.5f), 5}, {3, 5},         {3.5f, 6},      {4, 6},      {5, 6},           {up(5), 7},
       {6, 7},        {7, 7},         {1e30f, 7},     {inf, 7},    {-0.25f, 8},      {-0.0f, 8},
       {-2.5f, 0xc},  {-3.5f, 0xe},   {-5, 0xe},      {-inf, 0xf}, {nan, 7},         {-nan, 7}});
}

TEST(MiniFloat, EncodesE2M3AsCudaDoes) {
  expect_vectors<e2m3>({{0.0625f, 0x00},
                        {up(0.0625f), 0x01},
                        {0.1875f, 0x02},
                        {0.9375f, 0x08},
                        {1, 0x08},
                        {1.0625f, 0x08},
                        {1.1875f, 0x0a},
                        {7.25f, 0x1e},
                        {7.5f, 0x1f},
                        {8, 0x1f},
                        {inf, 0x1f},
                        {nan, 0x1f},
                        {-7.4f, 0x3f}});
}

TEST(MiniFloat, EncodesE3M2AsCudaDoes) {
  expect_vectors<e3m2>({{0.03125f, 0x00},
                        {up(0.03125f), 0x01},
                        {0.09375f, 0x02},
                        {0.25f, 0x04},
                        {1, 0x0c},
                        {1.125f, 0x0c},
                        {1.375f, 0x0e},
                        {26, 0x1e},
                        {28, 0x1f},
                        {30, 0x1f},
                        {inf, 0x1f},
                        {nan, 0x1f},
                        {-27, 0x3f}});
}

TEST(MiniFloat, KnowsItsLargestNumbers) {
  EXPECT_EQ(max_finite<e4m3>, 448);
  EXPECT_EQ(max_finite<e5m2>, 57344);
  EXPECT_EQ(max_finite<e2m1>, 6);
  EXPECT_EQ(max_finite<e2m3>, 7.5f);
  EXPECT_EQ(max_finite<e3m2>, 28);
}

TEST(MiniFloat, IsUsableAtCompileTime) {
  static_assert(encode<e4m3>(1.1875f) == 0x3a);
  static_assert(encode_overflowing<e5m2>(61440) == 0x7c);
  static_assert(decode<e2m1>(0xf) == -6);
}

TEST(PackE2M1, PutsTheEvenElementInTheLowNibble) {
  EXPECT_EQ(pack_e2m1(0x3, 0xc), 0xc3);
  EXPECT_EQ(unpack_e2m1(0xc3, 6), 0x3);
  EXPECT_EQ(unpack_e2m1(0xc3, 7), 0xc);
}

}  // namespace
}  // namespace plimsoll

#include "plimsoll/numerics/e8m0.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "golden_codes.h"
#include "plimsoll/numerics/scaling.h"

namespace plimsoll {
namespace {

constexpr float inf = std::numeric_limits<float>::infinity();
constexpr float nan = std::numeric_limits<float>::quiet_NaN();

// Executed on CUDA 13.0's headers.
TEST(E8M0, EncodesAsCudaDoes) {
  struct Vector {
    float x;
    int truncate, truncate_overflowing, round_up, round_up_overflowing;
  };
  const float tiny = std::bit_cast<float>(0x00400001u), next = std::bit_cast<float>(0x00800001u);
  for (const Vector& v : {Vector{0, 0, 0, 0, 0},
                          {0x1p-149f, 0, 0, 0, 0},
                          {0x1p-127f, 0, 0, 0, 0},
                          {tiny, 0, 0, 1, 1},
                          {0x1p-126f, 1, 1, 1, 1},
                          {next, 1, 1, 2, 2},
                          {1, 0x7f, 0x7f, 0x7f, 0x7f},
                          {std::nextafter(1.0f, 2.0f), 0x7f, 0x7f, 0x80, 0x80},
                          {1.5f, 0x7f, 0x7f, 0x80, 0x80},
                          {2, 0x80, 0x80, 0x80, 0x80},
                          {0x1p127f, 0xfe, 0xfe, 0xfe, 0xfe},
                          {std::nextafter(0x1p127f, inf), 0xfe, 0xfe, 0xfe, 0xff},
                          {f32_max, 0xfe, 0xfe, 0xfe, 0xff},
                          {inf, 0xfe, 0xff, 0xfe, 0xff},
                          {nan, 0xff, 0xff, 0xff, 0xff},
                          {-1.5f, 0x7f, 0x7f, 0x80, 0x80},
                          {1.0f / 448, 0x76, 0x76, 0x77, 0x77}}) {
    EXPECT_EQ(e8m0_truncate(v.x), v.truncate) << v.x;
    EXPECT_EQ(e8m0_truncate_overflowing(v.x), v.truncate_overflowing) << v.x;
    EXPECT_EQ(e8m0_round_up(v.x), v.round_up) << v.x;
    EXPECT_EQ(e8m0_round_up_overflowing(v.x), v.round_up_overflowing) << v.x;
  }
}

// A build that flushes subnormals to zero fails here.
TEST(E8M0, BecomesBf16AsCudaDoes) {
  EXPECT_EQ(bf16(e8m0_value(0x00)).bits, 0x0040);
  EXPECT_EQ(bf16(e8m0_value(0x01)).bits, 0x0080);
  EXPECT_EQ(bf16(e8m0_value(0x7f)).bits, 0x3f80);
  EXPECT_EQ(bf16(e8m0_value(0xfe)).bits, 0x7f00);
  EXPECT_EQ(bf16(e8m0_value(0xff)).bits, 0x7fff);
  EXPECT_EQ(std::bit_cast<uint32_t>(e8m0_reciprocal(0xfe)), 0x00400000u);
}

TEST(E8M0, EncodesEveryBf16AsTheReference) { expect_golden_codes("e8m0", 0, e8m0_round_up); }

TEST(E8M0, DecodesEveryCode) {
  for (int code = 0; code < 255; ++code) {
    const auto c = static_cast<uint8_t>(code);
    EXPECT_EQ(std::bit_cast<uint32_t>(e8m0_value(c)), golden_codes().values.at("e8m0")[code]);
    EXPECT_EQ(std::bit_cast<uint32_t>(e8m0_reciprocal(c)),
              golden_codes().values.at("e8m0_reciprocal")[code]);
    EXPECT_EQ(e8m0_value(c) * e8m0_reciprocal(c), 1) << code;
    EXPECT_EQ(e8m0_round_up(e8m0_value(c)), code);
    EXPECT_EQ(e8m0_truncate(e8m0_value(c)), code);
  }
  EXPECT_TRUE(std::isnan(e8m0_value(255)) && std::isnan(e8m0_reciprocal(255)));
}

template <MiniFloat F>
void expect_scales(const std::string& name) {
  // The rule takes magnitudes, and the signed half of the bf16 values as well.
  expect_golden_codes("mx_" + name, 0, [](float x) { return mx_scale<F>(x).code; });
  expect_golden_codes("mx_floor_" + name, 0, [](float x) { return mx_scale_floor<F>(x).code; });
}

TEST(MxScale, IsThatOfTheReferenceForEveryBf16) {
  expect_scales<e4m3>("e4m3");
  expect_scales<e5m2>("e5m2");
  expect_scales<e2m1>("e2m1");
}

// ceil(log2(amax / largest)), at least -127, without any rounding.
int exact_scale_code(float amax, double largest) {
  int exponent = std::ilogb(amax) - std::ilogb(largest) - 1;
  while (std::ldexp(largest, exponent) < amax) ++exponent;
  return std::max(exponent + 127, 0);
}

TEST(MxScale, IsTheExactCeilingForEveryBf16) {
  for (uint32_t bits = 1; bits < 0x7f80; ++bits) {
    const float amax = std::bit_cast<float>(bits << 16);
    ASSERT_EQ(mx_scale<e4m3>(amax).code, exact_scale_code(amax, 448)) << amax;
    ASSERT_EQ(mx_scale<e5m2>(amax).code, exact_scale_code(amax, 57344)) << amax;
  }
}

}  // namespace
}  // namespace plimsoll

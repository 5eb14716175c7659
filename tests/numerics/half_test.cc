#include "plimsoll/numerics/half.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>

namespace plimsoll {
namespace {

uint16_t compilers_code(float x) { return std::bit_cast<uint16_t>(static_cast<_Float16>(x)); }

bool is_nan(uint16_t code) { return (code & 0x7fffu) > f16_inf; }

TEST(Half, DecodesEveryCodeAsTheCompilerDoesAndEncodesItBack) {
  for (uint32_t i = 0; i < 65536; ++i) {
    const auto code = static_cast<uint16_t>(i);
    if (is_nan(code)) {
      EXPECT_TRUE(std::isnan(decode_f16(code))) << code;
      continue;
    }
    const float value = decode_f16(code);
    ASSERT_EQ(std::bit_cast<uint32_t>(value),
              std::bit_cast<uint32_t>(static_cast<float>(std::bit_cast<_Float16>(code))))
        << code;
    ASSERT_EQ(encode_f16(value), code);
  }
}

TEST(Half, RoundsTiesToEvenAndTheirNeighboursToTheNearest) {
  for (uint32_t i = 0; i < f16_inf; ++i) {
    const auto code = static_cast<uint16_t>(i);
    const float next = i + 1 == f16_inf ? 65536 : decode_f16(static_cast<uint16_t>(i + 1));
    const float tie = (decode_f16(code) + next) / 2;
    for (const float x : {tie, std::nextafter(tie, 0.0f), std::nextafter(tie, 1e30f)}) {
      ASSERT_EQ(encode_f16(x), compilers_code(x)) << x;
      ASSERT_EQ(encode_f16(-x), compilers_code(-x)) << x;
    }
  }
}

TEST(Half, EncodesRandomFloatsAsTheCompilerDoes) {
  std::mt19937 random(1);
  for (int i = 0; i < 200000; ++i) {
    const auto x = std::bit_cast<float>(static_cast<uint32_t>(random()));
    if (!std::isnan(x)) {
      ASSERT_EQ(encode_f16(x), compilers_code(x)) << x;
    }
  }
}

TEST(Half, OverflowsToInfAndDropsTheSignOfNaN) {
  constexpr float inf = std::numeric_limits<float>::infinity();
  EXPECT_EQ(encode_f16(65519.996f), 0x7bff);
  EXPECT_EQ(encode_f16(65520), 0x7c00);
  EXPECT_EQ(encode_f16(-65520), 0xfc00);
  EXPECT_EQ(encode_f16(inf), 0x7c00);
  EXPECT_EQ(encode_f16(-std::numeric_limits<float>::quiet_NaN()), 0x7fff);
  EXPECT_EQ(decode_f16(0xfc00), -inf);
}

}  // namespace
}  // namespace plimsoll

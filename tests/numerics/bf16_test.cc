#include "plimsoll/numerics/bf16.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

namespace plimsoll {
namespace {

uint16_t rounded(uint32_t bits) { return bf16(std::bit_cast<float>(bits)).bits; }

// CUDA's cvt.rn.bf16.f32, as recorded in the project's numerics reference.
TEST(Bf16, RoundsToNearestEvenAsCudaDoes) {
  EXPECT_EQ(rounded(0x3f808000), 0x3f80);
  EXPECT_EQ(rounded(0x3f818000), 0x3f82);
  EXPECT_EQ(rounded(0x7f7f8000), 0x7f80);
  EXPECT_EQ(rounded(0x7f7fffff), 0x7f80);
  EXPECT_EQ(rounded(0x7f800001), 0x7fff);
  EXPECT_EQ(rounded(0x00008000), 0x0000);
  EXPECT_EQ(rounded(0x00018000), 0x0002);
}

TEST(Bf16, KeepsEveryOfItsOwnValues) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    bf16 value;
    value.bits = static_cast<uint16_t>(bits);
    const float wide = static_cast<float>(value);
    if (std::isnan(wide)) {
      EXPECT_EQ(bf16(wide).bits, 0x7fff);
    } else {
      EXPECT_EQ(bf16(wide).bits, bits);
    }
  }
}

}  // namespace
}  // namespace plimsoll

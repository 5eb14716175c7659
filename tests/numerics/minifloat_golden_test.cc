// Every bf16 value, and every float next to a rounding boundary, encodes as the reference says.
#include <gtest/gtest.h>

#include <cmath>

#include "golden_codes.h"
#include "plimsoll/numerics/minifloat.h"

namespace plimsoll {
namespace {

template <MiniFloat F>
void expect_encodes(const char* name) {
  expect_golden_codes(name, layout(F).sign_bit, encode<F>);
}

TEST(MiniFloatGolden, EncodesEveryBf16) {
  expect_encodes<e4m3>("e4m3");
  expect_encodes<e5m2>("e5m2");
  expect_encodes<e2m1>("e2m1");
  expect_encodes<e2m3>("e2m3");
  expect_encodes<e3m2>("e3m2");
}

TEST(MiniFloatGolden, EncodesEveryBf16WithoutSaturation) {
  expect_golden_codes("e4m3_overflowing", 0x80, encode_overflowing<e4m3>);
  expect_golden_codes("e5m2_overflowing", 0x80, encode_overflowing<e5m2>);
}

// Decodes to the bit, and encodes what it decoded to the same code.
template <MiniFloat F>
void expect_decodes(const char* name) {
  const std::vector<uint32_t>& values = golden_codes().values.at(name);
  ASSERT_EQ(values.size(), 2u * layout(F).sign_bit);
  for (uint32_t code = 0; code < values.size(); ++code) {
    const float value = decode<F>(static_cast<uint8_t>(code));
    if (values[code] == 0x7fc00000u) {
      EXPECT_TRUE(std::isnan(value)) << name << code;
      EXPECT_EQ(encode<F>(value), layout(F).nan_code) << name << code;
      continue;
    }
    EXPECT_EQ(std::bit_cast<uint32_t>(value), values[code]) << name << code;
    if (std::isinf(value)) {
      EXPECT_EQ(encode_overflowing<e5m2>(value), code) << name;
    } else {
      EXPECT_EQ(encode<F>(value), code) << name;
    }
  }
}

TEST(MiniFloatGolden, DecodesEveryCode) {
  expect_decodes<e4m3>("e4m3");
  expect_decodes<e5m2>("e5m2");
  expect_decodes<e2m1>("e2m1");
  expect_decodes<e2m3>("e2m3");
  expect_decodes<e3m2>("e3m2");
}

}  // namespace
}  // namespace plimsoll

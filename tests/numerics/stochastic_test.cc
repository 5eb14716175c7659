#include "plimsoll/numerics/stochastic.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace plimsoll {
namespace {

double mean_over_bytes(float x) {
  double sum = 0;
  for (int byte = 0; byte < 256; ++byte) {
    sum += decode<e2m1>(encode_e2m1_stochastic(x, static_cast<uint8_t>(byte)));
  }
  return sum / 256;
}

// TransformerEngine's software form of cvt.rs.satfinite.e2m1x4.f32.
TEST(StochasticE2M1, RoundsAsTheRecordedVectors) {
  struct Vector {
    float x;
    const char* codes;  // for each byte below, hexadecimal
  };
  constexpr int bytes[] = {0, 63, 64, 127, 128, 191, 192, 255};
  for (const auto& [x, codes] : {Vector{0.3f, "00011111"},
                                 {1.9f, "34444444"},
                                 {2.6f, "44455555"},
                                 {4.5f, "66666677"},
                                 {5.9f, "67777777"},
                                 {-0.1f, "88888889"},
                                 {6.5f, "77777777"},
                                 {0, "00000000"}}) {
    for (int i = 0; i < 8; ++i) {
      EXPECT_EQ(encode_e2m1_stochastic(x, static_cast<uint8_t>(bytes[i])), codes[i] - '0')
          << x << " with byte " << bytes[i];
    }
  }
}

TEST(StochasticE2M1, HasTheRecordedMeans) {
  EXPECT_EQ(mean_over_bytes(0.3f), 0.298828125);
  EXPECT_EQ(mean_over_bytes(1.9f), 1.8984375);
  EXPECT_EQ(mean_over_bytes(2.6f), 2.59765625);
  EXPECT_EQ(mean_over_bytes(4.5f), 4.5);
  EXPECT_EQ(mean_over_bytes(5.9f), 5.8984375);
}

// The one bias is that of 256 steps instead of infinitely many.
TEST(StochasticE2M1, IsUnbiasedUpToOneStepOfItsRandomByte) {
  for (int i = 0; i <= 600; ++i) {
    const float x = static_cast<float>(i) / 100;
    const double step = x >= 4 ? 2 : x >= 2 ? 1 : 0.5;
    const double bias = x - mean_over_bytes(x);
    EXPECT_GE(bias, 0) << x;
    EXPECT_LE(bias, step / 256) << x;
    EXPECT_EQ(mean_over_bytes(-x), -mean_over_bytes(x)) << x;
  }
}

TEST(StochasticE2M1, LeavesWhatItCanRepresentAlone) {
  for (int code = 0; code < 16; ++code) {
    for (int byte = 0; byte < 256; ++byte) {
      EXPECT_EQ(encode_e2m1_stochastic(decode<e2m1>(static_cast<uint8_t>(code)),
                                       static_cast<uint8_t>(byte)),
                code);
    }
  }
}

TEST(StochasticE2M1, SaturatesAndGivesSixForNaN) {
  constexpr float inf = std::numeric_limits<float>::infinity();
  for (const uint8_t byte : {0, 128, 255}) {
    EXPECT_EQ(encode_e2m1_stochastic(1e30f, byte), 7);
    EXPECT_EQ(encode_e2m1_stochastic(inf, byte), 7);
    EXPECT_EQ(encode_e2m1_stochastic(-inf, byte), 15);
    EXPECT_EQ(encode_e2m1_stochastic(std::nanf(""), byte), 7);
    EXPECT_EQ(encode_e2m1_stochastic(-0.0f, byte), 8);
  }
}

}  // namespace
}  // namespace plimsoll

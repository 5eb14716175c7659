// Scales and whole blocks for chosen tensors; scaling_golden_test.cc takes random ones.
#include "plimsoll/numerics/scaling.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

namespace plimsoll {
namespace {

constexpr float inf = std::numeric_limits<float>::infinity();
constexpr float nan = std::numeric_limits<float>::quiet_NaN();

float rounded(double x) { return static_cast<float>(bf16(static_cast<float>(x))); }

template <size_t N>
std::array<float, N> filled(float first, float rest) {
  std::array<float, N> x;
  x.fill(rest);
  x[0] = first;
  return x;
}

std::string hexadecimal(std::span<const uint8_t> codes, bool nibbles = false) {
  std::string text;
  for (const uint8_t code : codes) {
    if (!nibbles) text += "0123456789abcdef"[code >> 4];
    text += "0123456789abcdef"[code & 15];
  }
  return text;
}

TEST(Amax, DropsNaNAndTheSign) {
  const std::vector<float> x{1, -3, nan, 2};
  EXPECT_EQ(amax(x), 3);
  EXPECT_EQ(amax(std::vector<float>{}), 0);
  EXPECT_EQ(amax(std::vector<float>{nan}), 0);
  EXPECT_EQ(amax(std::vector<float>{1, -inf}), inf);
  const std::vector<bf16> narrow{bf16(1), bf16(-3), bf16(nan), bf16(0x1p-133f)};
  EXPECT_EQ(amax(narrow), 3);
}

TEST(AnyNonfinite, FindsNaNAndInfInEveryPlace) {
  for (size_t place = 0; place < 32; ++place) {
    for (const float bad : {inf, -inf, nan, -nan}) {
      std::vector<float> x(32, bf16_max);
      std::vector<bf16> narrow(32, bf16(-bf16_max));
      EXPECT_FALSE(any_nonfinite(x) || any_nonfinite(narrow));
      x[place] = bad;
      narrow[place] = bf16(bad);
      EXPECT_TRUE(any_nonfinite(x) && any_nonfinite(narrow)) << bad << " at " << place;
    }
  }
}

TEST(TensorScale, MapsTheLargestOntoTheLargest) {
  EXPECT_EQ(tensor_scale(448, 448, false), 1);
  EXPECT_EQ(tensor_scale(3, 448, false), 448.0f / 3);
  EXPECT_EQ(tensor_scale(3, 57344, false), 57344.0f / 3);
}

TEST(TensorScale, IsOneWhereItMeansNothingAndFiniteElsewhere) {
  for (const float amax : {0.0f, inf, nan}) EXPECT_EQ(tensor_scale(amax, 448, false), 1);
  EXPECT_EQ(tensor_scale(1e-40f, 448, false), f32_max);
  EXPECT_EQ(tensor_scale(1e-40f, 448, false, bf16_max), bf16_max);
}

TEST(TensorScale, RoundsBlocksDownToAPowerOfTwo) {
  const float amaxes[] = {448, 1, 3, 0, 1e-40f, inf}, scales[] = {1, 256, 128, 1, 0x1p127f, 1};
  for (int i = 0; i < 6; ++i) EXPECT_EQ(block_scale_1x128(amaxes[i]), scales[i]) << amaxes[i];
}

// A power-of-two scale is an E8M0 number without any rounding.
TEST(TensorScale, IsAnE8M0NumberWhenAPowerOfTwo) {
  for (int k = -118; k <= 118; ++k) {
    const float scale = block_scale_1x128(std::ldexp(448.0f, -k));
    ASSERT_EQ(scale, std::ldexp(1.0f, k));
    EXPECT_EQ(e8m0_truncate(scale), k + 127);
  }
}

// The bf16 value above a power of two must not be scaled past 448.
TEST(TensorScale, NeverSaturatesItsLargest) {
  for (int k = -100; k <= 100; ++k) {
    for (const double above : {1.0, 1 + 0x1p-7, 1.75, 1.75 + 0x1p-7}) {
      const auto amax = static_cast<float>(std::ldexp(above, k));
      EXPECT_LE(amax * tensor_scale(amax, 448, true), 448) << amax;
      EXPECT_LE(encode_overflowing<e4m3>(amax * tensor_scale(amax, 448, false)), 0x7e) << amax;
    }
  }
}

TEST(QuantizeMx, GivesTheRecordedCodes) {
  std::array<float, 32> ramp, powers;
  for (int i = 0; i < 32; ++i) {
    ramp[i] = rounded(static_cast<float>((i - 15.5) * static_cast<double>(0.37f)));
    powers[i] = rounded(std::ldexp(1.9f, i - 16));
  }
  for (const MxRule rule : {MxRule::round_up, MxRule::floor}) {
    const MxBlock block = quantize_mx(ramp, rule);
    EXPECT_EQ(block.scale, 0x79);
    EXPECT_EQ(hexadecimal(block.codes),
              "fcfbfaf9f8f8f6f5f3f2f0edeae7e1d45461676a6d70727375767878797a7b7c");
  }
  const MxBlock up = quantize_mx(powers), floor = quantize_mx(powers, MxRule::floor);
  EXPECT_EQ(up.scale, 0x87);
  EXPECT_EQ(hexadecimal(up.codes),
            "0000000000000000000000000000010204080f171f272f373f474f575f676f77");
  EXPECT_EQ(floor.scale, 0x86);
  EXPECT_EQ(hexadecimal(std::span(floor.codes).subspan(14)),
            "0204080f171f272f373f474f575f676f777e");
}

TEST(QuantizeMx, GivesTheRecordedCodesAtTheEdges) {
  struct Edge {
    float first, rest;
    int up[3], floor[3];  // scale, first code, second code
  };
  for (const Edge& edge : {Edge{0, 0, {0x00, 0x00, 0x00}, {0x00, 0x00, 0x00}},
                           {nan, 1, {0xff, 0x7f, 0x7f}, {0xff, 0x7f, 0x7f}},
                           {inf, 1, {0xfe, 0x7e, 0x00}, {0xff, 0x7f, 0x7f}},
                           {0x1p-130f, 0x1p-130f, {0x00, 0x20, 0x20}, {0x00, 0x20, 0x20}},
                           {bf16_max, bf16_max, {0xf7, 0x78, 0x78}, {0xf6, 0x7e, 0x7e}},
                           {448, 1, {0x7f, 0x7e, 0x38}, {0x7f, 0x7e, 0x38}},
                           {450, 1, {0x80, 0x76, 0x30}, {0x7f, 0x7e, 0x38}}}) {
    const auto x = filled<32>(edge.first, edge.rest);
    const MxBlock up = quantize_mx(x), floor = quantize_mx(x, MxRule::floor);
    const int got_up[] = {up.scale, up.codes[0], up.codes[1]};
    const int got_floor[] = {floor.scale, floor.codes[0], floor.codes[1]};
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(got_up[i], edge.up[i]) << edge.first;
      EXPECT_EQ(got_floor[i], edge.floor[i]) << edge.first;
    }
  }
}

TEST(QuantizeMx, SpreadsANaNFromEveryPlaceOverTheBlock) {
  for (size_t place = 0; place < 32; ++place) {
    std::array<float, 32> x;
    x.fill(1);
    x[place] = nan;
    const MxBlock block = quantize_mx(x);
    EXPECT_EQ(block.scale, e8m0_nan);
    for (const uint8_t code : block.codes) EXPECT_EQ(code, 0x7f);
  }
}

constexpr Nvfp4Variant variants[] = {Nvfp4Variant::te, Nvfp4Variant::paper, Nvfp4Variant::torchao};

TEST(QuantizeNvfp4, GivesTheRecordedCodes) {
  std::array<float, 16> low, high;
  for (int i = 0; i < 16; ++i) {
    low[i] = rounded(static_cast<float>((i - 7.5) * static_cast<double>(0.11f)));
    high[i] = rounded(static_cast<float>((i - 7.5) * static_cast<double>(1.7f)));
  }
  EXPECT_EQ(amax(low), 0.82421875f);
  EXPECT_EQ(amax(high), 12.75f);
  const float s_enc = nvfp4_encode_scale(12.75f);
  EXPECT_EQ(s_enc, 210.823532f);
  EXPECT_EQ(nvfp4_block_scale(amax(low), s_enc).inverse, 7.52941179f);
  EXPECT_EQ(nvfp4_block_scale(amax(high), s_enc).inverse, 0.470588237f);
  for (const Nvfp4Variant variant : variants) {
    const Nvfp4Block small = quantize_nvfp4_block(low, s_enc, variant);
    const Nvfp4Block large = quantize_nvfp4_block(high, s_enc, variant);
    EXPECT_EQ(small.scale, 0x5e);
    EXPECT_EQ(large.scale, 0x7e);
    EXPECT_EQ(hexadecimal(small.codes, true), "ffeedca912456677");
    EXPECT_EQ(hexadecimal(large.codes, true), "ffeedca912456677");
  }
}

TEST(QuantizeNvfp4, GivesTheRecordedCodesAtTheEdges) {
  struct Edge {
    float tensor_amax, first, rest;
    int blocks[3][3];  // of each variant: scale, first code, second code
  };
  for (const Edge& edge : {Edge{0, 0, 0, {{0x00, 0, 0}, {0x00, 0, 0}, {0x08, 0, 0}}},
                           {1, 0, 0, {{0x00, 0, 0}, {0x00, 0, 0}, {0x08, 0, 0}}},
                           {1, 1, 0.01f, {{0x7e, 7, 0}, {0x7e, 7, 0}, {0x7e, 7, 0}}},
                           {1, 1e-7f, 1e-7f, {{0x00, 7, 7}, {0x00, 7, 7}, {0x08, 0, 0}}},
                           {1, 1e-5f, 1e-5f, {{0x02, 7, 7}, {0x02, 7, 7}, {0x08, 3, 3}}},
                           {1, nan, 1, {{0x7e, 7, 7}, {0x7e, 7, 7}, {0x7e, 7, 7}}},
                           {inf, inf, 1, {{0x7e, 7, 0}, {0x7e, 7, 0}, {0x7e, 7, 0}}},
                           {1e-38f, 1e-38f, 1e-38f, {{0x31, 5, 5}, {0x31, 5, 5}, {0x31, 7, 7}}}}) {
    const float s_enc = nvfp4_encode_scale(edge.tensor_amax);
    for (int v = 0; v < 3; ++v) {
      const Nvfp4Block block =
          quantize_nvfp4_block(filled<16>(edge.first, edge.rest), s_enc, variants[v]);
      const int got[] = {block.scale, block.codes[0], block.codes[1]};
      for (int i = 0; i < 3; ++i) EXPECT_EQ(got[i], edge.blocks[v][i]) << edge.first << " " << v;
    }
  }
}

TEST(Nvfp4EncodeScale, IsFiniteForEveryTensorWithoutNaN) {
  EXPECT_EQ(nvfp4_encode_scale(0), 1);
  EXPECT_EQ(nvfp4_encode_scale(inf), 1);
  EXPECT_EQ(nvfp4_encode_scale(1e-38f), f32_max);
  EXPECT_EQ(nvfp4_encode_scale(1), 2688);
  EXPECT_TRUE(std::isnan(nvfp4_encode_scale(nan)));
}

}  // namespace
}  // namespace plimsoll

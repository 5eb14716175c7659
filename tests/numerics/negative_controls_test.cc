// Mistakes that a quantiser can make without crashing. Each is made here on purpose, to show that
// the quality of the result gives it away.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "plimsoll/numerics/delayed_scaling.h"
#include "tests/numerics/quality.h"
#include "samples.h"

namespace plimsoll {
namespace {

const Matrix& gaussian() {
  static const Matrix x = sample(Sample::gaussian, 64, 1024, 1);
  return x;
}

template <typename Quantize>
double quality(const Matrix& x, Quantize quantize) {
  return signal_to_noise_db(x.values, quantize(x).values);
}

constexpr double mxfp8_quality = 31, nvfp4_quality = 20;

// OCP's floor rule leaves elements above 448: without saturation they become NaN.
TEST(NegativeControl, FloorScaleWithoutSaturation) {
  int blocks_with_nan = 0, blocks = 0;
  const std::vector<float>& values = gaussian().values;
  for (size_t i = 0; i < values.size(); i += 32, ++blocks) {
    const auto block = std::span(values).subspan(i, 32);
    const float floor = mx_scale_floor(amax(block)).inverse, up = mx_scale(amax(block)).inverse;
    bool nan = false;
    for (const float value : block) {
      nan |= encode_overflowing<e4m3>(value * floor) == (value < 0 ? 0xff : 0x7f);
      EXPECT_NE(encode_overflowing<e4m3>(value * up) & 0x7f, 0x7f);
    }
    blocks_with_nan += nan;
  }
  EXPECT_GT(blocks_with_nan, blocks / 20);
}

TEST(NegativeControl, ScaleInsteadOfItsInverse) {
  const auto swapped = [](Matrix x) {
    for (size_t i = 0; i < x.values.size(); i += 32) {
      const auto block = std::span(x.values).subspan(i, 32);
      const uint8_t scale = mx_scale(amax(block)).code;
      for (float& value : block) {
        value = decode<e4m3>(encode<e4m3>(value * e8m0_value(scale))) * e8m0_reciprocal(scale);
      }
    }
    return x;
  };
  Matrix x = gaussian();
  for (float& value : x.values) value *= 0x1p-6f;
  EXPECT_GT(quality(x, with_mx<e4m3, MxRule::round_up>), mxfp8_quality);
  EXPECT_LT(quality(x, swapped), 3);
}

// Codes made with the scales of rows, read with those of columns.
TEST(NegativeControl, ScalesOfRowsAndColumnsSwapped) {
  constexpr size_t n = 32;
  Matrix x = sample(Sample::gaussian, n, n, 2);
  for (size_t r = 0; r < n; ++r) {
    for (float& value : x.row(r)) value *= std::ldexp(1.0f, static_cast<int>(r % 5));
  }
  Matrix right = x, wrong = x;
  for (size_t r = 0; r < n; ++r) {
    const MxBlock block = quantize_mx(std::span<const float, n>(x.row(r).first<n>()));
    for (size_t c = 0; c < n; ++c) {
      float column[n];
      for (size_t i = 0; i < n; ++i) column[i] = x.row(i)[c];
      const float value = decode<e4m3>(block.codes[c]);
      right.row(r)[c] = value * e8m0_value(block.scale);
      wrong.row(r)[c] = value * e8m0_value(quantize_mx(column).scale);
    }
  }
  EXPECT_GT(signal_to_noise_db(x.values, right.values), mxfp8_quality - 1);
  EXPECT_LT(signal_to_noise_db(x.values, wrong.values), 10);
}

TEST(NegativeControl, NibblesInTheWrongOrder) {
  const std::vector<float>& x = gaussian().values;
  const float s_enc = nvfp4_encode_scale(amax(x));
  std::vector<float> right(x.size()), wrong(x.size());
  for (size_t i = 0; i < x.size(); i += 16) {
    const Nvfp4Block block =
        quantize_nvfp4_block(std::span<const float, 16>(x.data() + i, 16), s_enc);
    const float scale = decode<e4m3>(block.scale) / s_enc;
    for (size_t j = 0; j < 16; ++j) {
      const uint8_t packed = pack_e2m1(block.codes[j & ~size_t{1}], block.codes[j | 1]);
      right[i + j] = decode<e2m1>(unpack_e2m1(packed, j)) * scale;
      wrong[i + j] = decode<e2m1>(unpack_e2m1(packed, j + 1)) * scale;
    }
  }
  EXPECT_GT(signal_to_noise_db(x, right), nvfp4_quality);
  EXPECT_LT(signal_to_noise_db(x, wrong), 0);
}

// A gradient of one sign, a thousandth of its block's largest: to nearest it is gone, at random its
// mean stays.
TEST(NegativeControl, NearestInsteadOfStochasticForASmallGradient) {
  float x[16];
  std::fill(x, x + 16, 1e-3f);
  x[0] = 1;
  const float s_enc = nvfp4_encode_scale(1);
  const Nvfp4Scale scale = nvfp4_block_scale(1, s_enc);
  const Nvfp4Block nearest = quantize_nvfp4_block(x, scale);
  for (int i = 1; i < 16; ++i) EXPECT_EQ(decode<e2m1>(nearest.codes[i]), 0);

  constexpr int draws = 4096;
  const RandomStream stream = random_stream({2026, 1, 0, 0, 0});
  double sum = 0;
  for (int draw = 0; draw < draws; ++draw) {
    const Nvfp4Block block = quantize_nvfp4_block(x, scale, random_bytes16(stream, draw));
    for (int i = 1; i < 16; ++i) sum += decode<e2m1>(block.codes[i]);
  }
  const double step = 0.5, scaled = 1e-3 * scale.inverse, up = scaled / step;
  const double error = step * std::sqrt(up * (1 - up) / (draws * 15));
  EXPECT_NEAR(sum / (draws * 15), scaled, 4 * error + step / 256);
  EXPECT_GT(sum / (draws * 15), scaled / 2);
}

// Ranks that hold shards of one tensor must agree on its largest magnitude.
TEST(NegativeControl, AmaxOfTheFirstShardOnly) {
  Matrix x = gaussian();
  x.values.back() = 300;
  const auto with_amax_of = [&](std::span<const float> shard) {
    const float scale = tensor_scale(amax(shard), max_finite<e4m3>, false);
    return [scale](Matrix y) {
      for (float& value : y.values) value = decode<e4m3>(encode<e4m3>(value * scale)) / scale;
      return y;
    };
  };
  EXPECT_GT(quality(x, with_amax_of(x.values)), mxfp8_quality);
  EXPECT_LT(quality(x, with_amax_of(std::span(x.values).first(x.values.size() / 2))), 10);
}

TEST(NegativeControl, E5M2WhereE4M3Belongs) {
  const double lost =
      quality(gaussian(), with_tensor_scale<e4m3>) - quality(gaussian(), with_tensor_scale<e5m2>);
  EXPECT_NEAR(lost, 6, 0.5);
}

// Gradients lie far below the smallest number of an unscaled format.
TEST(NegativeControl, ScaleFrozenAtOne) {
  Matrix x = gaussian();
  for (float& value : x.values) value *= 0x1p-12f;
  const auto unscaled = [](Matrix y) {
    for (float& value : y.values) value = decode<e4m3>(encode<e4m3>(value));
    return y;
  };
  EXPECT_GT(quality(x, with_tensor_scale<e4m3>), mxfp8_quality);
  EXPECT_LT(quality(x, unscaled), 3);
}

// A scale that was right a hundred steps ago, on activations that grew by 3% a step.
TEST(NegativeControl, StaleDelayedScaleOnGrowingActivations) {
  std::vector<float> history(16), stale_history(16);
  float scale = 1, stale_scale = 1;
  DelayedScaling state{history, scale}, stale{stale_history, stale_scale};
  const Matrix x = sample(Sample::gaussian, 1, 4096, 3);
  double worst = 100, worst_stale = 100;
  for (int step = 0; step < 100; ++step) {
    Matrix grown = x;
    for (float& value : grown.values) value *= std::pow(1.03f, static_cast<float>(step));
    const auto with = [](float s) {
      return [s](Matrix y) {
        for (float& value : y.values) value = decode<e4m3>(encode<e4m3>(value * s)) / s;
        return y;
      };
    };
    if (step > 0) {
      worst = std::min(worst, quality(grown, with(scale)));
      worst_stale = std::min(worst_stale, quality(grown, with(stale_scale)));
    }
    state.observe(amax(grown.values));
    state.update(AmaxAlgorithm::max, max_finite<e4m3>);
    if (step == 0) {
      stale.observe(amax(grown.values));
      stale.update(AmaxAlgorithm::max, max_finite<e4m3>);
    }
  }
  EXPECT_GT(worst, mxfp8_quality - 1);
  EXPECT_LT(worst_stale, 10);
}

}  // namespace
}  // namespace plimsoll

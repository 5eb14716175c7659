// Matrices to quantise, and the recipes as functions from a matrix to what its codes stand for.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "plimsoll/numerics/random.h"
#include "plimsoll/numerics/scaling.h"

namespace plimsoll {

// (rows, columns), row after row; blocks run along the columns, the dimension that is contracted.
struct Matrix {
  size_t rows, columns;
  std::vector<float> values;

  std::span<float> row(size_t r) { return std::span(values).subspan(r * columns, columns); }
  std::span<const float> row(size_t r) const {
    return std::span(values).subspan(r * columns, columns);
  }
};

enum class Sample { gaussian, outlier_channels, student_t3 };

// bf16 values: standard normals, those with one column in a hundred 50 times as large, or Student's
// t with three degrees of freedom. `rows * columns` is a multiple of 4.
inline Matrix sample(Sample kind, size_t rows, size_t columns, uint32_t seed) {
  Matrix x{rows, columns, std::vector<float>(rows * columns)};
  const size_t per_draw = kind == Sample::student_t3 ? 1 : 4;
  for (size_t i = 0; i < x.values.size(); i += per_draw) {
    const Philox words = philox({static_cast<uint32_t>(i), 0, 0, 0}, {seed, 77});
    const auto a = normal_pair(words[0], words[1]), b = normal_pair(words[2], words[3]);
    double values[] = {a[0], a[1], b[0], b[1]};
    if (per_draw == 1) values[0] /= std::sqrt((a[1] * a[1] + b[0] * b[0] + b[1] * b[1]) / 3);
    for (size_t j = 0; j < per_draw; ++j) {
      if (kind == Sample::outlier_channels && (i + j) % columns % 100 == 37) values[j] *= 50;
      x.values[i + j] = static_cast<float>(bf16(static_cast<float>(values[j])));
    }
  }
  return x;
}

// One float scale for the whole matrix.
template <MiniFloat F>
Matrix with_tensor_scale(Matrix x) {
  const float scale = tensor_scale(amax(x.values), max_finite<F>, false);
  for (float& value : x.values) value = decode<F>(encode<F>(value * scale)) / scale;
  return x;
}

inline Matrix with_blocks_of_128(Matrix x) {
  for (size_t i = 0; i < x.values.size(); i += 128) {
    const float scale = block_scale_1x128(amax(std::span(x.values).subspan(i, 128)));
    for (float& value : std::span(x.values).subspan(i, 128)) {
      value = decode<e4m3>(encode<e4m3>(value * scale)) / scale;
    }
  }
  return x;
}

template <MiniFloat F, MxRule rule>
Matrix with_mx(Matrix x) {
  for (size_t i = 0; i < x.values.size(); i += 32) {
    const std::span<float, 32> values(x.values.data() + i, 32);
    const MxBlock block = quantize_mx<F>(values, rule);
    for (size_t j = 0; j < 32; ++j) values[j] = decode<F>(block.codes[j]) * e8m0_value(block.scale);
  }
  return x;
}

enum class Nvfp4Recipe { nearest, tiles, stochastic };

// `tiles`: 16 rows share the scales of a block.
template <Nvfp4Recipe recipe>
Matrix with_nvfp4(Matrix x) {
  const float s_enc = nvfp4_encode_scale(amax(x.values));
  const size_t tile_rows = recipe == Nvfp4Recipe::tiles ? 16 : 1;
  const RandomStream stream = random_stream({2026, 1, 0, 0, 0});
  for (size_t first = 0; first < x.rows; first += tile_rows) {
    for (size_t column = 0; column < x.columns; column += 16) {
      float largest = 0;
      for (size_t r = first; r < first + tile_rows; ++r) {
        largest = std::max(largest, amax(x.row(r).subspan(column, 16)));
      }
      const Nvfp4Scale scale = nvfp4_block_scale(largest, s_enc);
      for (size_t r = first; r < first + tile_rows; ++r) {
        const std::span<float, 16> values = x.row(r).subspan(column).first<16>();
        const Nvfp4Block block =
            recipe == Nvfp4Recipe::stochastic
                ? quantize_nvfp4_block(values, scale,
                                       random_bytes16(stream, (r * x.columns + column) / 16))
                : quantize_nvfp4_block(values, scale);
        for (size_t j = 0; j < 16; ++j) {
          values[j] = decode<e2m1>(block.codes[j]) * decode<e4m3>(block.scale) / s_enc;
        }
      }
    }
  }
  return x;
}

}  // namespace plimsoll

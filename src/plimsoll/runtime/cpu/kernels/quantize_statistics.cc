// What quantising did to a matrix: counts and the error, from x and the codes. Scalar, for it runs
// when someone asks.
#include <algorithm>
#include <array>
#include <cmath>

#include "plimsoll/numerics/hadamard.h"
#include "plimsoll/numerics/half.h"
#include "plimsoll/runtime/cpu/kernels/parallel.h"
#include "plimsoll/runtime/cpu/kernels/quantize.h"

namespace plimsoll::cpu {

namespace {

struct Sums {
  int64_t elements = 0, saturated = 0, flushed = 0;
  float least_scale = 0, largest_scale = 0;
  double signal = 0, noise = 0;

  void add_scale(float scale) {
    least_scale = least_scale == 0 ? scale : std::min(least_scale, scale);
    largest_scale = std::max(largest_scale, scale);
  }
  void add(const Sums& other) {
    elements += other.elements;
    saturated += other.saturated;
    flushed += other.flushed;
    if (other.least_scale > 0) add_scale(other.least_scale), add_scale(other.largest_scale);
    signal += other.signal;
    noise += other.noise;
  }
};

// code = encode(x * multiplier), x is about decode(code) * value * the tensor's factor.
struct Scale {
  float multiplier, value;
};

Scale scale_at(const Quantization& q, const View& scales, int64_t row, int64_t block,
               float tensor_multiplier) {
  switch (q.scaling) {
    case Scaling::loss:
    case Scaling::current:
    case Scaling::delayed:
      return {tensor_multiplier, 1};
    case Scaling::block_1x128:
    case Scaling::block_128x128: {
      const int64_t scale_row = q.scaling == Scaling::block_128x128 ? row / 128 : row;
      const float value = scales.as<float>()[scale_row * scales.columns + block];
      return {divide_rn(1, value), value};
    }
    case Scaling::mx: {
      const uint8_t code = scales.as<uint8_t>()[row * scales.columns + block];
      return {e8m0_reciprocal(code), e8m0_value(code)};
    }
    case Scaling::nvfp4_1x16:
    case Scaling::nvfp4_16x16:
      break;
  }
  // As nvfp4_block_scale has it.
  const float value = decode<e4m3>(scales.as<uint8_t>()[row * scales.columns + block]);
  const float s_dec = divide_rn(1, tensor_multiplier);
  const float multiplier = q.variant == Nvfp4Variant::torchao
                               ? divide_rn(divide_rn(1, s_dec), value)
                               : divide_rn(1, multiply_rn(value, s_dec));
  return {std::min(multiplier, f32_max), value};
}

struct Decoded {
  float value, largest;  // finite
};
Decoded decode_at(const View& codes, int64_t index) {
  switch (codes.format) {
    case Format::f16:
      return {decode_f16(codes.as<uint16_t>()[index]), f16_max};
    case Format::e4m3:
      return {decode<e4m3>(codes.as<uint8_t>()[index]), max_finite<e4m3>};
    case Format::e5m2:
      return {decode<e5m2>(codes.as<uint8_t>()[index]), max_finite<e5m2>};
    default:
      return {
          decode<e2m1>(unpack_e2m1(codes.as<uint8_t>()[index / 2], static_cast<size_t>(index % 2))),
          max_finite<e2m1>};
  }
}

// Adds elements [begin, begin + count) of a row, which share a scale; x: their values.
void add_block(const View& codes, int64_t first_code, std::span<const float> x, Scale scale,
               float tensor_factor, Sums& sums) {
  bool any_value = false;
  for (size_t i = 0; i < x.size(); ++i) {
    const Decoded code = decode_at(codes, first_code + static_cast<int64_t>(i));
    any_value |= std::abs(x[i]) > 0;
    sums.saturated +=
        std::abs(multiply_rn(x[i], scale.multiplier)) > saturation_slack * code.largest;
    sums.flushed += x[i] != 0 && (code.value == 0 || scale.value == 0);
    const double y = double{code.value} * scale.value * tensor_factor;
    if (std::isfinite(x[i]) && std::isfinite(y)) {
      sums.signal += double{x[i]} * x[i];
      sums.noise += (y - x[i]) * (y - x[i]);
    }
  }
  sums.elements += static_cast<int64_t>(x.size());
  const float factor = multiply_rn(scale.value, tensor_factor);
  if (any_value && factor > 0) sums.add_scale(factor);
}

}  // namespace

size_t quantize_statistics_workspace(int64_t rows) {
  return static_cast<size_t>(RowBlocks(rows).count()) * sizeof(Sums);
}

void quantize_statistics(const Quantization& q, const View& x, bool transposed, float multiplier,
                         const QuantizedView& quantized, QuantizerStatistics& statistics,
                         Workspace workspace) {
  const View& codes = quantized.codes;
  auto* partials = reinterpret_cast<Sums*>(workspace.data());
  const float factor = quantized.tensor_scale ? quantized.tensor_scale.as<float>()[0] : 1;
  const int64_t columns = transposed ? x.rows : x.columns;
  constexpr int64_t longest = 128;
  const int64_t width = has_block_scales(q.scaling) ? block_columns(q.scaling) : longest;
  const RowBlocks blocks(codes.rows);
  parallel_for(blocks.count(), [&](int64_t part) {
    Sums sums;
    for (int64_t row = blocks.begin(part); row < blocks.end(part); ++row) {
      for (int64_t begin = 0; begin < columns; begin += width) {
        int64_t count = std::min(width, columns - begin);
        std::array<float, longest> values{};
        for (int64_t i = 0; i < count; ++i) {
          const int64_t c = begin + i;
          values[static_cast<size_t>(i)] = static_cast<float>(
              x.as<bf16>()[transposed ? c * x.columns + row : row * x.columns + c]);
        }
        if (q.hadamard) {
          std::array<float, 16> plain;
          std::copy_n(values.begin(), 16, plain.begin());
          hadamard16(plain, values.data());
          count = 16;
        }
        add_block(codes, row * codes.columns + begin,
                  std::span(values).first(static_cast<size_t>(count)),
                  scale_at(q, quantized.scales, row, begin / width, multiplier), factor, sums);
      }
    }
    partials[part] = sums;
  });
  Sums sum;
  for (int64_t part = 0; part < blocks.count(); ++part) sum.add(partials[part]);
  statistics.elements += static_cast<float>(sum.elements);
  statistics.saturated += static_cast<float>(sum.saturated);
  statistics.flushed += static_cast<float>(sum.flushed);
  statistics.signal += static_cast<float>(sum.signal);
  statistics.noise += static_cast<float>(sum.noise);
  if (sum.least_scale > 0) {
    float& least = statistics.least_scale;
    least = least == 0 ? sum.least_scale : std::min(least, sum.least_scale);
    statistics.largest_scale = std::max(statistics.largest_scale, sum.largest_scale);
  }
}

}  // namespace plimsoll::cpu

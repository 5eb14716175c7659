#include "plimsoll/runtime/cpu/reference/quantize.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "plimsoll/base/error.h"
#include "plimsoll/numerics/delayed_scaling.h"
#include "plimsoll/numerics/hadamard.h"
#include "plimsoll/numerics/half.h"
#include "plimsoll/numerics/scaling.h"
#include "plimsoll/numerics/stochastic.h"

namespace plimsoll::cpu::reference {

namespace {

// A matrix of f32, padded with zeros to whole blocks.
struct Matrix {
  int64_t rows, columns, padded;
  std::vector<float> values;
  float& at(int64_t row, int64_t column) { return values[row * padded + column]; }
};

Matrix matrix_of(const Quantization& q, std::span<const bf16> x, int64_t columns, bool transposed) {
  const int64_t rows = std::ssize(x) / columns;
  Matrix m{rows, columns, 0, {}};
  if (transposed) std::swap(m.rows, m.columns);
  m.padded = padded_columns(q.scaling, m.columns);
  m.values.resize(m.rows * m.padded);
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < columns; ++c) {
      (transposed ? m.at(c, r) : m.at(r, c)) = static_cast<float>(x[r * columns + c]);
    }
  }
  if (q.hadamard) {
    for (size_t i = 0; i < m.values.size(); i += 16) {
      const std::vector<float> group(&m.values[i], &m.values[i] + 16);
      hadamard16(std::span<const float, 16>(group), &m.values[i]);
    }
    m.columns = m.padded;  // the padding has become values
  }
  return m;
}

int encode_as(Format format, float x) {
  switch (format) {
    case Format::f16:
      return encode_f16(x);
    case Format::e4m3:
      return encode<e4m3>(x);
    case Format::e5m2:
      return encode<e5m2>(x);
    case Format::e2m1:
      return encode<e2m1>(x);
    default:
      throw Error(Exit::bug, "not a format of codes");
  }
}

float decode_as(Format format, int code) {
  switch (format) {
    case Format::f16:
      return decode_f16(static_cast<uint16_t>(code));
    case Format::e4m3:
      return decode<e4m3>(static_cast<uint8_t>(code));
    case Format::e5m2:
      return decode<e5m2>(static_cast<uint8_t>(code));
    case Format::e2m1:
      return decode<e2m1>(static_cast<uint8_t>(code));
    default:
      throw Error(Exit::bug, "not a format of codes");
  }
}

float largest_code(Format format) {
  return format == Format::f16    ? f16_max
         : format == Format::e4m3 ? max_finite<e4m3>
         : format == Format::e5m2 ? max_finite<e5m2>
                                  : max_finite<e2m1>;
}

// A block: code = encode(x * multiplier), x is about decode(code) * value.
struct Scale {
  float multiplier = 1, value = 1;
  uint32_t stored = 0;  // its bits in `scales`
};

Scale scale_of_block(const Quantization& q, float largest, bool has_nan, float s_enc) {
  if (q.scaling == Scaling::block_1x128 || q.scaling == Scaling::block_128x128) {
    const float s = tensor_scale(largest, largest_code(q.format), true, bf16_max);
    const float inverse = divide_rn(1, s);
    return {s, inverse, std::bit_cast<uint32_t>(inverse)};
  }
  if (q.scaling == Scaling::mx) {
    if (has_nan) largest = NAN;
    const bool up = q.mx_rule == MxRule::round_up;
    Mx8Scale s{};
    if (q.format == Format::e4m3) s = up ? mx_scale<e4m3>(largest) : mx_scale_floor<e4m3>(largest);
    if (q.format == Format::e5m2) s = up ? mx_scale<e5m2>(largest) : mx_scale_floor<e5m2>(largest);
    return {s.inverse, e8m0_value(s.code), s.code};
  }
  const Nvfp4Scale s = nvfp4_block_scale(largest, s_enc, q.variant);
  return {std::min(s.inverse, f32_max), decode<e4m3>(s.code), s.code};
}

struct Options {
  float tensor_multiplier;  // of the scalings of a whole tensor
  StreamKey key;
  bool collect, count_codes;
};

Quantized quantize_matrix(const Quantization& q, Matrix m, float amax_of_x, const Options& options,
                          QuantizerStatistics& statistics) {
  Quantized out;
  const bool nvfp4 = is_nvfp4(q.scaling), blocks = has_block_scales(q.scaling);
  const float g = q.hadamard ? amax(m.values) : amax_of_x;
  const float s_enc = nvfp4_encode_scale(g);
  float tensor_factor = 1;
  if (has_tensor_scale(q.scaling)) {
    tensor_factor = q.scaling == Scaling::loss
                        ? 1 / options.tensor_multiplier
                        : divide_rn(1, nvfp4 ? s_enc : options.tensor_multiplier);
    out.tensor_scale = {tensor_factor, g};
  }
  const int64_t bits = bits_per_element(q.format);
  out.codes.resize(bytes_of(q.format, m.rows * m.padded));
  const int64_t width = blocks ? block_columns(q.scaling) : m.padded;
  const int64_t across = m.padded / width;  // blocks in a row
  const int64_t scale_bytes = bytes_per_element(scale_format(q.scaling));
  if (blocks) out.scales.resize(scale_rows(q.scaling, m.rows) * across * scale_bytes);
  const int64_t tile = q.scaling == Scaling::block_128x128 ? 128
                       : q.scaling == Scaling::nvfp4_16x16 ? 16
                                                           : 1;
  double signal = 0, noise = 0;
  int64_t elements = 0, saturated = 0, flushed = 0, infinite_codes = 0;
  for (int64_t r = 0; r < m.rows; ++r) {
    for (int64_t b = 0; b < across; ++b) {
      std::vector<float> in_block;  // in its tile
      for (int64_t i = r / tile * tile; i < std::min(m.rows, (r / tile + 1) * tile); ++i) {
        for (int64_t c = b * width; c < (b + 1) * width; ++c) in_block.push_back(m.at(i, c));
      }
      Scale scale{options.tensor_multiplier, 1, 0};
      if (blocks) {
        const bool has_nan = std::ranges::any_of(in_block, [](float x) { return x != x; });
        scale = scale_of_block(q, amax(in_block), has_nan, s_enc);
        const int64_t row = q.scaling == Scaling::block_128x128 ? r / 128 : r;
        std::memcpy(&out.scales[(row * across + b) * scale_bytes], &scale.stored, scale_bytes);
      }
      bool any_value = false;
      for (int64_t c = b * width; c < std::min((b + 1) * width, m.columns); ++c) {
        const float x = m.at(r, c), scaled = multiply_rn(x, scale.multiplier);
        const int64_t i = r * m.padded + c;
        const int code = q.stochastic ? encode_e2m1_stochastic(scaled, random_byte(options.key, i))
                                      : encode_as(q.format, scaled);
        if (bits == 4) {
          uint8_t& byte = out.codes[i / 2];
          byte = i % 2 == 0 ? static_cast<uint8_t>(code) : pack_e2m1(byte, code);
        } else {
          std::memcpy(&out.codes[i * bits / 8], &code, bits / 8);
        }
        const float decoded = decode_as(q.format, code);
        infinite_codes += !std::isfinite(decoded);
        any_value |= std::abs(x) > 0;
        ++elements;
        saturated += std::abs(scaled) > saturation_slack * largest_code(q.format);
        flushed += x != 0 && (decoded == 0 || scale.value == 0);
        const double y = double{decoded} * scale.value * tensor_factor;
        if (std::isfinite(x) && std::isfinite(y)) {
          signal += double{x} * x;
          noise += (y - x) * (y - x);
        }
      }
      const float factor = multiply_rn(scale.value, tensor_factor);
      if (options.collect && any_value && factor > 0) {
        float& least = statistics.least_scale;
        least = least == 0 ? factor : std::min(least, factor);
        statistics.largest_scale = std::max(statistics.largest_scale, factor);
      }
    }
  }
  if (options.count_codes) statistics.not_finite += static_cast<float>(infinite_codes);
  if (options.collect) {
    statistics.elements += static_cast<float>(elements);
    statistics.saturated += static_cast<float>(saturated);
    statistics.flushed += static_cast<float>(flushed);
    statistics.signal += static_cast<float>(signal);
    statistics.noise += static_cast<float>(noise);
  }
  return out;
}

float multiplier_of(const Quantization& q, float amax, const QuantizerControl& control,
                    std::span<const float> state) {
  if (q.scaling == Scaling::loss) return std::ldexp(1.0f, control.loss_scale_log2);
  if (q.scaling == Scaling::delayed && state.back() != 0) return state.back();
  return tensor_scale(amax, largest_code(q.format), q.power_of_two);
}

}  // namespace

QuantizeResult quantize(const step::Quantize& kind, std::span<const bf16> x, int64_t columns,
                        const QuantizerControl& control, std::span<float> state,
                        QuantizerStatistics& statistics) {
  const float largest = amax(x);
  const uint64_t seed = uint64_t{control.seed_high} << 32 | control.seed_low;
  bool counted = control.observe == 0;
  const auto direction = [&](const Quantization& q, bool transposed) {
    const bool of_codes = q.scaling == Scaling::loss;
    Options options{
        multiplier_of(q, largest, control, state),
        {seed, control.step, control.micro_step, kind.layer, 2 * kind.tensor + transposed},
        control.collect != 0 && !(transposed && kind.has_rows),
        of_codes && !counted};
    if (!of_codes && !counted) {
      for (const bf16 value : x) statistics.not_finite += any_nonfinite({&value, 1});
    }
    counted = true;
    return quantize_matrix(q, matrix_of(q, x, columns, transposed), largest, options, statistics);
  };
  QuantizeResult result;
  if (kind.has_rows) result.rows = direction(kind.rows, false);
  if (kind.has_columns) result.columns = direction(kind.columns, true);
  const Scaling scaling = (kind.has_rows ? kind.rows : kind.columns).scaling;
  if (scaling == Scaling::delayed && control.observe != 0) {
    DelayedScaling{state.first(state.size() - 1), state.back()}.observe(largest);
  }
  return result;
}

std::vector<float> dequantize(const Quantization& q, const Quantized& from, int64_t columns) {
  const int64_t bits = bits_per_element(q.format);
  std::vector<float> values(from.codes.size() * 8 / bits);
  for (int64_t i = 0; i < std::ssize(values); ++i) {
    int code = 0;
    if (bits == 4) {
      code = unpack_e2m1(from.codes[i / 2], i % 2);
    } else {
      std::memcpy(&code, &from.codes[i * bits / 8], bits / 8);
    }
    float scale = 1;
    if (has_block_scales(q.scaling)) {
      const int64_t row = i / columns, width = block_columns(q.scaling);
      const int64_t scale_row = q.scaling == Scaling::block_128x128 ? row / 128 : row;
      const int64_t at = scale_row * (columns / width) + i % columns / width;
      if (scale_format(q.scaling) == Format::f32) {
        std::memcpy(&scale, &from.scales[at * 4], 4);
      } else if (q.scaling == Scaling::mx) {
        scale = e8m0_value(from.scales[at]);
      } else {
        scale = decode<e4m3>(from.scales[at]);
      }
    }
    values[i] = multiply_rn(decode_as(q.format, code), scale);
  }
  return values;
}

}  // namespace plimsoll::cpu::reference

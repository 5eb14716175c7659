// Scales of quantised tensors and blocks, and the blocks themselves as the oracle states them.
//
// The arithmetic, one rounded float operation at a time, is that of NVIDIA TransformerEngine 2.20
// (per tensor, blockwise, MX with round-up, NVFP4 "te"), OCP Microscaling Formats 1.0 (MX with
// floor), "Pretraining Large Language Models with NVFP4" 2025 (NVFP4 "paper") and torchao 2026-08
// (NVFP4 "torchao"). Inputs are values of bf16 tensors: an amax taken before that rounding is
// another amax.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#include "plimsoll/numerics/bf16.h"
#include "plimsoll/numerics/e8m0.h"
#include "plimsoll/numerics/host_device.h"
#include "plimsoll/numerics/minifloat.h"
#include "plimsoll/numerics/stochastic.h"

namespace plimsoll {

inline constexpr float f32_max = 0x1.fffffep127f;
inline constexpr float bf16_max = 0x1.fep127f;

// ---- the largest magnitude

// max |x|, 0 of nothing. Drops NaN as fmaxf does; see any_nonfinite.
PLIMSOLL_HD constexpr float amax(std::span<const bf16> values) {
  uint32_t largest = 0;  // magnitudes are ordered as their bits
  for (const bf16 value : values) {
    const uint32_t magnitude = value.bits & 0x7fffu;
    if (magnitude <= 0x7f80u && magnitude > largest) largest = magnitude;
  }
  return std::bit_cast<float>(largest << 16);
}

PLIMSOLL_HD constexpr float amax(std::span<const float> values) {
  uint32_t largest = 0;
  for (const float value : values) {
    const uint32_t magnitude = std::bit_cast<uint32_t>(value) & 0x7fffffffu;
    if (magnitude <= 0x7f800000u && magnitude > largest) largest = magnitude;
  }
  return std::bit_cast<float>(largest);
}

// Whether a value is Inf or NaN. Formats without either would hide it, so ask before quantising.
PLIMSOLL_HD constexpr bool any_nonfinite(std::span<const bf16> values) {
  for (const bf16 value : values) {
    if ((value.bits & 0x7f80u) == 0x7f80u) return true;
  }
  return false;
}

PLIMSOLL_HD constexpr bool any_nonfinite(std::span<const float> values) {
  for (const float value : values) {
    if ((std::bit_cast<uint32_t>(value) & 0x7f800000u) == 0x7f800000u) return true;
  }
  return false;
}

// ---- one float scale for a tensor or a block: code = encode(x * scale)

// format_max / amax, and 1 where that means nothing (amax 0, Inf or NaN). `power_of_two` rounds it
// down to one. `value_for_infinity` replaces a quotient too large for a float.
PLIMSOLL_HD inline float tensor_scale(float amax, float format_max, bool power_of_two,
                                      float value_for_infinity = f32_max) {
  if (!(amax > 0 && amax <= f32_max)) return 1;
  float scale = divide_rn(format_max, amax);
  if (scale > f32_max) scale = value_for_infinity;
  if (!power_of_two) return scale;
  return std::bit_cast<float>(std::bit_cast<uint32_t>(scale) & 0xff800000u);
}

// The scale of a 1x128 (or 128x128) block of E4M3 (DeepSeek-V3's recipe as TransformerEngine has
// it).
PLIMSOLL_HD inline float block_scale_1x128(float amax) {
  return tensor_scale(amax, max_finite<e4m3>, true, bf16_max);
}

// ---- MX: 32 elements share a power of two

enum class MxRule : uint8_t { round_up, floor };
constexpr std::string_view name(MxRule rule) {
  switch (rule) {
    case MxRule::round_up:
      return "round_up";
    case MxRule::floor:
      return "floor";
  }
  return "";
}

// code = encode(x * inverse); x is about decode(code) * e8m0_value(scale.code).
struct Mx8Scale {
  uint8_t code;
  float inverse;
};

// The smallest power of two with which `amax` fits: exactly ceil(log2(amax / max_finite)) for
// bf16 values. NaN for NaN; Inf counts as fitting under 2^127.
template <MiniFloat F = e4m3>
PLIMSOLL_HD inline Mx8Scale mx_scale(float amax) {
  constexpr float reciprocal = static_cast<float>(1.0 / max_finite<F>);
  const uint8_t code = e8m0_round_up(multiply_rn(amax, reciprocal));
  return {code, e8m0_reciprocal(code)};
}

// OCP's rule: elements between max_finite and the next power of two saturate. NaN for Inf and NaN.
template <MiniFloat F = e4m3>
PLIMSOLL_HD constexpr Mx8Scale mx_scale_floor(float amax) {
  constexpr MiniFloatLayout f = layout(F);
  constexpr int emax = (f.max_code >> f.mantissa_bits) - f.bias;
  const uint8_t code = e8m0_floor(amax, emax);
  return {code, e8m0_reciprocal(code)};
}

struct MxBlock {
  uint8_t scale;
  std::array<uint8_t, 32> codes;
};

// A NaN among the elements makes the scale NaN, and with it the block.
template <MiniFloat F = e4m3>
PLIMSOLL_HD inline MxBlock quantize_mx(std::span<const float, 32> x,
                                       MxRule rule = MxRule::round_up) {
  float largest = amax(x);
  for (const float value : x) {
    if (value != value) largest = value;
  }
  const Mx8Scale scale =
      rule == MxRule::round_up ? mx_scale<F>(largest) : mx_scale_floor<F>(largest);
  MxBlock block{scale.code, {}};
  for (size_t i = 0; i < 32; ++i) block.codes[i] = encode<F>(multiply_rn(x[i], scale.inverse));
  return block;
}

// ---- NVFP4: 16 elements share an E4M3 number, the tensor a float

// S_enc of a tensor with largest magnitude `tensor_amax`: 2688 / tensor_amax, 2688 = 6 * 448.
// 1 for 0 and Inf, NaN for NaN.
PLIMSOLL_HD inline float nvfp4_encode_scale(float tensor_amax) {
  const float scale = divide_rn(max_finite<e2m1> * max_finite<e4m3>, tensor_amax);
  if (tensor_amax == 0 || scale == 0) return 1;
  return scale > f32_max ? f32_max : scale;
}

// Who rounds the block's scale how; about one code in a thousand differs.
enum class Nvfp4Variant : uint8_t { te, paper, torchao };
constexpr std::string_view name(Nvfp4Variant variant) {
  switch (variant) {
    case Nvfp4Variant::te:
      return "te";
    case Nvfp4Variant::paper:
      return "paper";
    case Nvfp4Variant::torchao:
      return "torchao";
  }
  return "";
}

// code = encode(x * inverse); x is about decode(code) * decode(scale.code) / S_enc.
struct Nvfp4Scale {
  uint8_t code;
  float inverse;
};

// `amax`: of the 1x16 block, or of the 16x16 tile whose blocks share the scale. A block that is
// tiny beside its tensor gets the scale 0 (torchao: 2^-6), and so the value 0 whatever its codes.
PLIMSOLL_HD inline Nvfp4Scale nvfp4_block_scale(float amax, float s_enc,
                                                Nvfp4Variant variant = Nvfp4Variant::te) {
  const float s_dec = divide_rn(1, s_enc);
  float target = 0;
  if (variant == Nvfp4Variant::te) {
    target = multiply_rn(amax, multiply_rn(s_enc, static_cast<float>(1.0 / 6)));
  } else if (variant == Nvfp4Variant::paper) {
    target = multiply_rn(divide_rn(amax, 6), s_enc);
  } else {
    target = divide_rn(divide_rn(amax, 6), s_dec);
    if (target < 0x1p-6f) target = 0x1p-6f;
  }
  const uint8_t code = encode<e4m3>(target);
  const float value = decode<e4m3>(code);
  if (variant == Nvfp4Variant::torchao) return {code, divide_rn(divide_rn(1, s_dec), value)};
  const float inverse = divide_rn(1, multiply_rn(value, s_dec));
  return {code, inverse > f32_max ? f32_max : inverse};
}

struct Nvfp4Block {
  uint8_t scale;
  std::array<uint8_t, 16> codes;  // one a byte, not packed
};

PLIMSOLL_HD inline Nvfp4Block quantize_nvfp4_block(std::span<const float, 16> x, Nvfp4Scale scale) {
  Nvfp4Block block{scale.code, {}};
  for (size_t i = 0; i < 16; ++i) block.codes[i] = encode<e2m1>(multiply_rn(x[i], scale.inverse));
  return block;
}

// The same with stochastic rounding; `bytes[i]` belongs to x[i].
PLIMSOLL_HD inline Nvfp4Block quantize_nvfp4_block(std::span<const float, 16> x, Nvfp4Scale scale,
                                                   const PhiloxBytes& bytes) {
  Nvfp4Block block{scale.code, {}};
  for (size_t i = 0; i < 16; ++i) {
    block.codes[i] = encode_e2m1_stochastic(multiply_rn(x[i], scale.inverse), bytes[i]);
  }
  return block;
}

// The same with the block's own scale.
PLIMSOLL_HD inline Nvfp4Block quantize_nvfp4_block(std::span<const float, 16> x, float s_enc,
                                                   Nvfp4Variant variant = Nvfp4Variant::te) {
  return quantize_nvfp4_block(x, nvfp4_block_scale(amax(x), s_enc, variant));
}

}  // namespace plimsoll

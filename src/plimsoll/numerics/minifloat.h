// Floats of 8, 6 and 4 bits: sign, exponent, mantissa, in the low bits of a byte.
//
// OCP 8-bit Floating Point Specification 1.0 (E4M3 is its "fn" form: no Inf, one NaN) and OCP
// Microscaling Formats 1.0 (E2M1, E2M3, E3M2: no Inf, no NaN). Rounding is to nearest, ties to
// even. Integer arithmetic only, so neither the rounding mode nor flushing of subnormals matters.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "plimsoll/numerics/host_device.h"

namespace plimsoll {

// An enumeration, because nvcc 13.0 cannot name a class that is a template's argument.
enum class MiniFloat : uint8_t { e4m3, e5m2, e2m1, e2m3, e3m2 };
using enum MiniFloat;

struct MiniFloatLayout {
  int exponent_bits;
  int mantissa_bits;
  int bias;
  uint8_t sign_bit;
  uint8_t max_code;  // the largest finite magnitude
  int inf_code;      // -1: none
  int nan_code;      // the NaN that encoding gives; -1: none
};

PLIMSOLL_HD constexpr MiniFloatLayout layout(MiniFloat format) {
  switch (format) {
    case e4m3:
      return {4, 3, 7, 0x80, 0x7e, -1, 0x7f};
    case e5m2:
      return {5, 2, 15, 0x80, 0x7b, 0x7c, 0x7f};
    case e2m1:
      return {2, 1, 1, 0x08, 0x07, -1, -1};
    case e2m3:
      return {2, 3, 1, 0x20, 0x1f, -1, -1};
    case e3m2:
      return {3, 2, 3, 0x20, 0x1f, -1, -1};
  }
  return {};
}

// The code of a magnitude, to nearest even, in a format of so many mantissa bits and such a bias,
// as if exponents went on past the largest; `magnitude`: bits of |x|, not NaN.
PLIMSOLL_HD constexpr uint32_t round_magnitude(uint32_t magnitude, uint32_t mantissa_bits,
                                               uint32_t bias) {
  const uint32_t first_normal = 128 - bias;  // the exponent field of the smallest normal
  const uint32_t exponent = magnitude >> 23;
  uint32_t significand = magnitude, shift = 23 - mantissa_bits, offset = first_normal - 1;
  if (exponent < first_normal) {
    // A shift of 31 rounds every significand to zero, as do all that are longer.
    const uint32_t below = first_normal - exponent;
    significand = (magnitude & 0x7fffffu) | 0x800000u;
    shift = below + shift < 31 ? below + shift : 31;
    offset = 0;
  }
  const uint32_t tie_to_even = (significand >> shift) & 1u;
  return ((significand + (1u << (shift - 1)) - 1u + tie_to_even) >> shift) -
         (offset << mantissa_bits);
}

template <MiniFloat F>
PLIMSOLL_HD constexpr uint32_t round_magnitude(uint32_t magnitude) {
  constexpr MiniFloatLayout f = layout(F);
  return round_magnitude(magnitude, f.mantissa_bits, f.bias);
}

// Saturates as CUDA's cvt.rn.satfinite does: what is too large, and Inf, becomes the largest finite
// number. NaN becomes nan_code, or the largest positive number where there is no NaN.
template <MiniFloat F>
PLIMSOLL_HD constexpr uint8_t encode(float x) {
  constexpr MiniFloatLayout f = layout(F);
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  const uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) {
    return static_cast<uint8_t>(f.nan_code >= 0 ? f.nan_code : f.max_code);
  }
  const uint32_t code = round_magnitude<F>(magnitude);
  const uint32_t sign = bits >> 31 ? f.sign_bit : 0;
  return static_cast<uint8_t>(sign | (code < f.max_code ? code : f.max_code));
}

// As ml_dtypes converts: what rounds past the largest finite number becomes Inf, or NaN where there
// is no Inf.
template <MiniFloat F>
PLIMSOLL_HD constexpr uint8_t encode_overflowing(float x) {
  constexpr MiniFloatLayout f = layout(F);
  static_assert(f.nan_code >= 0, "a format without Inf and NaN can only saturate");
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  const uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return static_cast<uint8_t>(f.nan_code);
  const uint32_t code = round_magnitude<F>(magnitude);
  const uint32_t sign = bits >> 31 ? f.sign_bit : 0;
  const uint32_t overflow = f.inf_code >= 0 ? f.inf_code : f.nan_code;
  return static_cast<uint8_t>(sign | (code <= f.max_code ? code : overflow));
}

// Exact. Bits above the sign are ignored.
template <MiniFloat F>
PLIMSOLL_HD constexpr float decode(uint8_t code) {
  constexpr MiniFloatLayout f = layout(F);
  const uint32_t magnitude = code & (f.sign_bit - 1u);
  const uint32_t sign = code & f.sign_bit ? 0x80000000u : 0;
  if (magnitude > f.max_code) {
    const bool inf = static_cast<int>(magnitude) == f.inf_code;
    return std::bit_cast<float>(sign | (inf ? 0x7f800000u : 0x7fc00000u));
  }
  if (magnitude >> f.mantissa_bits == 0) {  // subnormal: a whole number of smallest steps
    constexpr float step =
        std::bit_cast<float>(static_cast<uint32_t>(128 - f.bias - f.mantissa_bits) << 23);
    const float value = static_cast<float>(magnitude) * step;
    return sign ? -value : value;
  }
  return std::bit_cast<float>(
      sign | ((magnitude << (23 - f.mantissa_bits)) + (static_cast<uint32_t>(127 - f.bias) << 23)));
}

// 448, 57344, 6, 7.5 and 28.
template <MiniFloat F>
inline constexpr float max_finite = decode<F>(layout(F).max_code);

// Two E2M1 codes in a byte: the element of even index in the low nibble.
PLIMSOLL_HD constexpr uint8_t pack_e2m1(uint8_t even, uint8_t odd) {
  return static_cast<uint8_t>((even & 15) | odd << 4);
}
PLIMSOLL_HD constexpr uint8_t unpack_e2m1(uint8_t packed, size_t index) {
  return index % 2 == 0 ? packed & 15 : packed >> 4;
}

}  // namespace plimsoll

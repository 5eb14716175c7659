// codes (rows, columns), scales of blocks  ->  decode(code) * scale, bf16, of f16 codes f32.
#include <array>

#include "plimsoll/base/error.h"
#include "plimsoll/runtime/cpu/kernels/quantize.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "plimsoll/runtime/cpu/kernels/dequantize.cc"
#include "hwy/foreach_target.h"

#include "plimsoll/runtime/cpu/kernels/quantize_codes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace plimsoll::cpu::HWY_NAMESPACE {

#if HWY_TARGET == HWY_SCALAR

template <Format F>
HWY_INLINE int64_t decode_by_bits(const uint8_t*, int64_t, float, bf16*) {
  return 0;
}

#else

// As many of the first codes as fill vectors, in arithmetic of 16 bits; returns how many. The eight
// smallest magnitudes are looked up, the others, normal numbers, need only another exponent, where
// the scale is a power of two that keeps them normal in bf16. Returns 0 for other scales.
template <Format F>
HWY_INLINE int64_t decode_by_bits(const uint8_t* codes, int64_t count, float scale, bf16* to) {
  constexpr CodeLayout f = code_layout(F);
  const auto bits = std::bit_cast<uint32_t>(scale);
  const uint32_t exponent = bits >> 23;  // with the sign: scales are positive
  const bool fits = F == Format::e2m1 ? exponent < 255
                                      : (bits & 0x7fffffu) == 0 && exponent > 27 && exponent < 227;
  if (!fits) return 0;
  constexpr MiniFloat mini = F == Format::e4m3 ? e4m3 : F == Format::e5m2 ? e5m2 : e2m1;
  constexpr std::array<float, 8> values = {0,
                                           decode<mini>(1),
                                           decode<mini>(2),
                                           decode<mini>(3),
                                           decode<mini>(4),
                                           decode<mini>(5),
                                           decode<mini>(6),
                                           decode<mini>(7)};
  alignas(16) uint16_t smallest[8];
  const hn::CappedTag<float, 8> d8;
  const hn::RebindToSigned<decltype(d8)> di8;
  const hn::Rebind<uint16_t, decltype(d8)> du16;
  for (size_t i = 0; i < 8; i += hn::Lanes(d8)) {  // exact, so cutting off is rounding
    const auto product = hn::Mul(hn::LoadU(d8, &values[i]), hn::Set(d8, scale));
    const auto upper = hn::ShiftRight<16>(hn::BitCast(di8, product));
    hn::StoreU(hn::DemoteTo(du16, upper), du16, smallest + i);
  }
  const hn::CappedTag<uint16_t, 16> d;
  const hn::Rebind<uint8_t, decltype(d)> du8;
  const hn::Repartition<uint8_t, decltype(d)> bytes;
  const auto table = hn::LoadDup128(bytes, reinterpret_cast<const uint8_t*>(smallest));
  const auto rebias = hn::Set(d, static_cast<uint16_t>((exponent - f.bias) << 7));
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const auto code = hn::PromoteTo(d, hn::LoadU(du8, codes + i));
    const auto sign_bit = hn::Set(d, 1 << (f.bits - 1));
    const auto magnitude = hn::AndNot(sign_bit, code);
    const auto sign = hn::ShiftLeft<16 - f.bits>(hn::And(sign_bit, code));
    const auto index = hn::Add(hn::Mul(magnitude, hn::Set(d, 0x0202)), hn::Set(d, 0x0100));
    auto value = hn::BitCast(d, hn::TableLookupBytes(table, hn::BitCast(bytes, index)));
    if constexpr (F != Format::e2m1) {
      const hn::RebindToSigned<decltype(d)> di;  // whose comparisons are faster
      const auto above = [&](int16_t limit) HWY_ATTR {
        return hn::RebindMask(d, hn::Gt(hn::BitCast(di, magnitude), hn::Set(di, limit)));
      };
      const auto normal = hn::Add(hn::ShiftLeft<7 - f.mantissa_bits>(magnitude), rebias);
      value = hn::Or(hn::IfThenElse(above(7), normal, value), sign);
      if constexpr (f.inf_code >= 0) {
        value = hn::IfThenElse(above(f.max_code), hn::Or(sign, hn::Set(d, 0x7f80)), value);
        value = hn::IfThenElse(above(f.inf_code), hn::Set(d, 0x7fff), value);
      } else {
        value = hn::IfThenElse(above(f.max_code), hn::Set(d, 0x7fff), value);
      }
    } else {
      value = hn::Or(value, sign);
    }
    hn::StoreU(value, d, reinterpret_cast<uint16_t*>(to + i));
  }
  return i;
}

#endif

// Codes that share a scale; `count` may be anything.
template <Format F, class Code, class Value>
HWY_INLINE void decode_block(const Code* codes, int64_t count, float scale, Value* to) {
  const VF factor = set(scale);
  const auto lanes = static_cast<int64_t>(hn::Lanes(DF()));
  int64_t i = 0;
  if constexpr (F != Format::f16) i = decode_by_bits<F>(codes, count, scale, to);
  for (; i + lanes <= count; i += lanes) {
    store(hn::Mul(decode_codes<F>(load_codes(codes + i)), factor), to + i, Whole());
  }
  if (i < count) {
    Code rest[hn::MaxLanes(DF())] = {};
    std::memcpy(rest, codes + i, static_cast<size_t>(count - i) * sizeof(Code));
    store(hn::Mul(decode_codes<F>(load_codes(rest)), factor), to + i, First{count - i});
  }
}

float scale_value(Scaling scaling, const View& scales, int64_t index) {
  if (scaling == Scaling::mx) return e8m0_value(scales.as<uint8_t>()[index]);
  if (is_nvfp4(scaling)) return decode<e4m3>(scales.as<uint8_t>()[index]);
  return scales.as<float>()[index];
}

template <Format F>
void dequantize_of(Scaling scaling, const QuantizedView& from, const View& to) {
  using Code = std::conditional_t<F == Format::f16, uint16_t, uint8_t>;
  using Value = std::conditional_t<F == Format::f16, float, bf16>;
  const int64_t columns = to.columns;
  const bool blocks = has_block_scales(scaling);
  const int64_t width = blocks ? block_columns(scaling) : columns;
  parallel_for(to.rows, [&, columns, width](int64_t row) HWY_ATTR {
    const int64_t scale_row = scaling == Scaling::block_128x128 ? row / 128 : row;
    Value* values = to.as<Value>() + row * columns;
    for (int64_t c = 0, block = 0; c < columns; c += width, ++block) {
      const float scale =
          blocks ? scale_value(scaling, from.scales, scale_row * from.scales.columns + block) : 1;
      if constexpr (F == Format::e2m1) {
        alignas(16) uint8_t codes[16];
        unpack_codes(from.codes.as<uint8_t>() + (row * columns + c) / 2, codes);
        decode_block<F>(codes, 16, scale, values + c);
      } else {
        decode_block<F>(from.codes.as<Code>() + row * columns + c, width, scale, values + c);
      }
    }
  });
}

void dequantize(const Quantization& q, const QuantizedView& from, const View& to) {
  switch (q.format) {
    case Format::f16:
      return dequantize_of<Format::f16>(q.scaling, from, to);
    case Format::e4m3:
      return dequantize_of<Format::e4m3>(q.scaling, from, to);
    case Format::e5m2:
      return dequantize_of<Format::e5m2>(q.scaling, from, to);
    default:
      return dequantize_of<Format::e2m1>(q.scaling, from, to);
  }
}

}  // namespace plimsoll::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plimsoll::cpu {

HWY_EXPORT(dequantize);

void dequantize(const Quantization& kind, const QuantizedView& from, const View& to) {
  check(to.format == product_format(kind.format) && to.rows == from.codes.rows &&
            to.columns == from.codes.columns,
        "dequantize: shape of the result");
  HWY_DYNAMIC_DISPATCH(dequantize)(kind, from, to);
}

}  // namespace plimsoll::cpu
#endif  // HWY_ONCE

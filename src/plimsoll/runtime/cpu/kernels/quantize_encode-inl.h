// Vectors of f32 to and from codes of 4, 8 and 16 bits, and the Hadamard transform of vectors: the
// bits of numerics/{minifloat,half,stochastic,hadamard}.h, compiled once a Highway target.
#include <utility>

#include "hwy/highway.h"
#include "plimsoll/numerics/format.h"
#include "plimsoll/numerics/hadamard.h"
#include "plimsoll/numerics/half.h"
#include "plimsoll/numerics/minifloat.h"
#include "plimsoll/numerics/stochastic.h"
#include "plimsoll/runtime/cpu/kernels/simd-inl.h"

#if defined(PLIMSOLL_RUNTIME_CPU_KERNELS_QUANTIZE_ENCODE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PLIMSOLL_RUNTIME_CPU_KERNELS_QUANTIZE_ENCODE_INL_H_
#undef PLIMSOLL_RUNTIME_CPU_KERNELS_QUANTIZE_ENCODE_INL_H_
#else
#define PLIMSOLL_RUNTIME_CPU_KERNELS_QUANTIZE_ENCODE_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace plimsoll::cpu::HWY_NAMESPACE {

using DI = hn::RebindToSigned<DF>;
using VI = hn::Vec<DI>;

HWY_INLINE VI set_int(int32_t value) { return hn::Set(DI(), value); }

// How codes of a format are made of a float's bits.
struct CodeLayout {
  int mantissa_bits, bias, bits;
  int32_t max_code;  // of the finite magnitudes
  int32_t nan_code;  // what NaN becomes
  int32_t inf_code;  // -1: none
  uint32_t limit;    // bits of the float that larger ones are cut to
};

template <MiniFloat M>
constexpr CodeLayout layout_of(int bits) {
  constexpr MiniFloatLayout f = layout(M);
  return {f.mantissa_bits,
          f.bias,
          bits,
          f.max_code,
          f.nan_code < 0 ? f.max_code : f.nan_code,
          f.inf_code,
          std::bit_cast<uint32_t>(max_finite<M>)};
}

constexpr CodeLayout code_layout(Format format) {
  if (format == Format::e4m3) return layout_of<e4m3>(8);
  if (format == Format::e5m2) return layout_of<e5m2>(8);
  if (format == Format::e2m1) return layout_of<e2m1>(4);
  // f16; 65536 rounds to the code of Inf.
  return {10, 15, 16, f16_inf - 1, 0x7fff, f16_inf, std::bit_cast<uint32_t>(65536.0f)};
}

// The magnitude's code, to nearest, ties to even; v >= 0 and not NaN.
template <Format F>
HWY_INLINE VI encode_magnitude(VF v) {
  constexpr CodeLayout f = code_layout(F);
  constexpr int shift = 23 - f.mantissa_bits;
  constexpr int32_t first_normal = (128 - f.bias) << 23;
  const DI di;
  const VF limited = hn::Min(v, set(std::bit_cast<float>(f.limit)));
  // The power of two below v, or below the smallest normal, and 2^shift times it: added to v, that
  // rounds v to the code's steps, whose number is left in the lowest bits.
  const VI power =
      hn::And(hn::BitCast(di, hn::Max(limited, set(std::bit_cast<float>(first_normal)))),
              set_int(0x7f800000));
  const VF large = hn::BitCast(DF(), hn::Add(power, set_int(shift << 23)));
  const VI steps = hn::BitCast(di, hn::Add(limited, large));
  // Minus large's bits, plus the steps below the power of two.
  constexpr int32_t offset = (shift << 23) + (first_normal >> shift);
  return hn::Sub(hn::Add(steps, hn::ShiftRight<shift>(power)), hn::Add(power, set_int(offset)));
}

// encode<F> and encode_f16.
template <Format F>
HWY_INLINE VI encode_nearest(VF x) {
  constexpr CodeLayout f = code_layout(F);
  const DI di;
  const VI magnitude = encode_magnitude<F>(hn::Abs(x));
  const VI sign =
      hn::And(hn::ShiftRight<32 - f.bits>(hn::BitCast(di, x)), set_int(1 << (f.bits - 1)));
  return hn::IfThenElse(hn::RebindMask(di, hn::IsNaN(x)), set_int(f.nan_code),
                        hn::Or(magnitude, sign));
}

// encode_e2m1_stochastic. `random` holds bytes.
HWY_INLINE VI encode_stochastic(VF x, VI random) {
  const DI di;
  const VI bits = hn::BitCast(di, x);
  const VF magnitude = hn::Abs(x);
  // Twice the step above |x|: 1 below 2, 2 below 4, 4 from there on.
  const VF limited = hn::Min(hn::Max(magnitude, set(1.0f)), set(4.0f));
  const VF steps = hn::BitCast(DF(), hn::And(hn::BitCast(di, limited), set_int(0x7f800000)));
  const VF part = hn::Mul(hn::ConvertTo(DF(), random), set(1.0f / 512));
  const VI raised = hn::BitCast(di, hn::Add(hn::Mul(part, steps), magnitude));
  const VI cut = hn::ShiftRight<22>(raised);  // 252 stands for 0.5, 254 for 1
  // Cut to 6 while 1.0 and up are still 254 and up; below that only 0.5 and 0.75, both 0.5.
  const VI large = hn::Min(hn::Sub(cut, set_int(252)), set_int(7));
  const VI small = hn::IfThenElseZero(hn::Gt(cut, set_int(251)), set_int(1));
  const VI code = hn::IfThenElse(hn::Gt(cut, set_int(253)), large, small);
  const VI sign = hn::And(hn::ShiftRight<28>(bits), set_int(8));
  return hn::IfThenElse(hn::RebindMask(di, hn::IsNaN(x)), set_int(7), hn::Or(code, sign));
}

// Exact; decode<F> and decode_f16.
template <Format F>
HWY_INLINE VF decode_codes(VI codes) {
  constexpr CodeLayout f = code_layout(F);
  const DI di;
  const VI magnitude = hn::And(codes, set_int((1 << (f.bits - 1)) - 1));
  // Not one multiplication for all, which would see subnormal floats, slow on some machines.
  constexpr auto step = static_cast<uint32_t>(128 - f.bias - f.mantissa_bits) << 23;
  const VF subnormal = hn::Mul(hn::ConvertTo(DF(), magnitude), set(std::bit_cast<float>(step)));
  const VI normal =
      hn::Add(hn::ShiftLeft<23 - f.mantissa_bits>(magnitude), set_int((127 - f.bias) << 23));
  VI v = hn::IfThenElse(hn::Lt(magnitude, set_int(1 << f.mantissa_bits)),
                        hn::BitCast(di, subnormal), normal);
  if constexpr (f.nan_code > f.max_code) {
    v = hn::IfThenElse(hn::Gt(magnitude, set_int(f.max_code)), set_int(0x7fc00000), v);
  }
  if constexpr (f.inf_code >= 0) {
    v = hn::IfThenElse(hn::Eq(magnitude, set_int(f.inf_code)), set_int(0x7f800000), v);
  }
  const VI sign = hn::ShiftLeft<32 - f.bits>(hn::And(codes, set_int(1 << (f.bits - 1))));
  return hn::BitCast(DF(), hn::Or(v, sign));
}

HWY_INLINE void store_codes(VI codes, uint8_t* to) {
  const hn::Rebind<uint8_t, DF> du8;
  hn::StoreU(hn::DemoteTo(du8, codes), du8, to);
}
HWY_INLINE void store_codes(VI codes, uint16_t* to) {
  const hn::Rebind<uint16_t, DF> du16;
  hn::StoreU(hn::DemoteTo(du16, codes), du16, to);
}
HWY_INLINE VI load_codes(const uint8_t* from) {
  return hn::PromoteTo(DI(), hn::LoadU(hn::Rebind<uint8_t, DF>(), from));
}
HWY_INLINE VI load_codes(const uint16_t* from) {
  return hn::PromoteTo(DI(), hn::LoadU(hn::Rebind<uint16_t, DF>(), from));
}

// sums[j] +-= q for j < the sequence's length, with hadamard16's signs of element i.
template <uint32_t i, size_t... j>
HWY_INLINE void add_signed(VF q, VF* sums, std::index_sequence<j...>) {
  constexpr uint32_t odd = 0x6996;  // bit n: whether popcount(n) is odd
  ((sums[j] = ((odd >> (i & j)) ^ (hadamard_signs >> i)) & 1u ? hn::Sub(sums[j], q)
                                                              : hn::Add(sums[j], q)),
   ...);
}

// Sums up to element i, of which only `distinct` differ: those of j and j + distinct are equal.
template <uint32_t i, size_t distinct>
HWY_INLINE void hadamard_step(const bf16* x, int64_t stride, VF* sums) {
  if constexpr (i > 0 && i == distinct / 2) {
    for (size_t j = 0; j < distinct / 2; ++j) sums[j + distinct / 2] = sums[j];
  }
  const VF quarter = hn::Mul(load(x + i * stride, Whole()), set(0.25f));
  add_signed<i>(quarter, sums, std::make_index_sequence<distinct>());
}

template <size_t... i>
HWY_INLINE void hadamard_steps(const bf16* x, int64_t stride, VF* sums, std::index_sequence<i...>) {
  (hadamard_step<i, std::bit_ceil(i + 1)>(x, stride, sums), ...);
}

// hadamard16 down each of a vector of columns: 16 rows of x to 16 rows of y, which may not overlap.
HWY_INLINE void hadamard_columns(const bf16* x, int64_t stride, bf16* y) {
  VF sums[16];
  sums[0] = hn::Zero(DF());
  hadamard_steps(x, stride, sums, std::make_index_sequence<16>());
  for (int j = 0; j < 16; ++j) store(sums[j], y + j * stride, Whole());
}

}  // namespace plimsoll::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard

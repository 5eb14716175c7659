// What the kernels share, compiled once for every Highway target: rows of f32 or bf16 as vectors of
// f32, loops over the columns of a row, sums.
//
// Include after hwy/foreach_target.h. A loop over columns calls its body with the first column of a
// vector and with the lanes that count: `Whole`, or, once at the end, `First{n}`. The body passes
// them on to load, store and keep, so that it is written once.

#include <cstring>

#include "hwy/highway.h"
#include "plimsoll/numerics/bf16.h"
#include "plimsoll/runtime/cpu/kernels/parallel.h"

#if defined(PLIMSOLL_RUNTIME_CPU_KERNELS_SIMD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PLIMSOLL_RUNTIME_CPU_KERNELS_SIMD_INL_H_
#undef PLIMSOLL_RUNTIME_CPU_KERNELS_SIMD_INL_H_
#else
#define PLIMSOLL_RUNTIME_CPU_KERNELS_SIMD_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace plimsoll::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using DF = hn::ScalableTag<float>;
using VF = hn::Vec<DF>;

struct Whole {};
struct First {
  int64_t lanes;
};

HWY_INLINE VF set(float value) { return hn::Set(DF(), value); }

// load: the elements at `from` as f32; lanes that do not count are 0.
HWY_INLINE VF load(const float* from, Whole) { return hn::LoadU(DF(), from); }

HWY_INLINE VF load(const bf16* from, Whole) {
  const hn::Rebind<uint32_t, DF> du32;
  const hn::Rebind<uint16_t, DF> du16;
  const auto bits = hn::LoadU(du16, reinterpret_cast<const uint16_t*>(from));
  return hn::BitCast(DF(), hn::ShiftLeft<16>(hn::PromoteTo(du32, bits)));
}

template <class T>
HWY_INLINE VF load(const T* from, First part) {
  T copy[hn::MaxLanes(DF())] = {};
  std::memcpy(copy, from, static_cast<size_t>(part.lanes) * sizeof(T));
  return load(copy, Whole());
}

// store: rounded to the nearest, ties to even, with the bits that bf16's constructor gives.
HWY_INLINE void store(VF v, float* to, Whole) { hn::StoreU(v, DF(), to); }

HWY_INLINE void store(VF v, bf16* to, Whole) {
  const hn::Rebind<uint32_t, DF> du32;
  const hn::Rebind<int32_t, DF> di32;
  const hn::Rebind<uint16_t, DF> du16;
  const auto u = hn::BitCast(du32, v);
  const auto odd = hn::And(hn::ShiftRight<16>(u), hn::Set(du32, 1));
  const auto rounded = hn::ShiftRight<16>(hn::Add(u, hn::Add(odd, hn::Set(du32, 0x7fff))));
  const auto bits =
      hn::IfThenElse(hn::RebindMask(du32, hn::IsNaN(v)), hn::Set(du32, 0x7fff), rounded);
  hn::StoreU(hn::DemoteTo(du16, hn::BitCast(di32, bits)), du16, reinterpret_cast<uint16_t*>(to));
}

template <class T>
HWY_INLINE void store(VF v, T* to, First part) {
  T copy[hn::MaxLanes(DF())];
  store(v, copy, Whole());
  std::memcpy(to, copy, static_cast<size_t>(part.lanes) * sizeof(T));
}

// keep: v where lanes count, `otherwise` where not.
HWY_INLINE VF keep(VF v, VF, Whole) { return v; }
HWY_INLINE VF keep(VF v, VF otherwise, First part) {
  return hn::IfThenElse(hn::FirstN(DF(), static_cast<size_t>(part.lanes)), v, otherwise);
}

// body(column, lanes)
template <class Body>
HWY_INLINE void for_columns(int64_t columns, const Body& body) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(DF()));
  int64_t c = 0;
  for (; c + lanes <= columns; c += lanes) body(c, Whole());
  if (c < columns) body(c, First{columns - c});
}

// add(column, lanes, sum) adds to `sum` what a vector of columns contributes. Returns the sum over
// lanes and columns; four sums run side by side to hide the latency of an addition.
template <class Add>
HWY_INLINE float sum_columns(int64_t columns, const Add& add) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(DF()));
  VF s0 = hn::Zero(DF()), s1 = s0, s2 = s0, s3 = s0;
  int64_t c = 0;
  for (; c + 4 * lanes <= columns; c += 4 * lanes) {
    add(c, Whole(), s0);
    add(c + lanes, Whole(), s1);
    add(c + 2 * lanes, Whole(), s2);
    add(c + 3 * lanes, Whole(), s3);
  }
  for (; c + lanes <= columns; c += lanes) add(c, Whole(), s0);
  if (c < columns) add(c, First{columns - c}, s1);
  return hn::GetLane(hn::SumOfLanes(DF(), hn::Add(hn::Add(s0, s1), hn::Add(s2, s3))));
}

// The same for two sums at once: add(column, lanes, a, b).
struct TwoSums {
  float a, b;
};
template <class Add>
HWY_INLINE TwoSums two_sums_columns(int64_t columns, const Add& add) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(DF()));
  VF a0 = hn::Zero(DF()), a1 = a0, b0 = a0, b1 = a0;
  int64_t c = 0;
  for (; c + 2 * lanes <= columns; c += 2 * lanes) {
    add(c, Whole(), a0, b0);
    add(c + lanes, Whole(), a1, b1);
  }
  for (; c + lanes <= columns; c += lanes) add(c, Whole(), a0, b0);
  if (c < columns) add(c, First{columns - c}, a1, b1);
  return {hn::GetLane(hn::SumOfLanes(DF(), hn::Add(a0, a1))),
          hn::GetLane(hn::SumOfLanes(DF(), hn::Add(b0, b1)))};
}

// e^x for x <= 88, within 2 units in the last place; 0 where that would be subnormal; NaN stays
// NaN. e^x = 2^n e^r with |r| <= ln(2)/2 and e^r from a polynomial, as in Cody & Waite 1980,
// "Software Manual for the Elementary Functions"; coefficients interpolate (e^r - 1 - r) / r^2 at
// Chebyshev nodes. Half the instructions of Highway's Exp, which covers more arguments and hides
// NaN.
HWY_INLINE VF exp(VF x) {
  const hn::RebindToSigned<DF> di;
  // Adding 1.5 * 2^23 rounds to an integer and leaves that integer in the lowest bits.
  const VF magic = set(12582912.0f);
  const VF rounded = hn::MulAdd(x, set(1.44269504f), magic);
  const VF n = hn::Sub(rounded, magic);
  // ln(2) in two parts, of which n times the first is exact.
  const VF r = hn::NegMulAdd(n, set(-2.12194440e-4f), hn::NegMulAdd(n, set(0.693359375f), x));
  VF p = hn::MulAdd(set(0.0013926250394433737f), r, set(0.00836323294788599f));
  p = hn::MulAdd(p, r, set(0.04166655242443085f));
  p = hn::MulAdd(p, r, set(0.16666576266288757f));
  p = hn::MulAdd(p, r, set(0.5f));
  p = hn::MulAdd(p, hn::Mul(r, r), hn::Add(r, set(1.0f)));
  const auto exponent = hn::Add(hn::BitCast(di, rounded), hn::Set(di, 127));
  const VF power = hn::BitCast(DF(), hn::ShiftLeft<23>(exponent));
  return hn::IfThenZeroElse(hn::Lt(x, set(-87.33f)), hn::Mul(p, power));
}

// 1 / (1 + exp(-x)). NaN may get lost: multiply the result by something made of x.
HWY_INLINE VF sigmoid(VF x) {
  const VF e = exp(hn::Min(hn::Neg(x), set(88.0f)));
  return hn::Div(set(1.0f), hn::Add(set(1.0f), e));
}

// out[c] += sum over blocks of partials[block * stride + c], block after block.
inline void add_block_sums(const float* partials, int64_t blocks, int64_t stride, int64_t columns,
                           float* out) {
  parallel_ranges(columns, 256, [=](int64_t begin, int64_t end) HWY_ATTR {
    for_columns(end - begin, [&](int64_t c, auto lanes) HWY_ATTR {
      VF sum = hn::Zero(DF());
      for (int64_t block = 0; block < blocks; ++block) {
        sum = hn::Add(sum, load(partials + block * stride + begin + c, lanes));
      }
      store(hn::Add(load(out + begin + c, lanes), sum), out + begin + c, lanes);
    });
  });
}

}  // namespace plimsoll::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard

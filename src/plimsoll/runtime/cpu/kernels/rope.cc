// x (tokens, >= heads * head_dim), table (sequence, head_dim) f32  ->  x in place
#include "plimsoll/runtime/cpu/kernels/kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "plimsoll/runtime/cpu/kernels/rope.cc"
#include "hwy/foreach_target.h"

#include <cmath>

#include "plimsoll/runtime/cpu/kernels/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace plimsoll::cpu::HWY_NAMESPACE {

template <bool inverse, class T>
HWY_INLINE void rotate_head(T* x, const float* cosines, const float* sines, int64_t half) {
  for_columns(half, [=](int64_t c, auto lanes) HWY_ATTR {
    const VF a = load(x + c, lanes);
    const VF b = load(x + half + c, lanes);
    const VF cosine = load(cosines + c, lanes);
    VF sine = load(sines + c, lanes);
    if constexpr (inverse) sine = hn::Neg(sine);
    store(hn::NegMulAdd(b, sine, hn::Mul(a, cosine)), x + c, lanes);
    store(hn::MulAdd(a, sine, hn::Mul(b, cosine)), x + half + c, lanes);
  });
}

template <bool inverse, class T>
void rope_of(const View& x, const View& table, int64_t heads, int64_t head_dim, int64_t sequence) {
  parallel_for(x.rows, [=](int64_t t) HWY_ATTR {
    const float* cosines = table.as<float>() + t % sequence * head_dim;
    for (int64_t head = 0; head < heads; ++head) {
      rotate_head<inverse>(x.as<T>() + t * x.columns + head * head_dim, cosines,
                           cosines + head_dim / 2, head_dim / 2);
    }
  });
}

template <class T>
void rope_of(const View& x, const View& table, int64_t heads, int64_t head_dim, int64_t sequence,
             bool inverse) {
  inverse ? rope_of<true, T>(x, table, heads, head_dim, sequence)
          : rope_of<false, T>(x, table, heads, head_dim, sequence);
}

void rope(const View& x, const View& table, int64_t heads, int64_t head_dim, int64_t sequence,
          bool inverse) {
  x.format == Format::bf16 ? rope_of<bf16>(x, table, heads, head_dim, sequence, inverse)
                           : rope_of<float>(x, table, heads, head_dim, sequence, inverse);
}

}  // namespace plimsoll::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plimsoll::cpu {

void rope_table(const model::RopeFrequencies& frequencies, const View& table) {
  const int64_t half = table.columns / 2;
  parallel_for(table.rows, [=, &frequencies](int64_t p) {
    float* row = table.as<float>() + p * table.columns;
    for (int64_t i = 0; i < half; ++i) {
      const double angle = static_cast<double>(p) * frequencies.radians[static_cast<size_t>(i)];
      row[i] = static_cast<float>(frequencies.amplitude * std::cos(angle));
      row[half + i] = static_cast<float>(frequencies.amplitude * std::sin(angle));
    }
  });
}

HWY_EXPORT(rope);

void rope(const View& x, const View& table, int64_t heads, int64_t head_dim, int64_t sequence,
          bool inverse) {
  HWY_DYNAMIC_DISPATCH(rope)(x, table, heads, head_dim, sequence, inverse);
}

}  // namespace plimsoll::cpu
#endif  // HWY_ONCE

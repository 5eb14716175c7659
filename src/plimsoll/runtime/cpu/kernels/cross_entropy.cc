// logits (tokens, vocab) f32, targets (tokens) i32  ->  losses (tokens) f32, dlogits (tokens,
// vocab)
#include "plimsoll/runtime/cpu/kernels/kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "plimsoll/runtime/cpu/kernels/cross_entropy.cc"
#include "hwy/foreach_target.h"

#include <cmath>
#include <limits>

#include "plimsoll/runtime/cpu/kernels/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace plimsoll::cpu::HWY_NAMESPACE {

HWY_INLINE float max_columns(const float* x, int64_t columns) {
  const VF lowest = set(std::numeric_limits<float>::lowest());
  VF max = lowest;
  for_columns(columns, [&, x, lowest](int64_t c, auto lanes) HWY_ATTR {
    max = hn::Max(max, keep(load(x + c, lanes), lowest, lanes));
  });
  return hn::GetLane(hn::MaxOfLanes(DF(), max));
}

// The largest logit, and the sum of exp(logit - max).
struct Softmax {
  float max;
  double sum;
};

// One pass over memory: a tile is read twice, the second time from the nearest cache; when it
// raises the maximum, the sum so far is scaled.
HWY_INLINE Softmax softmax_of_row(const float* logits, int64_t vocab) {
  constexpr int64_t tile_columns = 2048;
  Softmax result{std::numeric_limits<float>::lowest(), 0};
  for (int64_t begin = 0; begin < vocab; begin += tile_columns) {
    const float* tile = logits + begin;
    const int64_t columns = std::min(tile_columns, vocab - begin);
    const float max = std::max(result.max, max_columns(tile, columns));
    const float sum = sum_columns(columns, [=](int64_t c, auto lanes, VF& s) HWY_ATTR {
      const VF e = exp(hn::Sub(load(tile + c, lanes), set(max)));
      s = hn::Add(s, keep(e, hn::Zero(DF()), lanes));
    });
    result.sum = result.sum * std::exp(static_cast<double>(result.max) - max) + sum;
    result.max = max;
  }
  return result;
}

template <class T>
void cross_entropy_of(const View& logits, const View& targets, float scale, const View& losses,
                      const View& dlogits) {
  const int64_t vocab = logits.columns;
  parallel_for(logits.rows, [&, vocab, scale](int64_t t) HWY_ATTR {
    const float* row = logits.as<float>() + t * vocab;
    T* d_row = dlogits.as<T>() + t * vocab;
    const int32_t target = targets.as<int32_t>()[t];
    if (target < 0) {
      losses.as<float>()[t] = 0;
      std::fill_n(d_row, vocab, T(0.0f));
      return;
    }
    const Softmax softmax = softmax_of_row(row, vocab);
    const double shifted = static_cast<double>(row[target]) - softmax.max;
    losses.as<float>()[t] = static_cast<float>(std::log(softmax.sum) - shifted);

    const auto factor = static_cast<float>(scale / softmax.sum);
    for_columns(vocab, [=](int64_t c, auto lanes) HWY_ATTR {
      const VF e = exp(hn::Sub(load(row + c, lanes), set(softmax.max)));
      store(hn::Mul(e, set(factor)), d_row + c, lanes);
    });
    // Apart, and in double: a probability near 1 leaves a small difference.
    const double probability = std::exp(shifted) / softmax.sum;
    d_row[target] = T(static_cast<float>(scale * (probability - 1)));
  });
}

void cross_entropy(const View& logits, const View& targets, float scale, const View& losses,
                   const View& dlogits) {
  dlogits.format == Format::bf16 ? cross_entropy_of<bf16>(logits, targets, scale, losses, dlogits)
                                 : cross_entropy_of<float>(logits, targets, scale, losses, dlogits);
}

}  // namespace plimsoll::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plimsoll::cpu {

HWY_EXPORT(cross_entropy);

void cross_entropy(const View& logits, const View& targets, float scale, const View& losses,
                   const View& dlogits) {
  HWY_DYNAMIC_DISPATCH(cross_entropy)(logits, targets, scale, losses, dlogits);
}

}  // namespace plimsoll::cpu
#endif  // HWY_ONCE

// x (tokens, hidden), weight, bias (hidden) f32
//   ->  y (tokens, hidden), statistics (tokens, 2) f32 = mean, rstd
#include "plimsoll/runtime/cpu/kernels/kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "plimsoll/runtime/cpu/kernels/layer_norm.cc"
#include "hwy/foreach_target.h"

#include <cmath>

#include "plimsoll/runtime/cpu/kernels/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace plimsoll::cpu::HWY_NAMESPACE {

template <class T>
HWY_INLINE void layer_norm_row(const T* x, const float* weight, const float* bias, int64_t hidden,
                               float eps, T* y, float* statistics) {
  const auto n = static_cast<float>(hidden);
  const float total = sum_columns(hidden, [=](int64_t c, auto lanes, VF& sum)
                                              HWY_ATTR { sum = hn::Add(sum, load(x + c, lanes)); });
  const float mean = total / n;
  // The variance from the differences, in a second pass: E[x^2] - mean^2 would cancel.
  const float squares = sum_columns(hidden, [=](int64_t c, auto lanes, VF& sum) HWY_ATTR {
    const VF v = keep(hn::Sub(load(x + c, lanes), set(mean)), hn::Zero(DF()), lanes);
    sum = hn::MulAdd(v, v, sum);
  });
  const float rstd = 1.0f / std::sqrt(squares / n + eps);
  for_columns(hidden, [=](int64_t c, auto lanes) HWY_ATTR {
    const VF normal = hn::Mul(hn::Sub(load(x + c, lanes), set(mean)), set(rstd));
    store(hn::MulAdd(normal, load(weight + c, lanes), load(bias + c, lanes)), y + c, lanes);
  });
  statistics[0] = mean;
  statistics[1] = rstd;
}

// g = dy * weight, n = (x - mean) rstd:
// dx = rstd (g - mean(g) - n mean(g n)) (+ dx);  dweight += dy n;  dbias += dy
template <bool accumulate, class T>
HWY_INLINE void layer_norm_row_backward(const T* dy, const T* x, const float* weight, float mean,
                                        float rstd, int64_t hidden, T* dx, float* dweight,
                                        float* dbias) {
  const auto sums = two_sums_columns(hidden, [=](int64_t c, auto lanes, VF& a, VF& b) HWY_ATTR {
    const VF g = hn::Mul(load(dy + c, lanes), load(weight + c, lanes));
    const VF normal = hn::Mul(hn::Sub(load(x + c, lanes), set(mean)), set(rstd));
    a = hn::Add(a, g);
    b = hn::MulAdd(g, normal, b);
  });
  const float mean_g = sums.a / static_cast<float>(hidden);
  const float mean_gn = sums.b / static_cast<float>(hidden);
  for_columns(hidden, [=](int64_t c, auto lanes) HWY_ATTR {
    const VF d = load(dy + c, lanes);
    const VF normal = hn::Mul(hn::Sub(load(x + c, lanes), set(mean)), set(rstd));
    const VF g = hn::MulSub(d, load(weight + c, lanes), set(mean_g));
    const VF centred = hn::NegMulAdd(normal, set(mean_gn), g);
    if constexpr (accumulate) {
      store(hn::MulAdd(centred, set(rstd), load(dx + c, lanes)), dx + c, lanes);
    } else {
      store(hn::Mul(centred, set(rstd)), dx + c, lanes);
    }
    store(hn::MulAdd(d, normal, load(dweight + c, lanes)), dweight + c, lanes);
    store(hn::Add(d, load(dbias + c, lanes)), dbias + c, lanes);
  });
}

template <class T>
void layer_norm_of(const View& x, const View& weight, const View& bias, float eps, const View& y,
                   const View& statistics) {
  const int64_t hidden = x.columns;
  parallel_for(x.rows, [&, hidden](int64_t t) HWY_ATTR {
    layer_norm_row(x.as<T>() + t * hidden, weight.as<float>(), bias.as<float>(), hidden, eps,
                   y.as<T>() + t * hidden, statistics.as<float>() + 2 * t);
  });
}

void layer_norm(const View& x, const View& weight, const View& bias, float eps, const View& y,
                const View& statistics) {
  x.format == Format::bf16 ? layer_norm_of<bf16>(x, weight, bias, eps, y, statistics)
                           : layer_norm_of<float>(x, weight, bias, eps, y, statistics);
}

template <class T>
void add_layer_norm_of(const View& x, const View& branch, const View& weight, const View& bias,
                       float eps, const View& sum, const View& y, const View& statistics) {
  const int64_t hidden = x.columns;
  parallel_for(x.rows, [&, hidden](int64_t t) HWY_ATTR {
    const T* x_row = x.as<T>() + t * hidden;
    const T* branch_row = branch.as<T>() + t * hidden;
    T* sum_row = sum.as<T>() + t * hidden;
    for_columns(hidden, [=](int64_t c, auto lanes) HWY_ATTR {
      store(hn::Add(load(x_row + c, lanes), load(branch_row + c, lanes)), sum_row + c, lanes);
    });
    layer_norm_row(sum_row, weight.as<float>(), bias.as<float>(), hidden, eps,
                   y.as<T>() + t * hidden, statistics.as<float>() + 2 * t);
  });
}

void add_layer_norm(const View& x, const View& branch, const View& weight, const View& bias,
                    float eps, const View& sum, const View& y, const View& statistics) {
  x.format == Format::bf16
      ? add_layer_norm_of<bf16>(x, branch, weight, bias, eps, sum, y, statistics)
      : add_layer_norm_of<float>(x, branch, weight, bias, eps, sum, y, statistics);
}

template <bool accumulate, class T>
void layer_norm_backward_of(const View& dy, const View& x, const View& weight,
                            const View& statistics, const View& dx, const View& dweight,
                            const View& dbias, float* partials) {
  const int64_t hidden = x.columns;
  const RowBlocks blocks(x.rows);
  parallel_for(blocks.count(), [&, hidden](int64_t block) HWY_ATTR {
    float* partial = partials + block * 2 * hidden;
    std::fill_n(partial, 2 * hidden, 0.0f);
    for (int64_t t = blocks.begin(block); t < blocks.end(block); ++t) {
      const float* row_statistics = statistics.as<float>() + 2 * t;
      layer_norm_row_backward<accumulate>(
          dy.as<T>() + t * hidden, x.as<T>() + t * hidden, weight.as<float>(), row_statistics[0],
          row_statistics[1], hidden, dx.as<T>() + t * hidden, partial, partial + hidden);
    }
  });
  add_block_sums(partials, blocks.count(), 2 * hidden, hidden, dweight.as<float>());
  add_block_sums(partials + hidden, blocks.count(), 2 * hidden, hidden, dbias.as<float>());
}

template <class T>
void layer_norm_backward_of(const View& dy, const View& x, const View& weight,
                            const View& statistics, bool accumulate, const View& dx,
                            const View& dweight, const View& dbias, float* partials) {
  accumulate
      ? layer_norm_backward_of<true, T>(dy, x, weight, statistics, dx, dweight, dbias, partials)
      : layer_norm_backward_of<false, T>(dy, x, weight, statistics, dx, dweight, dbias, partials);
}

void layer_norm_backward(const View& dy, const View& x, const View& weight, const View& statistics,
                         bool accumulate, const View& dx, const View& dweight, const View& dbias,
                         Workspace workspace) {
  auto* partials = reinterpret_cast<float*>(workspace.data());
  x.format == Format::bf16 ? layer_norm_backward_of<bf16>(dy, x, weight, statistics, accumulate, dx,
                                                          dweight, dbias, partials)
                           : layer_norm_backward_of<float>(dy, x, weight, statistics, accumulate,
                                                           dx, dweight, dbias, partials);
}

}  // namespace plimsoll::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plimsoll::cpu {

HWY_EXPORT(layer_norm);
HWY_EXPORT(add_layer_norm);
HWY_EXPORT(layer_norm_backward);

void layer_norm(const View& x, const View& weight, const View& bias, float eps, const View& y,
                const View& statistics) {
  HWY_DYNAMIC_DISPATCH(layer_norm)(x, weight, bias, eps, y, statistics);
}

void add_layer_norm(const View& x, const View& branch, const View& weight, const View& bias,
                    float eps, const View& sum, const View& y, const View& statistics) {
  HWY_DYNAMIC_DISPATCH(add_layer_norm)(x, branch, weight, bias, eps, sum, y, statistics);
}

size_t layer_norm_backward_workspace(int64_t tokens, int64_t hidden) {
  return static_cast<size_t>(RowBlocks(tokens).count() * 2 * hidden) * sizeof(float);
}

void layer_norm_backward(const View& dy, const View& x, const View& weight, const View& statistics,
                         bool accumulate, const View& dx, const View& dweight, const View& dbias,
                         Workspace workspace) {
  HWY_DYNAMIC_DISPATCH(layer_norm_backward)
  (dy, x, weight, statistics, accumulate, dx, dweight, dbias, workspace);
}

}  // namespace plimsoll::cpu
#endif  // HWY_ONCE

// x (tokens, hidden), weight (hidden) f32  ->  y (tokens, hidden), rstd (tokens) f32
#include "plimsoll/runtime/cpu/kernels/kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "plimsoll/runtime/cpu/kernels/rms_norm.cc"
#include "hwy/foreach_target.h"

#include "plimsoll/runtime/cpu/kernels/rms_row-inl.h"

HWY_BEFORE_NAMESPACE();
namespace plimsoll::cpu::HWY_NAMESPACE {

template <class T>
void rms_norm_of(const View& x, const View& weight, float eps, const View& y, const View& rstd) {
  const int64_t hidden = x.columns;
  parallel_for(x.rows, [&, hidden](int64_t t) HWY_ATTR {
    rstd.as<float>()[t] =
        rms_row(x.as<T>() + t * hidden, weight.as<float>(), hidden, eps, y.as<T>() + t * hidden);
  });
}

void rms_norm(const View& x, const View& weight, float eps, const View& y, const View& rstd) {
  x.format == Format::bf16 ? rms_norm_of<bf16>(x, weight, eps, y, rstd)
                           : rms_norm_of<float>(x, weight, eps, y, rstd);
}

template <class T>
void add_rms_norm_of(const View& x, const View& branch, const View& weight, float eps,
                     const View& sum, const View& y, const View& rstd) {
  const int64_t hidden = x.columns;
  parallel_for(x.rows, [&, hidden](int64_t t) HWY_ATTR {
    const T* x_row = x.as<T>() + t * hidden;
    const T* branch_row = branch.as<T>() + t * hidden;
    T* sum_row = sum.as<T>() + t * hidden;
    for_columns(hidden, [=](int64_t c, auto lanes) HWY_ATTR {
      store(hn::Add(load(x_row + c, lanes), load(branch_row + c, lanes)), sum_row + c, lanes);
    });
    rstd.as<float>()[t] = rms_row(sum_row, weight.as<float>(), hidden, eps, y.as<T>() + t * hidden);
  });
}

void add_rms_norm(const View& x, const View& branch, const View& weight, float eps, const View& sum,
                  const View& y, const View& rstd) {
  x.format == Format::bf16 ? add_rms_norm_of<bf16>(x, branch, weight, eps, sum, y, rstd)
                           : add_rms_norm_of<float>(x, branch, weight, eps, sum, y, rstd);
}

template <bool accumulate, class T>
void rms_norm_backward_of(const View& dy, const View& x, const View& weight, const View& rstd,
                          const View& dx, const View& dweight, float* partials) {
  const int64_t hidden = x.columns;
  const RowBlocks blocks(x.rows);
  parallel_for(blocks.count(), [&, hidden](int64_t block) HWY_ATTR {
    float* partial = partials + block * hidden;
    std::fill_n(partial, hidden, 0.0f);
    for (int64_t t = blocks.begin(block); t < blocks.end(block); ++t) {
      rms_row_backward<accumulate>(dy.as<T>() + t * hidden, x.as<T>() + t * hidden,
                                   weight.as<float>(), rstd.as<float>()[t], hidden,
                                   dx.as<T>() + t * hidden, partial);
    }
  });
  add_block_sums(partials, blocks.count(), hidden, hidden, dweight.as<float>());
}

template <class T>
void rms_norm_backward_of(const View& dy, const View& x, const View& weight, const View& rstd,
                          bool accumulate, const View& dx, const View& dweight, float* partials) {
  accumulate ? rms_norm_backward_of<true, T>(dy, x, weight, rstd, dx, dweight, partials)
             : rms_norm_backward_of<false, T>(dy, x, weight, rstd, dx, dweight, partials);
}

void rms_norm_backward(const View& dy, const View& x, const View& weight, const View& rstd,
                       bool accumulate, const View& dx, const View& dweight, Workspace workspace) {
  auto* partials = reinterpret_cast<float*>(workspace.data());
  x.format == Format::bf16
      ? rms_norm_backward_of<bf16>(dy, x, weight, rstd, accumulate, dx, dweight, partials)
      : rms_norm_backward_of<float>(dy, x, weight, rstd, accumulate, dx, dweight, partials);
}

}  // namespace plimsoll::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plimsoll::cpu {

HWY_EXPORT(rms_norm);
HWY_EXPORT(add_rms_norm);
HWY_EXPORT(rms_norm_backward);

void rms_norm(const View& x, const View& weight, float eps, const View& y, const View& rstd) {
  HWY_DYNAMIC_DISPATCH(rms_norm)(x, weight, eps, y, rstd);
}

void add_rms_norm(const View& x, const View& branch, const View& weight, float eps, const View& sum,
                  const View& y, const View& rstd) {
  HWY_DYNAMIC_DISPATCH(add_rms_norm)(x, branch, weight, eps, sum, y, rstd);
}

size_t rms_norm_backward_workspace(int64_t tokens, int64_t hidden) {
  return static_cast<size_t>(RowBlocks(tokens).count() * hidden) * sizeof(float);
}

void rms_norm_backward(const View& dy, const View& x, const View& weight, const View& rstd,
                       bool accumulate, const View& dx, const View& dweight, Workspace workspace) {
  HWY_DYNAMIC_DISPATCH(rms_norm_backward)
  (dy, x, weight, rstd, accumulate, dx, dweight, workspace);
}

}  // namespace plimsoll::cpu
#endif  // HWY_ONCE

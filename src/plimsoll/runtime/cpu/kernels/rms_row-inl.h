// RMSNorm of one row and its gradient, shared by rms_norm.cc and qk_norm.cc.

#include <cmath>

#include "plimsoll/runtime/cpu/kernels/simd-inl.h"

#if defined(PLIMSOLL_RUNTIME_CPU_KERNELS_RMS_ROW_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PLIMSOLL_RUNTIME_CPU_KERNELS_RMS_ROW_INL_H_
#undef PLIMSOLL_RUNTIME_CPU_KERNELS_RMS_ROW_INL_H_
#else
#define PLIMSOLL_RUNTIME_CPU_KERNELS_RMS_ROW_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace plimsoll::cpu::HWY_NAMESPACE {

// y = x * rstd * weight; returns rstd = 1 / sqrt(mean(x^2) + eps).
template <class T>
HWY_INLINE float rms_row(const T* x, const float* weight, int64_t columns, float eps, T* y) {
  const float squares = sum_columns(columns, [=](int64_t c, auto lanes, VF& sum) HWY_ATTR {
    const VF v = load(x + c, lanes);
    sum = hn::MulAdd(v, v, sum);
  });
  const float rstd = 1.0f / std::sqrt(squares / static_cast<float>(columns) + eps);
  for_columns(columns, [=](int64_t c, auto lanes) HWY_ATTR {
    const VF scaled = hn::Mul(load(x + c, lanes), set(rstd));
    store(hn::Mul(scaled, load(weight + c, lanes)), y + c, lanes);
  });
  return rstd;
}

// dx = rstd (g - x rstd^2 mean(g x)) (+ dx), g = dy * weight;  dweight += dy * x * rstd.
// dx may be dy.
template <bool accumulate, class T>
HWY_INLINE void rms_row_backward(const T* dy, const T* x, const float* weight, float rstd,
                                 int64_t columns, T* dx, float* dweight) {
  const float dot = sum_columns(columns, [=](int64_t c, auto lanes, VF& sum) HWY_ATTR {
    const VF g = hn::Mul(load(dy + c, lanes), load(weight + c, lanes));
    sum = hn::MulAdd(g, load(x + c, lanes), sum);
  });
  const float correction = dot * rstd * rstd / static_cast<float>(columns);
  for_columns(columns, [=](int64_t c, auto lanes) HWY_ATTR {
    const VF d = load(dy + c, lanes);
    const VF v = load(x + c, lanes);
    const VF g = hn::Mul(d, load(weight + c, lanes));
    const VF centred = hn::NegMulAdd(v, set(correction), g);
    if constexpr (accumulate) {
      store(hn::MulAdd(centred, set(rstd), load(dx + c, lanes)), dx + c, lanes);
    } else {
      store(hn::Mul(centred, set(rstd)), dx + c, lanes);
    }
    const VF normal = hn::Mul(v, set(rstd));
    store(hn::MulAdd(d, normal, load(dweight + c, lanes)), dweight + c, lanes);
  });
}

}  // namespace plimsoll::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard

// SwiGLU: gate_up (tokens, 2 f)  ->  y (tokens, f).   GELU: x (tokens, f), bias (f) f32  ->  y.
#include "plimsoll/runtime/cpu/kernels/kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "plimsoll/runtime/cpu/kernels/activation.cc"
#include "hwy/foreach_target.h"

#include "plimsoll/runtime/cpu/kernels/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace plimsoll::cpu::HWY_NAMESPACE {

template <class T>
void swi_glu_of(const View& gate_up, const View& y) {
  const int64_t f = y.columns;
  parallel_for(y.rows, [&, f](int64_t t) HWY_ATTR {
    const T* gate = gate_up.as<T>() + t * 2 * f;
    T* y_row = y.as<T>() + t * f;
    for_columns(f, [=](int64_t c, auto lanes) HWY_ATTR {
      const VF z = load(gate + c, lanes);
      const VF up = load(gate + f + c, lanes);
      store(hn::Mul(hn::Mul(z, sigmoid(z)), up), y_row + c, lanes);
    });
  });
}

void swi_glu(const View& gate_up, const View& y) {
  y.format == Format::bf16 ? swi_glu_of<bf16>(gate_up, y) : swi_glu_of<float>(gate_up, y);
}

// silu'(z) = s (1 + z (1 - s)), s = sigmoid(z)
template <class T>
void swi_glu_backward_of(const View& dy, const View& gate_up, const View& dgate_up) {
  const int64_t f = dy.columns;
  parallel_for(dy.rows, [&, f](int64_t t) HWY_ATTR {
    const T* dy_row = dy.as<T>() + t * f;
    const T* gate = gate_up.as<T>() + t * 2 * f;
    T* dgate = dgate_up.as<T>() + t * 2 * f;
    for_columns(f, [=](int64_t c, auto lanes) HWY_ATTR {
      const VF d = load(dy_row + c, lanes);
      const VF z = load(gate + c, lanes);
      const VF up = load(gate + f + c, lanes);
      const VF s = sigmoid(z);
      const VF silu = hn::Mul(z, s);
      const VF slope = hn::MulAdd(silu, hn::Sub(set(1.0f), s), s);
      store(hn::Mul(hn::Mul(d, up), slope), dgate + c, lanes);
      store(hn::Mul(d, silu), dgate + f + c, lanes);
    });
  });
}

void swi_glu_backward(const View& dy, const View& gate_up, const View& dgate_up) {
  dy.format == Format::bf16 ? swi_glu_backward_of<bf16>(dy, gate_up, dgate_up)
                            : swi_glu_backward_of<float>(dy, gate_up, dgate_up);
}

// 1/2 (1 + tanh z) = sigmoid(2 z), without the cancellation for negative z:
// gelu(u) = u sigmoid(a(u)),  a(u) = 2 sqrt(2/pi) (u + 0.044715 u^3)
constexpr float gelu_linear = 1.5957691216057308f;  // 2 sqrt(2/pi)
constexpr float gelu_cubic = 1.5957691216057308f * 0.044715f;

template <class T>
void bias_gelu_of(const View& x, const View& bias, const View& y) {
  const int64_t f = x.columns;
  parallel_for(x.rows, [&, f](int64_t t) HWY_ATTR {
    const T* x_row = x.as<T>() + t * f;
    const float* b = bias.as<float>();
    T* y_row = y.as<T>() + t * f;
    for_columns(f, [=](int64_t c, auto lanes) HWY_ATTR {
      const VF u = hn::Add(load(x_row + c, lanes), load(b + c, lanes));
      const VF slope = hn::MulAdd(hn::Mul(u, u), set(gelu_cubic), set(gelu_linear));
      store(hn::Mul(u, sigmoid(hn::Mul(u, slope))), y_row + c, lanes);
    });
  });
}

void bias_gelu(const View& x, const View& bias, const View& y) {
  x.format == Format::bf16 ? bias_gelu_of<bf16>(x, bias, y) : bias_gelu_of<float>(x, bias, y);
}

// gelu'(u) = s + u s (1 - s) a'(u), s = sigmoid(a(u))
template <class T>
void bias_gelu_backward_of(const View& dy_dx, const View& x, const View& bias, const View& dbias,
                           float* partials) {
  const int64_t f = x.columns;
  const RowBlocks blocks(x.rows);
  parallel_for(blocks.count(), [&, f](int64_t block) HWY_ATTR {
    float* partial = partials + block * f;
    std::fill_n(partial, f, 0.0f);
    for (int64_t t = blocks.begin(block); t < blocks.end(block); ++t) {
      const T* x_row = x.as<T>() + t * f;
      const float* b = bias.as<float>();
      T* d_row = dy_dx.as<T>() + t * f;
      for_columns(f, [=](int64_t c, auto lanes) HWY_ATTR {
        const VF u = hn::Add(load(x_row + c, lanes), load(b + c, lanes));
        const VF cubic = hn::Mul(hn::Mul(u, u), set(gelu_cubic));
        const VF s = sigmoid(hn::Mul(u, hn::Add(cubic, set(gelu_linear))));
        const VF a_slope = hn::MulAdd(cubic, set(3.0f), set(gelu_linear));
        const VF us = hn::Mul(u, s);
        const VF slope = hn::MulAdd(hn::Mul(us, hn::Sub(set(1.0f), s)), a_slope, s);
        const VF dx = hn::Mul(load(d_row + c, lanes), slope);
        store(dx, d_row + c, lanes);
        store(hn::Add(load(partial + c, lanes), dx), partial + c, lanes);
      });
    }
  });
  add_block_sums(partials, blocks.count(), f, f, dbias.as<float>());
}

void bias_gelu_backward(const View& dy_dx, const View& x, const View& bias, const View& dbias,
                        Workspace workspace) {
  auto* partials = reinterpret_cast<float*>(workspace.data());
  x.format == Format::bf16 ? bias_gelu_backward_of<bf16>(dy_dx, x, bias, dbias, partials)
                           : bias_gelu_backward_of<float>(dy_dx, x, bias, dbias, partials);
}

}  // namespace plimsoll::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plimsoll::cpu {

HWY_EXPORT(swi_glu);
HWY_EXPORT(swi_glu_backward);
HWY_EXPORT(bias_gelu);
HWY_EXPORT(bias_gelu_backward);

void swi_glu(const View& gate_up, const View& y) { HWY_DYNAMIC_DISPATCH(swi_glu)(gate_up, y); }

void swi_glu_backward(const View& dy, const View& gate_up, const View& dgate_up) {
  HWY_DYNAMIC_DISPATCH(swi_glu_backward)(dy, gate_up, dgate_up);
}

void bias_gelu(const View& x, const View& bias, const View& y) {
  HWY_DYNAMIC_DISPATCH(bias_gelu)(x, bias, y);
}

size_t bias_gelu_backward_workspace(int64_t tokens, int64_t columns) {
  return static_cast<size_t>(RowBlocks(tokens).count() * columns) * sizeof(float);
}

void bias_gelu_backward(const View& dy_dx, const View& x, const View& bias, const View& dbias,
                        Workspace workspace) {
  HWY_DYNAMIC_DISPATCH(bias_gelu_backward)(dy_dx, x, bias, dbias, workspace);
}

}  // namespace plimsoll::cpu
#endif  // HWY_ONCE

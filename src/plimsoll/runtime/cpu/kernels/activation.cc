// Gated: gate_up (tokens, 2 f)  ->  y (tokens, f).   GELU: x (tokens, f), [bias (f) f32]  ->  y.
#include "plimsoll/runtime/cpu/kernels/kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "plimsoll/runtime/cpu/kernels/activation.cc"
#include "hwy/foreach_target.h"

#include "plimsoll/runtime/cpu/kernels/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace plimsoll::cpu::HWY_NAMESPACE {

// A function and its slope at the same argument.
struct ValueAndSlope {
  VF value, slope;
};

// silu'(z) = s (1 + z (1 - s)), s = sigmoid(z)
struct Silu {
  static HWY_INLINE VF value(VF z) { return hn::Mul(z, sigmoid(z)); }
  static HWY_INLINE ValueAndSlope value_and_slope(VF z) {
    const VF s = sigmoid(z);
    const VF silu = hn::Mul(z, s);
    return {silu, hn::MulAdd(silu, hn::Sub(set(1.0f), s), s)};
  }
};

// 1/2 (1 + tanh z) = sigmoid(2 z), without the cancellation for negative z:
// gelu(u) = u sigmoid(a(u)),  a(u) = 2 sqrt(2/pi) (u + 0.044715 u^3)
// gelu'(u) = s + u s (1 - s) a'(u), s = sigmoid(a(u))
struct GeluTanh {
  static constexpr float linear = 1.5957691216057308f;  // 2 sqrt(2/pi)
  static constexpr float cubic = 1.5957691216057308f * 0.044715f;
  static HWY_INLINE VF value(VF u) {
    const VF slope = hn::MulAdd(hn::Mul(u, u), set(cubic), set(linear));
    return hn::Mul(u, sigmoid(hn::Mul(u, slope)));
  }
  static HWY_INLINE ValueAndSlope value_and_slope(VF u) {
    const VF cube = hn::Mul(hn::Mul(u, u), set(cubic));
    const VF s = sigmoid(hn::Mul(u, hn::Add(cube, set(linear))));
    const VF a_slope = hn::MulAdd(cube, set(3.0f), set(linear));
    const VF us = hn::Mul(u, s);
    return {us, hn::MulAdd(hn::Mul(us, hn::Sub(set(1.0f), s)), a_slope, s)};
  }
};

template <class Function>
void with_gate(Gate gate, Function&& function) {
  switch (gate) {
    case Gate::silu:
      return function(Silu{});
    case Gate::gelu:
      return function(GeluTanh{});
  }
}

template <class F, class T>
void glu_of(const View& gate_up, const View& y) {
  const int64_t f = y.columns;
  parallel_for(y.rows, [&, f](int64_t t) HWY_ATTR {
    const T* gate = gate_up.as<T>() + t * 2 * f;
    T* y_row = y.as<T>() + t * f;
    for_columns(f, [=](int64_t c, auto lanes) HWY_ATTR {
      const VF up = load(gate + f + c, lanes);
      store(hn::Mul(F::value(load(gate + c, lanes)), up), y_row + c, lanes);
    });
  });
}

void glu(Gate gate, const View& gate_up, const View& y) {
  with_gate(gate, [&]<class F>(F) {
    y.format == Format::bf16 ? glu_of<F, bf16>(gate_up, y) : glu_of<F, float>(gate_up, y);
  });
}

template <class F, class T>
void glu_backward_of(const View& dy, const View& gate_up, const View& dgate_up) {
  const int64_t f = dy.columns;
  parallel_for(dy.rows, [&, f](int64_t t) HWY_ATTR {
    const T* dy_row = dy.as<T>() + t * f;
    const T* gate = gate_up.as<T>() + t * 2 * f;
    T* dgate = dgate_up.as<T>() + t * 2 * f;
    for_columns(f, [=](int64_t c, auto lanes) HWY_ATTR {
      const VF d = load(dy_row + c, lanes);
      const VF up = load(gate + f + c, lanes);
      const ValueAndSlope at = F::value_and_slope(load(gate + c, lanes));
      store(hn::Mul(hn::Mul(d, up), at.slope), dgate + c, lanes);
      store(hn::Mul(d, at.value), dgate + f + c, lanes);
    });
  });
}

void glu_backward(Gate gate, const View& dy, const View& gate_up, const View& dgate_up) {
  with_gate(gate, [&]<class F>(F) {
    dy.format == Format::bf16 ? glu_backward_of<F, bf16>(dy, gate_up, dgate_up)
                              : glu_backward_of<F, float>(dy, gate_up, dgate_up);
  });
}

// x + bias; `bias` is null where there is none.
template <class T, class Lanes>
HWY_INLINE VF biased(const T* x, const float* bias, int64_t c, Lanes lanes) {
  const VF u = load(x + c, lanes);
  return bias == nullptr ? u : hn::Add(u, load(bias + c, lanes));
}

template <class T>
void gelu_of(const View& x, const View& bias, const View& y) {
  const int64_t f = x.columns;
  parallel_for(x.rows, [&, f](int64_t t) HWY_ATTR {
    const T* x_row = x.as<T>() + t * f;
    const float* b = bias.as<float>();
    T* y_row = y.as<T>() + t * f;
    for_columns(f, [=](int64_t c, auto lanes) HWY_ATTR {
      store(GeluTanh::value(biased(x_row, b, c, lanes)), y_row + c, lanes);
    });
  });
}

void gelu(const View& x, const View& bias, const View& y) {
  x.format == Format::bf16 ? gelu_of<bf16>(x, bias, y) : gelu_of<float>(x, bias, y);
}

template <class T>
void gelu_backward_of(const View& dy_dx, const View& x, const View& bias, const View& dbias,
                      float* partials) {
  const int64_t f = x.columns;
  const float* b = bias.as<float>();
  const RowBlocks blocks(x.rows);
  parallel_for(blocks.count(), [&, f, b](int64_t block) HWY_ATTR {
    float* partial = b == nullptr ? nullptr : partials + block * f;
    if (partial != nullptr) std::fill_n(partial, f, 0.0f);
    for (int64_t t = blocks.begin(block); t < blocks.end(block); ++t) {
      const T* x_row = x.as<T>() + t * f;
      T* d_row = dy_dx.as<T>() + t * f;
      for_columns(f, [=](int64_t c, auto lanes) HWY_ATTR {
        const VF slope = GeluTanh::value_and_slope(biased(x_row, b, c, lanes)).slope;
        const VF dx = hn::Mul(load(d_row + c, lanes), slope);
        store(dx, d_row + c, lanes);
        if (partial != nullptr) store(hn::Add(load(partial + c, lanes), dx), partial + c, lanes);
      });
    }
  });
  if (b != nullptr) add_block_sums(partials, blocks.count(), f, f, dbias.as<float>());
}

void gelu_backward(const View& dy_dx, const View& x, const View& bias, const View& dbias,
                   Workspace workspace) {
  auto* partials = reinterpret_cast<float*>(workspace.data());
  x.format == Format::bf16 ? gelu_backward_of<bf16>(dy_dx, x, bias, dbias, partials)
                           : gelu_backward_of<float>(dy_dx, x, bias, dbias, partials);
}

}  // namespace plimsoll::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plimsoll::cpu {

HWY_EXPORT(glu);
HWY_EXPORT(glu_backward);
HWY_EXPORT(gelu);
HWY_EXPORT(gelu_backward);

void glu(Gate gate, const View& gate_up, const View& y) {
  HWY_DYNAMIC_DISPATCH(glu)(gate, gate_up, y);
}

void glu_backward(Gate gate, const View& dy, const View& gate_up, const View& dgate_up) {
  HWY_DYNAMIC_DISPATCH(glu_backward)(gate, dy, gate_up, dgate_up);
}

void gelu(const View& x, const View& bias, const View& y) {
  HWY_DYNAMIC_DISPATCH(gelu)(x, bias, y);
}

size_t gelu_backward_workspace(int64_t tokens, int64_t columns) {
  return static_cast<size_t>(RowBlocks(tokens).count() * columns) * sizeof(float);
}

void gelu_backward(const View& dy_dx, const View& x, const View& bias, const View& dbias,
                   Workspace workspace) {
  HWY_DYNAMIC_DISPATCH(gelu_backward)(dy_dx, x, bias, dbias, workspace);
}

}  // namespace plimsoll::cpu
#endif  // HWY_ONCE

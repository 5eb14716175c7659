#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <limits>

#include "tests/runtime/kernels/kernel_testing.h"

namespace plimsoll::cpu {
namespace {

using namespace kernel_testing;

// Relative throughout: small results of negative arguments count too. In the tail of GELU the f32
// argument of exp is near 25, and a few roundings of it are that many times larger in the result.
Tolerance activation_tolerance(Format format) {
  return format == Format::bf16 ? Tolerance{0x1p-8, 1e-30} : Tolerance{8e-6, 1e-30};
}

RC_GTEST_PROP(Glu, EqualsTheReference, ()) {
  Draw draw;
  const Gate gate = Draw::gate();
  const Format format = Draw::activation_format();
  const int64_t tokens = Draw::size(1, 30), f = Draw::size(1, 100);
  const Reals gate_up = draw.reals(tokens * 2 * f, format, 1.4);
  const Reals expected = reference::glu(gate, gate_up, f);

  const Tensor gate_up_tensor(format, tokens, 2 * f, gate_up);
  const auto kernel = [&] {
    std::vector<Tensor> out{{format, tokens, f}};
    glu(gate, gate_up_tensor.view(), out[0].view());
    return out;
  };
  on_every_target(kernel, [&](const std::vector<Tensor>& out) {
    expect_close("y", out[0].values(), expected, activation_tolerance(format));
  });
}

RC_GTEST_PROP(Glu, BackwardEqualsTheReference, ()) {
  Draw draw;
  const Gate gate = Draw::gate();
  const Format format = Draw::activation_format();
  const int64_t tokens = Draw::size(1, 30), f = Draw::size(1, 100);
  const Reals gate_up = draw.reals(tokens * 2 * f, format, 3);
  const Reals dy = draw.reals(tokens * f, format);
  const Reals expected = reference::glu_backward(gate, dy, gate_up, f);

  const Tensor gate_up_tensor(format, tokens, 2 * f, gate_up), dy_tensor(format, tokens, f, dy);
  const auto kernel = [&] {
    std::vector<Tensor> out{{format, tokens, 2 * f}};
    glu_backward(gate, dy_tensor.view(), gate_up_tensor.view(), out[0].view());
    return out;
  };
  on_every_target(
      kernel, [&](const std::vector<Tensor>& out) { expect_close("dgate_up", out[0], expected); });
}

RC_GTEST_PROP(Gelu, EqualsTheReference, ()) {
  Draw draw;
  const Format format = Draw::activation_format();
  const int64_t tokens = Draw::size(1, 30), f = Draw::size(1, 100);
  const bool has_bias = *rc::gen::arbitrary<bool>();
  const Reals x = draw.reals(tokens * f, format), bias = has_bias ? draw.reals(f) : Reals(f);
  Reals u_rounded = x;  // the addition in f32 cancels; what follows is compared at the rounded sum
  for (int64_t i = 0; i < tokens * f; ++i) u_rounded[i] = stored(x[i] + bias[i % f], Format::f32);
  const Reals expected = reference::gelu(u_rounded, Reals(f));

  const Tensor x_tensor(format, tokens, f, x), bias_tensor(Format::f32, 1, f, bias);
  const auto kernel = [&] {
    std::vector<Tensor> out{{format, tokens, f}};
    gelu(x_tensor.view(), has_bias ? bias_tensor.view() : View{}, out[0].view());
    return out;
  };
  on_every_target(kernel, [&](const std::vector<Tensor>& out) {
    expect_close("y", out[0].values(), expected, activation_tolerance(format));
  });
}

RC_GTEST_PROP(Gelu, BackwardEqualsTheReferenceAndSumsTheBiasBeforeRounding, ()) {
  Draw draw;
  const Format format = Draw::activation_format();
  const int64_t tokens = Draw::size(1, 200), f = Draw::size(1, 60);
  const bool has_bias = *rc::gen::arbitrary<bool>();
  const Reals x = draw.reals(tokens * f, format, 2), bias = has_bias ? draw.reals(f) : Reals(f);
  const Reals dy = draw.reals(tokens * f, format), dbias = draw.reals(f);
  const auto expected = reference::gelu_backward(dy, x, bias);

  const Tensor x_tensor(format, tokens, f, x), bias_tensor(Format::f32, 1, f, bias);
  const auto kernel = [&] {
    std::vector<Tensor> out{{format, tokens, f, dy}, {Format::f32, 1, f, dbias}};
    const Scratch scratch(has_bias ? gelu_backward_workspace(tokens, f) : 0);
    gelu_backward(out[0].view(), x_tensor.view(), has_bias ? bias_tensor.view() : View{},
                  has_bias ? out[1].view() : View{}, scratch.span());
    return out;
  };
  on_every_target(kernel, [&](const std::vector<Tensor>& out) {
    expect_close("dx", out[0], expected.dx);
    expect_close("dbias", out[1].values(), has_bias ? sum(expected.dbias, dbias) : dbias,
                 {1e-5, 1e-4});
  });
}

RC_GTEST_PROP(Activations, StayFiniteForLargeArgumentsAndKeepNan, ()) {
  const Gate gate = Draw::gate();
  const double large = *rc::gen::element(80.0, 88.5, 89.0, 104.0, 150.0, 1e4, 1e8);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Reals z{large, -large, nan};
  const Tensor gate_up(Format::f32, 1, 6, {large, -large, nan, 1, 1, 1});
  const Tensor x(Format::f32, 1, 3, z), zeros(Format::f32, 1, 3),
      ones(Format::f32, 1, 3, {1, 1, 1});
  const auto kernel = [&] {
    std::vector<Tensor> out{{Format::f32, 1, 3}, {Format::f32, 1, 3}, {Format::f32, 1, 6}};
    glu(gate, gate_up.view(), out[0].view());
    gelu(x.view(), zeros.view(), out[1].view());
    glu_backward(gate, ones.view(), gate_up.view(), out[2].view());
    return out;
  };
  on_every_target(kernel, [&](const std::vector<Tensor>& out) {
    for (const int i : {0, 1}) {
      const Reals y = out[i].values();
      expect_close("y", {y[0], y[1]}, {large, 0}, {1e-6, 1e-30});
      RC_ASSERT(std::isnan(y[2]));
    }
    const Reals dgate = out[2].values();
    expect_close("dgate", {dgate[0], dgate[1]}, {1, 0}, {1e-6, 1e-12});
    RC_ASSERT(std::isnan(dgate[2]));
  });
}

}  // namespace
}  // namespace plimsoll::cpu

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "tests/runtime/kernels/kernel_testing.h"

namespace plimsoll::cpu {
namespace {

using namespace kernel_testing;

RC_GTEST_PROP(LayerNorm, EqualsTheReference, ()) {
  Draw draw;
  const Format format = Draw::activation_format();
  const int64_t tokens = Draw::size(1, 40), hidden = Draw::size(1, 150);
  const Reals x = draw.reals(tokens * hidden, format, 3);
  const Reals weight = draw.reals(hidden), bias = draw.reals(hidden);
  const auto expected = reference::layer_norm(x, weight, bias, 1e-2);

  const Tensor x_tensor(format, tokens, hidden, x), weight_tensor(Format::f32, 1, hidden, weight);
  const Tensor bias_tensor(Format::f32, 1, hidden, bias);
  const auto kernel = [&] {
    std::vector<Tensor> out{{format, tokens, hidden}, {Format::f32, tokens, 2}};
    layer_norm(x_tensor.view(), weight_tensor.view(), bias_tensor.view(), 1e-2f, out[0].view(),
               out[1].view());
    return out;
  };
  on_every_target(kernel, [&](const std::vector<Tensor>& out) {
    expect_close("y", out[0], expected.y);
    expect_close("statistics", out[1], expected.statistics);
  });
}

RC_GTEST_PROP(LayerNorm, KeepsItsAccuracyFarFromZero, ()) {
  Draw draw;
  const int64_t hidden = Draw::size(2, 150);
  Reals x = draw.reals(hidden);
  for (double& value : x) value = stored(value + 1000, Format::f32);
  const Reals ones(hidden, 1), zeros(hidden);
  const auto expected = reference::layer_norm(x, ones, zeros, 1e-2);

  const Tensor x_tensor(Format::f32, 1, hidden, x), weight(Format::f32, 1, hidden, ones);
  const Tensor bias(Format::f32, 1, hidden, zeros);
  const auto kernel = [&] {
    std::vector<Tensor> out{{Format::f32, 1, hidden}, {Format::f32, 1, 2}};
    layer_norm(x_tensor.view(), weight.view(), bias.view(), 1e-2f, out[0].view(), out[1].view());
    return out;
  };
  on_every_target(kernel, [&](const std::vector<Tensor>& out) {
    expect_close("y", out[0].values(), expected.y, {1e-3, 1e-3});
  });
}

RC_GTEST_PROP(LayerNorm, NormalisesTheRoundedSumOfResidualAndBranch, ()) {
  Draw draw;
  const Format format = Draw::activation_format();
  const int64_t tokens = Draw::size(1, 40), hidden = Draw::size(1, 150);
  const Reals x = draw.reals(tokens * hidden, format), branch = draw.reals(tokens * hidden, format);
  const Reals weight = draw.reals(hidden), bias = draw.reals(hidden);
  Reals rounded = sum(x, branch);
  for (double& value : rounded) value = stored(value, format);
  const auto expected = reference::layer_norm(rounded, weight, bias, 1e-2);

  const Tensor x_tensor(format, tokens, hidden, x), branch_tensor(format, tokens, hidden, branch);
  const Tensor weight_tensor(Format::f32, 1, hidden, weight);
  const Tensor bias_tensor(Format::f32, 1, hidden, bias);
  const auto kernel = [&] {
    std::vector<Tensor> out{
        {format, tokens, hidden}, {format, tokens, hidden}, {Format::f32, tokens, 2}};
    add_layer_norm(x_tensor.view(), branch_tensor.view(), weight_tensor.view(), bias_tensor.view(),
                   1e-2f, out[0].view(), out[1].view(), out[2].view());
    return out;
  };
  on_every_target(kernel, [&](const std::vector<Tensor>& out) {
    RC_ASSERT(out[0] == Tensor(format, tokens, hidden, rounded));
    expect_close("y", out[1], expected.y);
    expect_close("statistics", out[2], expected.statistics);
  });
}

RC_GTEST_PROP(LayerNorm, BackwardEqualsTheReference, ()) {
  Draw draw;
  const Format format = Draw::activation_format();
  const bool accumulate = Draw::flag();
  const int64_t tokens = Draw::size(1, 200), hidden = Draw::size(1, 100);
  const Reals x = draw.reals(tokens * hidden, format), dy = draw.reals(tokens * hidden, format);
  const Reals weight = draw.reals(hidden), dx = draw.reals(tokens * hidden, format);
  const Reals dweight = draw.reals(hidden), dbias = draw.reals(hidden);
  Reals statistics = reference::layer_norm(x, weight, Reals(hidden), 1e-2).statistics;
  for (double& value : statistics) value = stored(value, Format::f32);
  const auto added = reference::layer_norm_backward(dy, x, weight, statistics);

  const Tensor x_tensor(format, tokens, hidden, x), dy_tensor(format, tokens, hidden, dy);
  const Tensor weight_tensor(Format::f32, 1, hidden, weight);
  const Tensor statistics_tensor(Format::f32, tokens, 2, statistics);
  const auto kernel = [&] {
    std::vector<Tensor> out{{format, tokens, hidden, dx},
                            {Format::f32, 1, hidden, dweight},
                            {Format::f32, 1, hidden, dbias}};
    const Scratch scratch(layer_norm_backward_workspace(tokens, hidden));
    layer_norm_backward(dy_tensor.view(), x_tensor.view(), weight_tensor.view(),
                        statistics_tensor.view(), accumulate, out[0].view(), out[1].view(),
                        out[2].view(), scratch.span());
    return out;
  };
  on_every_target(kernel, [&](const std::vector<Tensor>& out) {
    expect_close("dx", out[0], accumulate ? sum(added.dx, dx) : added.dx);
    expect_close("dweight", out[1].values(), sum(added.dweight, dweight), {1e-5, 1e-4});
    expect_close("dbias", out[2].values(), sum(added.dbias, dbias), {1e-5, 1e-4});
  });
}

}  // namespace
}  // namespace plimsoll::cpu

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "tests/runtime/kernels/kernel_testing.h"

namespace plimsoll::cpu {
namespace {

using namespace kernel_testing;

RC_GTEST_PROP(RmsNorm, EqualsTheReference, ()) {
  Draw draw;
  const Format format = Draw::activation_format();
  const int64_t tokens = Draw::size(1, 40), hidden = Draw::size(1, 150);
  const Reals x = draw.reals(tokens * hidden, format, 3), weight = draw.reals(hidden);
  const auto expected = reference::rms_norm(x, weight, 1e-5);

  const Tensor x_tensor(format, tokens, hidden, x), weight_tensor(Format::f32, 1, hidden, weight);
  const auto kernel = [&] {
    std::vector<Tensor> out{{format, tokens, hidden}, {Format::f32, tokens, 1}};
    rms_norm(x_tensor.view(), weight_tensor.view(), 1e-5f, out[0].view(), out[1].view());
    return out;
  };
  on_every_target(kernel, [&](const std::vector<Tensor>& out) {
    expect_close("y", out[0], expected.y);
    expect_close("rstd", out[1], expected.rstd);
  });
}

RC_GTEST_PROP(RmsNorm, NormalisesTheRoundedSumOfResidualAndBranch, ()) {
  Draw draw;
  const Format format = Draw::activation_format();
  const int64_t tokens = Draw::size(1, 40), hidden = Draw::size(1, 150);
  const Reals x = draw.reals(tokens * hidden, format), weight = draw.reals(hidden);
  const Reals branch = draw.reals(tokens * hidden, format);
  Reals rounded = sum(x, branch);
  for (double& value : rounded) value = stored(value, format);
  const auto expected = reference::rms_norm(rounded, weight, 1e-6);

  const Tensor x_tensor(format, tokens, hidden, x), branch_tensor(format, tokens, hidden, branch);
  const Tensor weight_tensor(Format::f32, 1, hidden, weight);
  const auto kernel = [&] {
    std::vector<Tensor> out{
        {format, tokens, hidden}, {format, tokens, hidden}, {Format::f32, tokens, 1}};
    add_rms_norm(x_tensor.view(), branch_tensor.view(), weight_tensor.view(), 1e-6f, out[0].view(),
                 out[1].view(), out[2].view());
    return out;
  };
  on_every_target(kernel, [&](const std::vector<Tensor>& out) {
    RC_ASSERT(out[0] == Tensor(format, tokens, hidden, rounded));
    expect_close("y", out[1], expected.y);
    expect_close("rstd", out[2], expected.rstd);
  });
}

RC_GTEST_PROP(RmsNorm, BackwardEqualsTheReference, ()) {
  Draw draw;
  const Format format = Draw::activation_format();
  const bool accumulate = Draw::flag();
  const int64_t tokens = Draw::size(1, 200), hidden = Draw::size(1, 100);
  const Reals x = draw.reals(tokens * hidden, format), weight = draw.reals(hidden);
  const Reals dy = draw.reals(tokens * hidden, format), dweight = draw.reals(hidden);
  const Reals dx = draw.reals(tokens * hidden, format);
  Reals rstd = reference::rms_norm(x, weight, 1e-2).rstd;
  for (double& value : rstd) value = stored(value, Format::f32);
  const auto added = reference::rms_norm_backward(dy, x, weight, rstd);

  const Tensor x_tensor(format, tokens, hidden, x), dy_tensor(format, tokens, hidden, dy);
  const Tensor weight_tensor(Format::f32, 1, hidden, weight);
  const Tensor rstd_tensor(Format::f32, tokens, 1, rstd);
  const auto kernel = [&] {
    std::vector<Tensor> out{{format, tokens, hidden, dx}, {Format::f32, 1, hidden, dweight}};
    const Scratch scratch(rms_norm_backward_workspace(tokens, hidden));
    rms_norm_backward(dy_tensor.view(), x_tensor.view(), weight_tensor.view(), rstd_tensor.view(),
                      accumulate, out[0].view(), out[1].view(), scratch.span());
    return out;
  };
  on_every_target(kernel, [&](const std::vector<Tensor>& out) {
    expect_close("dx", out[0], accumulate ? sum(added.dx, dx) : added.dx);
    expect_close("dweight", out[1].values(), sum(added.dweight, dweight), {1e-5, 1e-4});
  });
}

}  // namespace
}  // namespace plimsoll::cpu

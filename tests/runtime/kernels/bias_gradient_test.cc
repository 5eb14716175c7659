#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "tests/runtime/kernels/kernel_testing.h"

namespace plimsoll::cpu {
namespace {

using namespace kernel_testing;

RC_GTEST_PROP(BiasGradient, AddsTheSumOverTokens, ()) {
  Draw draw;
  const Format format = Draw::activation_format();
  const int64_t tokens = Draw::size(1, 700), columns = Draw::size(1, 60);
  const Reals dy = draw.reals(tokens * columns, format), dbias = draw.reals(columns);
  const Reals expected = sum(dbias, reference::bias_gradient(dy, columns));

  const Tensor dy_tensor(format, tokens, columns, dy);
  const auto kernel = [&] {
    std::vector<Tensor> out{{Format::f32, 1, columns, dbias}};
    const Scratch scratch(bias_gradient_workspace(tokens, columns));
    bias_gradient(dy_tensor.view(), out[0].view(), scratch.span());
    return out;
  };
  on_every_target(kernel, [&](const std::vector<Tensor>& out) {
    expect_close("dbias", out[0].values(), expected, {1e-5, 1e-4});
  });
}

}  // namespace
}  // namespace plimsoll::cpu

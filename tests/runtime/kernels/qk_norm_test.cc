#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "tests/runtime/kernels/kernel_testing.h"

namespace plimsoll::cpu {
namespace {

using namespace kernel_testing;

struct Case {
  Draw draw;
  Format format = Draw::activation_format();
  int64_t tokens = Draw::size(1, 60);
  HeadShape shape = head_shape();
  int64_t normalised = shape.heads + shape.query_groups;
  Reals qkv = draw.reals(tokens * shape.qkv_columns(), format);
  Reals q_weight = draw.reals(shape.head_dim);
  Reals k_weight = draw.reals(shape.head_dim);
  Tensor qkv_tensor{format, tokens, shape.qkv_columns(), qkv};
  Tensor q_weight_tensor{Format::f32, 1, shape.head_dim, q_weight};
  Tensor k_weight_tensor{Format::f32, 1, shape.head_dim, k_weight};

  static HeadShape head_shape() {
    const int64_t groups = Draw::size(1, 2);
    return {groups * Draw::size(1, 3), groups, 2 * Draw::size(1, 20), 1};
  }
};

RC_GTEST_PROP(QkNorm, EqualsTheReference, ()) {
  Case c;
  const auto expected = reference::qk_norm(c.qkv, c.q_weight, c.k_weight, c.shape, 1e-6);
  const auto kernel = [&] {
    std::vector<Tensor> out{{c.format, c.tokens, c.shape.qk_columns()},
                            {Format::f32, c.tokens, c.normalised}};
    qk_norm(c.qkv_tensor.view(), c.q_weight_tensor.view(), c.k_weight_tensor.view(), c.shape, 1e-6f,
            out[0].view(), out[1].view());
    return out;
  };
  on_every_target(kernel, [&](const std::vector<Tensor>& out) {
    expect_close("qk", out[0], expected.qk);
    expect_close("rstd", out[1], expected.rstd);
  });
}

RC_GTEST_PROP(QkNorm, BackwardEqualsTheReferenceAndLeavesValuesAlone, ()) {
  Case c;
  const Reals dqkv = c.draw.reals(c.tokens * c.shape.qkv_columns(), c.format);
  const Reals dq_weight = c.draw.reals(c.shape.head_dim);
  const Reals dk_weight = c.draw.reals(c.shape.head_dim);
  Reals rstd = reference::qk_norm(c.qkv, c.q_weight, c.k_weight, c.shape, 1e-2).rstd;
  for (double& value : rstd) value = stored(value, Format::f32);
  const auto expected =
      reference::qk_norm_backward(dqkv, c.qkv, rstd, c.q_weight, c.k_weight, c.shape);

  const Tensor rstd_tensor(Format::f32, c.tokens, c.normalised, rstd);
  const auto kernel = [&] {
    std::vector<Tensor> out{{c.format, c.tokens, c.shape.qkv_columns(), dqkv},
                            {Format::f32, 1, c.shape.head_dim, dq_weight},
                            {Format::f32, 1, c.shape.head_dim, dk_weight}};
    const Scratch scratch(qk_norm_backward_workspace(c.tokens, c.shape));
    qk_norm_backward(out[0].view(), c.qkv_tensor.view(), rstd_tensor.view(),
                     c.q_weight_tensor.view(), c.k_weight_tensor.view(), c.shape, out[1].view(),
                     out[2].view(), scratch.span());
    return out;
  };
  on_every_target(kernel, [&](const std::vector<Tensor>& out) {
    expect_close("dqkv", out[0], expected.dqkv);
    expect_close("dq_weight", out[1].values(), sum(expected.dq_weight, dq_weight), {1e-5, 1e-4});
    expect_close("dk_weight", out[2].values(), sum(expected.dk_weight, dk_weight), {1e-5, 1e-4});
  });
}

}  // namespace
}  // namespace plimsoll::cpu

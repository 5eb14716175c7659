#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "tests/runtime/kernels/kernel_testing.h"

namespace plimsoll::cpu {
namespace {

using namespace kernel_testing;

RC_GTEST_PROP(RopeTable, HoldsCosinesThenSines, ()) {
  const int64_t head_dim = 2 * Draw::size(1, 70), sequence = Draw::size(1, 150);
  const double theta = *rc::gen::element(10000.0, 500000.0, 1e6);
  const auto kernel = [&] {
    std::vector<Tensor> out{{Format::f32, sequence, head_dim}};
    rope_table(model::rope_frequencies({.theta = theta}, head_dim), out[0].view());
    return out;
  };
  on_every_target(kernel, [&](const std::vector<Tensor>& out) {
    expect_close("table", out[0].values(), reference::rope_table(theta, head_dim, sequence),
                 {1e-7, 1e-9});
  });
}

TEST(RopeTable, ScalesSinesAndCosinesByTheAmplitude) {
  const Tensor plain(Format::f32, 9, 4), scaled(Format::f32, 9, 4);
  rope_table({{1, 0.25}, 1}, plain.view());
  rope_table({{1, 0.25}, 1.5}, scaled.view());
  for (size_t i = 0; i < 36; ++i) {
    EXPECT_NEAR(scaled.values()[i], 1.5 * plain.values()[i], 1e-6) << i;
  }
}

RC_GTEST_PROP(Rope, RotatesTheFirstHeadsOnly, ()) {
  Draw draw;
  const Format format = Draw::activation_format();
  const bool inverse = Draw::flag();
  const int64_t head_dim = 2 * Draw::size(1, 40), heads = Draw::size(1, 3);
  const int64_t columns = (heads + Draw::size(0, 2)) * head_dim;
  const int64_t sequence = Draw::size(1, 20), tokens = sequence * Draw::size(1, 3);
  const Reals x = draw.reals(tokens * columns, format);
  Reals table = reference::rope_table(10000, head_dim, sequence);
  for (double& value : table) value = stored(value, Format::f32);
  const Reals expected = reference::rope(x, columns, table, heads, head_dim, sequence, inverse);

  const Tensor table_tensor(Format::f32, sequence, head_dim, table);
  const auto kernel = [&] {
    std::vector<Tensor> out{{format, tokens, columns, x}};
    rope(out[0].view(), table_tensor.view(), heads, head_dim, sequence, inverse);
    return out;
  };
  on_every_target(kernel,
                  [&](const std::vector<Tensor>& out) { expect_close("x", out[0], expected); });
}

RC_GTEST_PROP(Rope, InverseRotatesBack, ()) {
  Draw draw;
  const int64_t head_dim = 2 * Draw::size(1, 40), tokens = Draw::size(1, 40);
  const Reals x = draw.reals(tokens * head_dim);
  const Tensor table(Format::f32, tokens, head_dim, reference::rope_table(10000, head_dim, tokens));
  const Tensor rotated(Format::f32, tokens, head_dim, x);
  rope(rotated.view(), table.view(), 1, head_dim, tokens, false);
  rope(rotated.view(), table.view(), 1, head_dim, tokens, true);
  expect_close("x", rotated, x);
}

}  // namespace
}  // namespace plimsoll::cpu

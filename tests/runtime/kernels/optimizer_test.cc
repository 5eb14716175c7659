#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "tests/runtime/kernels/kernel_testing.h"

namespace plimsoll::cpu {
namespace {

using namespace kernel_testing;

RC_GTEST_PROP(SquaredNorm, FillsItsSlotOnly, ()) {
  Draw draw;
  const int64_t elements = *rc::gen::element(Draw::size(1, 100), Draw::size(60000, 140000));
  const double deviation = *rc::gen::element(1.0, 1e-20, 1e15);
  const Reals grad = draw.reals(elements, Format::f32, deviation);
  const double expected = reference::squared_norm(grad);

  const Tensor grad_tensor(Format::f32, 1, elements, grad);
  const auto kernel = [&] {
    std::vector<Tensor> out{{Format::f32, 1, 3, {1, 2, 3}}};
    const Scratch scratch(squared_norm_workspace(elements));
    squared_norm(grad_tensor.view(), out[0].view(), 1, scratch.span());
    return out;
  };
  on_every_target(kernel, [&](const std::vector<Tensor>& out) {
    expect_close("squares", out[0].values(), {1, expected, 3}, {1e-7, 2e-45});
  });
}

TEST(ClipFactor, ShrinksToTheLargestNormAndNeverGrows) {
  const Tensor squares(Format::f32, 1, 2, {9, 16}), clip(Format::f32, 1, 2);
  const auto factor = [&](float max_norm) {
    clip_factor(squares.view(), max_norm, clip.view());
    EXPECT_EQ(clip.values()[0], 5);
    return static_cast<float>(clip.values()[1]);
  };
  EXPECT_EQ(factor(1), 0.2f);
  EXPECT_EQ(factor(5), 1);
  EXPECT_EQ(factor(7), 1);
  EXPECT_EQ(factor(0), 1);  // off
}

RC_GTEST_PROP(AdamW, EqualsTheReferenceZeroesTheGradientAndRoundsTheCopy, ()) {
  Draw draw;
  const int64_t elements = *rc::gen::element(Draw::size(1, 100), Draw::size(1000, 5000));
  const bool copies = Draw::flag();
  const AdamWSettings settings{0.9f, 0.95f, 1e-8f, 0.1f};
  const float lr = 1e-2f, c1 = 0.271f, c2 = 0.142625f, factor = 0.5f;
  const Format moments = *rc::gen::element(Format::f32, Format::bf16);
  reference::AdamWState before{draw.reals(elements), draw.reals(elements), draw.reals(elements)};
  for (double& value : before.m) value = stored(value, moments);
  for (double& value : before.v) value = stored(std::abs(value), moments);
  const Reals grad = draw.reals(elements);
  const auto expected = reference::adam_w(
      before, grad,
      {lr, c1, c2, factor, settings.beta1, settings.beta2, settings.eps, settings.weight_decay});

  const Tensor numbers(Format::f32, 1, 3, {lr, c1, c2}), clip(Format::f32, 1, 2, {2, factor});
  const auto kernel = [&] {
    std::vector<Tensor> out{{Format::f32, 1, elements, before.weight},
                            {moments, 1, elements, before.m},
                            {moments, 1, elements, before.v},
                            {Format::f32, 1, elements, grad},
                            {Format::bf16, 1, elements}};
    adam_w(out[0].view(), out[3].view(), out[1].view(), out[2].view(), numbers.view(), clip.view(),
           settings, copies ? out[4].view() : View());
    return out;
  };
  on_every_target(kernel, [&](const std::vector<Tensor>& out) {
    expect_close("weight", out[0].values(), expected.weight, {1e-6, 1e-6});
    const double rounding = moments == Format::bf16 ? 0x1p-8 : 1e-6;
    expect_close("m", out[1].values(), expected.m, {rounding, 1e-7});
    expect_close("v", out[2].values(), expected.v, {rounding, 1e-7});
    RC_ASSERT(out[3] == Tensor(Format::f32, 1, elements));
    RC_ASSERT(out[4] == Tensor(Format::bf16, 1, elements, copies ? out[0].values() : Reals()));
  });
}

}  // namespace
}  // namespace plimsoll::cpu

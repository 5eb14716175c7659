#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <limits>

#include "tests/runtime/kernels/kernel_testing.h"

namespace plimsoll::cpu {
namespace {

using namespace kernel_testing;

RC_GTEST_PROP(CrossEntropy, EqualsTheReferenceAndIgnoresTargetMinusOne, ()) {
  Draw draw;
  const Format gradient = *rc::gen::element(Format::f32, Format::bf16);
  const int64_t tokens = Draw::size(1, 6);
  const int64_t vocab = *rc::gen::element(Draw::size(1, 100), Draw::size(2000, 5000));
  const float scale = 0.25f;
  const double deviation = *rc::gen::element(1.0, 10.0);
  const Reals logits = draw.reals(tokens * vocab, Format::f32, deviation);
  const Tokens targets = draw.tokens(tokens, -1, static_cast<int32_t>(vocab - 1));
  const auto expected = reference::cross_entropy(logits, targets, scale);

  const Tensor targets_tensor(targets), logits_tensor(Format::f32, tokens, vocab, logits);
  const auto kernel = [&] {
    std::vector<Tensor> out{{Format::f32, tokens, 1}, {gradient, tokens, vocab, logits}};
    const View dlogits = out[1].view();  // over the logits when f32
    cross_entropy(gradient == Format::f32 ? dlogits : logits_tensor.view(), targets_tensor.view(),
                  scale, out[0].view(), dlogits);
    return out;
  };
  on_every_target(kernel, [&](const std::vector<Tensor>& out) {
    expect_close("losses", out[0].values(), expected.losses, {1e-6, 1e-6});
    expect_close("dlogits", out[1].values(), expected.dlogits,
                 {gradient == Format::bf16 ? 0x1p-8 : 1e-5, scale * 2e-7});
  });
}

RC_GTEST_PROP(CrossEntropy, ShowsNanWhereverALogitIsNan, ()) {
  Draw draw;
  const int64_t vocab = Draw::size(2, 5000);
  Reals logits = draw.reals(vocab);
  logits[Draw::size(0, vocab - 1)] = std::numeric_limits<double>::quiet_NaN();
  const Tensor targets(Tokens{0});
  const auto kernel = [&] {
    std::vector<Tensor> out{{Format::f32, 1, 1}, {Format::f32, 1, vocab, logits}};
    cross_entropy(out[1].view(), targets.view(), 1, out[0].view(), out[1].view());
    return std::vector<Tensor>{out[0]};
  };
  on_every_target(
      kernel, [&](const std::vector<Tensor>& out) { RC_ASSERT(std::isnan(out[0].values()[0])); });
}

}  // namespace
}  // namespace plimsoll::cpu

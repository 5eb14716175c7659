#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "tests/runtime/kernels/kernel_testing.h"

namespace plimsoll::cpu {
namespace {

using namespace kernel_testing;

struct Case {
  Draw draw;
  Format format = Draw::activation_format();
  int64_t sequence = Draw::size(1, 20);
  int64_t count = sequence * Draw::size(1, 4);
  int64_t vocab = Draw::size(1, 30);
  int64_t hidden = Draw::size(1, 100);
  int64_t positions = Draw::flag() ? sequence + Draw::size(0, 3) : 0;
  Tokens tokens = draw.tokens(count, 0, static_cast<int32_t>(vocab - 1));
  Tensor tokens_tensor{tokens};
};

RC_GTEST_PROP(Embedding, AddsTheRowsOfTokenAndPosition, ()) {
  Case c;
  const Reals table = c.draw.reals(c.vocab * c.hidden, c.format);
  const Reals positions = c.draw.reals(c.positions * c.hidden, c.format);
  Reals expected = reference::embedding(c.tokens, table, positions, c.sequence, c.hidden);
  for (double& value : expected) value = stored(value, c.format);

  const Tensor table_tensor(c.format, c.vocab, c.hidden, table);
  const Tensor positions_tensor(c.format, c.positions, c.hidden, positions);
  const auto kernel = [&] {
    std::vector<Tensor> out{{c.format, c.count, c.hidden}};
    embedding(c.tokens_tensor.view(), table_tensor.view(),
              c.positions > 0 ? positions_tensor.view() : View(), c.sequence, out[0].view());
    return out;
  };
  on_every_target(kernel, [&](const std::vector<Tensor>& out) {
    RC_ASSERT(out[0] == Tensor(c.format, c.count, c.hidden, expected));
  });
}

RC_GTEST_PROP(Embedding, BackwardAddsEveryTokenToItsRows, ()) {
  Case c;
  const Reals dx = c.draw.reals(c.count * c.hidden, c.format);
  const Reals dtable = c.draw.reals(c.vocab * c.hidden);
  const Reals dpositions = c.draw.reals(c.positions * c.hidden);
  const auto added = reference::embedding_backward(c.tokens, dx, c.sequence, c.vocab, c.positions);

  const Tensor dx_tensor(c.format, c.count, c.hidden, dx);
  const auto kernel = [&] {
    std::vector<Tensor> out{{Format::f32, c.vocab, c.hidden, dtable},
                            {Format::f32, c.positions, c.hidden, dpositions}};
    embedding_backward(c.tokens_tensor.view(), dx_tensor.view(), c.sequence, out[0].view(),
                       c.positions > 0 ? out[1].view() : View());
    return out;
  };
  on_every_target(kernel, [&](const std::vector<Tensor>& out) {
    expect_close("dtable", out[0], sum(dtable, added.dtable));
    expect_close("dpositions", out[1], sum(dpositions, added.dpositions));
  });
}

}  // namespace
}  // namespace plimsoll::cpu

// The gradients of the reference against central differences of its forward functions.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <functional>

#include "tests/runtime/kernels/kernel_testing.h"

namespace plimsoll::cpu {
namespace {

using namespace kernel_testing;
using Function = std::function<Reals(const Reals&)>;

// The gradient of sum_i dy[i] f(x)[i] with respect to x.
Reals difference_gradient(const Function& f, const Reals& x, const Reals& dy) {
  constexpr double h = 1e-5;
  Reals gradient;
  for (size_t i = 0; i < x.size(); ++i) {
    Reals above = x, below = x;
    above[i] += h;
    below[i] -= h;
    const Reals y_above = f(above), y_below = f(below);
    double sum = 0;
    for (size_t k = 0; k < dy.size(); ++k) sum += dy[k] * (y_above[k] - y_below[k]);
    gradient.push_back(sum / (2 * h));
  }
  return gradient;
}

void expect_gradient(std::string_view what, const Reals& gradient, const Function& f,
                     const Reals& x, const Reals& dy) {
  expect_close(what, gradient, difference_gradient(f, x, dy), {1e-5, 1e-6});
}

RC_GTEST_PROP(Reference, EmbeddingGradients, ()) {
  Draw draw;
  const int64_t sequence = Draw::size(1, 4), hidden = Draw::size(1, 4), vocab = 5;
  const Tokens tokens = draw.tokens(2 * sequence, 0, vocab - 1);
  const Reals table = draw.reals(vocab * hidden), positions = draw.reals(sequence * hidden);
  const Reals dx = draw.reals(2 * sequence * hidden);
  const auto gradients = reference::embedding_backward(tokens, dx, sequence, vocab, sequence);
  const auto of_table = [&](const Reals& t) {
    return reference::embedding(tokens, t, positions, sequence, hidden);
  };
  const auto of_positions = [&](const Reals& p) {
    return reference::embedding(tokens, table, p, sequence, hidden);
  };
  expect_gradient("dtable", gradients.dtable, of_table, table, dx);
  expect_gradient("dpositions", gradients.dpositions, of_positions, positions, dx);
}

RC_GTEST_PROP(Reference, RmsNormGradients, ()) {
  Draw draw;
  const int64_t tokens = Draw::size(1, 4), hidden = Draw::size(1, 8);
  const Reals x = draw.reals(tokens * hidden), weight = draw.reals(hidden);
  const Reals dy = draw.reals(tokens * hidden);
  const auto gradients =
      reference::rms_norm_backward(dy, x, weight, reference::rms_norm(x, weight, 0.1).rstd);
  const auto of_x = [&](const Reals& v) { return reference::rms_norm(v, weight, 0.1).y; };
  const auto of_weight = [&](const Reals& w) { return reference::rms_norm(x, w, 0.1).y; };
  expect_gradient("dx", gradients.dx, of_x, x, dy);
  expect_gradient("dweight", gradients.dweight, of_weight, weight, dy);
}

RC_GTEST_PROP(Reference, LayerNormGradients, ()) {
  Draw draw;
  const int64_t tokens = Draw::size(1, 4), hidden = Draw::size(1, 8);
  const Reals x = draw.reals(tokens * hidden), dy = draw.reals(tokens * hidden);
  const Reals weight = draw.reals(hidden), bias = draw.reals(hidden);
  const auto f = [&](const Reals& v, const Reals& w, const Reals& b) {
    return reference::layer_norm(v, w, b, 0.1);
  };
  const auto gradients =
      reference::layer_norm_backward(dy, x, weight, f(x, weight, bias).statistics);
  expect_gradient(
      "dx", gradients.dx, [&](const Reals& v) { return f(v, weight, bias).y; }, x, dy);
  expect_gradient(
      "dweight", gradients.dweight, [&](const Reals& w) { return f(x, w, bias).y; }, weight, dy);
  expect_gradient(
      "dbias", gradients.dbias, [&](const Reals& b) { return f(x, weight, b).y; }, bias, dy);
}

RC_GTEST_PROP(Reference, RopeGradientIsTheInverse, ()) {
  Draw draw;
  const int64_t head_dim = 2 * Draw::size(1, 3), columns = 3 * head_dim, sequence = 3;
  const Reals table = reference::rope_table(100, head_dim, sequence);
  const Reals x = draw.reals(2 * sequence * columns), dy = draw.reals(2 * sequence * columns);
  const auto rotate = [&](const Reals& v, bool inverse) {
    return reference::rope(v, columns, table, 2, head_dim, sequence, inverse);
  };
  expect_gradient(
      "dx", rotate(dy, true), [&](const Reals& v) { return rotate(v, false); }, x, dy);
}

RC_GTEST_PROP(Reference, QkNormGradients, ()) {
  Draw draw;
  const HeadShape shape{4, 2, 2 * Draw::size(1, 2), 3};
  const int64_t tokens = Draw::size(1, 3);
  const Reals qkv = draw.reals(tokens * shape.qkv_columns());
  const Reals q_weight = draw.reals(shape.head_dim), k_weight = draw.reals(shape.head_dim);
  Reals dqkv = draw.reals(tokens * shape.qkv_columns()), dqk;
  for (int64_t i = 0; i < std::ssize(dqkv); ++i) {  // no gradient to the values, which pass by
    if (i % shape.qkv_columns() < shape.qk_columns()) {
      dqk.push_back(dqkv[i]);
    } else {
      dqkv[i] = 0;
    }
  }
  const auto f = [&](const Reals& x, const Reals& q, const Reals& k) {
    return reference::qk_norm(x, q, k, shape, 0.1);
  };
  const auto gradients = reference::qk_norm_backward(dqkv, qkv, f(qkv, q_weight, k_weight).rstd,
                                                     q_weight, k_weight, shape);
  expect_gradient(
      "dqkv", gradients.dqkv, [&](const Reals& x) { return f(x, q_weight, k_weight).qk; }, qkv,
      dqk);
  expect_gradient(
      "dq_weight", gradients.dq_weight, [&](const Reals& q) { return f(qkv, q, k_weight).qk; },
      q_weight, dqk);
  expect_gradient(
      "dk_weight", gradients.dk_weight, [&](const Reals& k) { return f(qkv, q_weight, k).qk; },
      k_weight, dqk);
}

RC_GTEST_PROP(Reference, AttentionGradients, ()) {
  Draw draw;
  const HeadShape shape{4, *rc::gen::element<int64_t>(1, 2, 4), Draw::size(1, 3), Draw::size(1, 4)};
  const Reals qkv = draw.reals(2 * shape.sequence * shape.qkv_columns());
  const Reals dout = draw.reals(2 * shape.sequence * shape.heads * shape.head_dim);
  expect_gradient(
      "dqkv", reference::attention_backward(dout, qkv, qkv, shape),
      [&](const Reals& x) { return reference::attention(x, x, shape).out; }, qkv, dout);
}

RC_GTEST_PROP(Reference, ActivationGradients, ()) {
  Draw draw;
  const Gate gate = Draw::gate();
  const int64_t tokens = Draw::size(1, 4), f = Draw::size(1, 6);
  const Reals gate_up = draw.reals(tokens * 2 * f), dy = draw.reals(tokens * f);
  expect_gradient(
      "dgate_up", reference::glu_backward(gate, dy, gate_up, f),
      [&](const Reals& x) { return reference::glu(gate, x, f); }, gate_up, dy);

  const Reals x = draw.reals(tokens * f), bias = draw.reals(f);
  const auto gelu = reference::gelu_backward(dy, x, bias);
  expect_gradient(
      "dx", gelu.dx, [&](const Reals& v) { return reference::gelu(v, bias); }, x, dy);
  expect_gradient(
      "dbias", gelu.dbias, [&](const Reals& b) { return reference::gelu(x, b); }, bias, dy);
}

RC_GTEST_PROP(Reference, CrossEntropyGradients, ()) {
  Draw draw;
  const int64_t tokens = Draw::size(1, 4), vocab = Draw::size(1, 8);
  const Reals logits = draw.reals(tokens * vocab);
  const Tokens targets = draw.tokens(tokens, -1, static_cast<int32_t>(vocab - 1));
  expect_gradient(
      "dlogits", reference::cross_entropy(logits, targets, 0.5).dlogits,
      [&](const Reals& x) { return reference::cross_entropy(x, targets, 0.5).losses; }, logits,
      Reals(tokens, 0.5));
}

}  // namespace
}  // namespace plimsoll::cpu

#include "plimsoll/step/ops/attention.h"

#include "plimsoll/step/gradient.h"

namespace plimsoll::step {

namespace {

// FLOPs of `products` (sequence x head_dim x sequence) products under the causal mask.
Flops causal_products(const HeadShape& shape, int64_t tokens, double products) {
  const double pairs = static_cast<double>(tokens) * static_cast<double>(shape.sequence + 1) / 2;
  return {products * 2 * pairs * static_cast<double>(shape.heads * shape.head_dim)};
}

void check_shape(const HeadShape& shape, const TensorType& qkv) {
  check(shape.sequence > 0 && qkv.shape.rows % shape.sequence == 0, "attention: whole sequences");
  check(qkv.shape.columns == shape.qkv_columns(), "attention: columns of qkv");
}

}  // namespace

OutputTypes infer(const Attention& kind, InputTypes in) {
  check(in.size() == 2 && in[0].shape.columns >= kind.shape.qk_columns(),
        "attention takes qk and qkv");
  check_shape(kind.shape, in[1]);
  const int64_t tokens = in[1].shape.rows;
  return {{{{tokens, kind.shape.heads * kind.shape.head_dim}, in[1].format}},
          {{{tokens, kind.shape.heads}, Format::f32}}};
}

void differentiate(const Attention& kind, const Op& op, GradientBuilder& builder) {
  const TensorId qk = op.inputs[0].tensor, qkv = op.inputs[1].tensor;
  const Operand dout{*builder.gradient(op.outputs[0].tensor)};
  const Operand dqkv{builder.new_gradient(qkv)};
  if (qk != qkv) builder.set_gradient(qk, dqkv.tensor);  // q and k are columns of dqkv
  builder.emit(AttentionBackward{.shape = kind.shape},
               {dout, op.outputs[0], op.inputs[0], op.inputs[1], op.outputs[1]}, {dqkv});
}

Flops flops(const Attention& kind, InputTypes in) {
  return causal_products(kind.shape, in[1].shape.rows, 2);
}

OutputTypes infer(const AttentionBackward& kind, InputTypes in) {
  check(in.size() == 5, "attention_backward takes dout, out, qk, qkv, lse");
  check_shape(kind.shape, in[3]);
  return {{in[3]}};
}

Flops flops(const AttentionBackward& kind, InputTypes in) {
  return causal_products(kind.shape, in[3].shape.rows, 5);
}

OutputTypes infer(const QkNorm& kind, InputTypes in) {
  check(in.size() == 3, "qk_norm takes qkv, q_weight, k_weight");
  check_shape(kind.shape, in[0]);
  const int64_t tokens = in[0].shape.rows;
  return {{{{tokens, kind.shape.qk_columns()}, in[0].format}},
          {{{tokens, kind.shape.heads + kind.shape.query_groups}, Format::f32}}};
}

void differentiate(const QkNorm& kind, const Op& op, GradientBuilder& builder) {
  const Operand dqkv{*builder.gradient(op.outputs[0].tensor)};
  const Operand dq_weight{builder.weight_gradient(op.inputs[1].tensor)};
  const Operand dk_weight{builder.weight_gradient(op.inputs[2].tensor)};
  builder.emit(
      QkNormBackward{.shape = kind.shape},
      {dqkv, op.inputs[0], op.outputs[1], op.inputs[1], op.inputs[2], dq_weight, dk_weight},
      {dqkv, dq_weight, dk_weight});
}

Flops flops(const QkNorm& kind, InputTypes in) {
  return {4.0 * static_cast<double>(in[0].shape.rows * kind.shape.qk_columns())};
}

OutputTypes infer(const QkNormBackward&, InputTypes in) {
  check(in.size() == 7 && in[0] == in[1], "qk_norm_backward takes dqkv, qkv, rstd, weights");
  return {{in[0], 0}, {in[5], 5}, {in[6], 6}};
}

Flops flops(const QkNormBackward& kind, InputTypes in) {
  return {11.0 * static_cast<double>(in[0].shape.rows * kind.shape.qk_columns())};
}

}  // namespace plimsoll::step

#include "plimsoll/step/ops/norm.h"

#include "plimsoll/step/gradient.h"

namespace plimsoll::step {

namespace {

TensorType statistics(const TensorType& x, int64_t columns) {
  return {{x.shape.rows, columns}, Format::f32};
}

void check_vector(const TensorType& x, const TensorType& weight) {
  check(weight.shape == Shape{1, x.shape.columns} && weight.format == Format::f32,
        "norm: weight and bias are f32 vectors of the hidden size");
}

// The gradient of the norm's input `x`, that of the normalised output being `dy`. Adds to the
// gradient that is there (the residual's), or makes a new one.
void emit_backward(GradientBuilder& builder, OpKind kind, std::vector<Operand> inputs,
                   std::vector<Operand> outputs, TensorId x, bool accumulate) {
  if (accumulate) inputs.push_back({*builder.gradient(x)});
  outputs.insert(outputs.begin(), {accumulate ? *builder.gradient(x) : builder.new_gradient(x)});
  builder.emit(std::move(kind), std::move(inputs), std::move(outputs));
}

void rms_backward(TensorId x, TensorId y, TensorId rstd, const Operand& weight,
                  GradientBuilder& builder) {
  const bool accumulate = builder.accumulates(x);
  const Operand dweight{builder.weight_gradient(weight.tensor)};
  emit_backward(builder, RmsNormBackward{.accumulate = accumulate},
                {{*builder.gradient(y)}, {x}, weight, {rstd}, dweight}, {dweight}, x, accumulate);
}

void layer_backward(TensorId x, TensorId y, TensorId stats, const Operand& weight,
                    const Operand& bias, GradientBuilder& builder) {
  const bool accumulate = builder.accumulates(x);
  const Operand dweight{builder.weight_gradient(weight.tensor)};
  const Operand dbias{builder.weight_gradient(bias.tensor)};
  emit_backward(builder, LayerNormBackward{.accumulate = accumulate},
                {{*builder.gradient(y)}, {x}, weight, {stats}, dweight, dbias}, {dweight, dbias}, x,
                accumulate);
}

// Both addends of a residual sum have its gradient: the stream goes on adding to it, the branch
// only reads it, in ops that come before the stream's next addition.
void pass_to_addends(const Op& op, GradientBuilder& builder) {
  const TensorId dsum = *builder.gradient(op.outputs[0].tensor);
  builder.set_gradient(op.inputs[0].tensor, dsum);
  builder.lend_gradient(op.inputs[1].tensor, dsum);
}

double elements(InputTypes in, size_t index = 0) {
  return static_cast<double>(in[index].shape.elements());
}

}  // namespace

OutputTypes infer(const RmsNorm&, InputTypes in) {
  check(in.size() == 2, "rms_norm takes x and weight");
  check_vector(in[0], in[1]);
  return {{in[0]}, {statistics(in[0], 1)}};
}

void differentiate(const RmsNorm&, const Op& op, GradientBuilder& builder) {
  rms_backward(op.inputs[0].tensor, op.outputs[0].tensor, op.outputs[1].tensor, op.inputs[1],
               builder);
}

Flops flops(const RmsNorm&, InputTypes in) { return {4 * elements(in)}; }

OutputTypes infer(const AddRmsNorm&, InputTypes in) {
  check(in.size() == 3 && in[0] == in[1], "add_rms_norm takes x, branch and weight");
  check_vector(in[0], in[2]);
  return {{in[0]}, {in[0]}, {statistics(in[0], 1)}};
}

void differentiate(const AddRmsNorm&, const Op& op, GradientBuilder& builder) {
  rms_backward(op.outputs[0].tensor, op.outputs[1].tensor, op.outputs[2].tensor, op.inputs[2],
               builder);
  pass_to_addends(op, builder);
}

Flops flops(const AddRmsNorm&, InputTypes in) { return {5 * elements(in)}; }

OutputTypes infer(const LayerNorm&, InputTypes in) {
  check(in.size() == 3, "layer_norm takes x, weight and bias");
  check_vector(in[0], in[1]);
  check_vector(in[0], in[2]);
  return {{in[0]}, {statistics(in[0], 2)}};
}

void differentiate(const LayerNorm&, const Op& op, GradientBuilder& builder) {
  layer_backward(op.inputs[0].tensor, op.outputs[0].tensor, op.outputs[1].tensor, op.inputs[1],
                 op.inputs[2], builder);
}

Flops flops(const LayerNorm&, InputTypes in) { return {7 * elements(in)}; }

OutputTypes infer(const AddLayerNorm&, InputTypes in) {
  check(in.size() == 4 && in[0] == in[1], "add_layer_norm takes x, branch, weight and bias");
  check_vector(in[0], in[2]);
  check_vector(in[0], in[3]);
  return {{in[0]}, {in[0]}, {statistics(in[0], 2)}};
}

void differentiate(const AddLayerNorm&, const Op& op, GradientBuilder& builder) {
  layer_backward(op.outputs[0].tensor, op.outputs[1].tensor, op.outputs[2].tensor, op.inputs[2],
                 op.inputs[3], builder);
  pass_to_addends(op, builder);
}

Flops flops(const AddLayerNorm&, InputTypes in) { return {8 * elements(in)}; }

OutputTypes infer(const RmsNormBackward& kind, InputTypes in) {
  check(in.size() == (kind.accumulate ? 6u : 5u) && in[0] == in[1],
        "rms_norm_backward takes dy, x, weight, rstd, dweight and maybe dx");
  return {{in[1], kind.accumulate ? 5 : -1}, {in[4], 4}};
}

Flops flops(const RmsNormBackward&, InputTypes in) { return {11 * elements(in)}; }

OutputTypes infer(const LayerNormBackward& kind, InputTypes in) {
  check(in.size() == (kind.accumulate ? 7u : 6u) && in[0] == in[1],
        "layer_norm_backward takes dy, x, weight, statistics, dweight, dbias and maybe dx");
  return {{in[1], kind.accumulate ? 6 : -1}, {in[4], 4}, {in[5], 5}};
}

Flops flops(const LayerNormBackward&, InputTypes in) { return {15 * elements(in)}; }

}  // namespace plimsoll::step

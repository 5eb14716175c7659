#include "plimsoll/step/ops/activation.h"

#include "plimsoll/step/gradient.h"

namespace plimsoll::step {

OutputTypes infer(const SwiGlu&, InputTypes in) {
  check(in.size() == 1 && in[0].shape.columns % 2 == 0, "swi_glu takes gate_up");
  return {{{{in[0].shape.rows, in[0].shape.columns / 2}, in[0].format}}};
}

void differentiate(const SwiGlu&, const Op& op, GradientBuilder& builder) {
  const Operand dy{*builder.gradient(op.outputs[0].tensor)};
  const Operand dgate_up{builder.new_gradient(op.inputs[0].tensor)};
  builder.emit(SwiGluBackward{}, {dy, op.inputs[0]}, {dgate_up});
}

Flops flops(const SwiGlu&, InputTypes in) {
  return {2.5 * static_cast<double>(in[0].shape.elements())};
}

OutputTypes infer(const SwiGluBackward&, InputTypes in) {
  check(in.size() == 2 && in[1].shape.columns == 2 * in[0].shape.columns,
        "swi_glu_backward takes dy and gate_up");
  return {{in[1]}};
}

Flops flops(const SwiGluBackward&, InputTypes in) {
  return {11.0 * static_cast<double>(in[0].shape.elements())};
}

OutputTypes infer(const BiasGelu&, InputTypes in) {
  check(in.size() == 2 && in[1].shape == Shape{1, in[0].shape.columns},
        "bias_gelu takes x and bias");
  return {{in[0]}};
}

void differentiate(const BiasGelu&, const Op& op, GradientBuilder& builder) {
  const Operand dy{*builder.gradient(op.outputs[0].tensor)};
  const Operand dbias{builder.weight_gradient(op.inputs[1].tensor)};
  builder.emit(BiasGeluBackward{}, {dy, op.inputs[0], op.inputs[1], dbias}, {dy, dbias});
  builder.set_gradient(op.inputs[0].tensor, dy.tensor);
}

Flops flops(const BiasGelu&, InputTypes in) {
  return {10.0 * static_cast<double>(in[0].shape.elements())};
}

OutputTypes infer(const BiasGeluBackward&, InputTypes in) {
  check(in.size() == 4 && in[0] == in[1], "bias_gelu_backward takes dy, x, bias, dbias");
  return {{in[0], 0}, {in[3], 3}};
}

Flops flops(const BiasGeluBackward&, InputTypes in) {
  return {20.0 * static_cast<double>(in[0].shape.elements())};
}

}  // namespace plimsoll::step

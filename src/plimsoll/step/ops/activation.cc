#include "plimsoll/step/ops/activation.h"

#include "plimsoll/step/gradient.h"

namespace plimsoll::step {

namespace {

double elements(InputTypes in) { return static_cast<double>(in[0].shape.elements()); }

}  // namespace

std::string_view kind_name(const Glu& kind) {
  switch (kind.gate) {
    case Gate::silu:
      return "swi_glu";
    case Gate::gelu:
      return "ge_glu";
  }
  return "?";
}

std::string_view kind_name(const GluBackward& kind) {
  switch (kind.gate) {
    case Gate::silu:
      return "swi_glu_backward";
    case Gate::gelu:
      return "ge_glu_backward";
  }
  return "?";
}

OutputTypes infer(const Glu&, InputTypes in) {
  check(in.size() == 1 && in[0].shape.columns % 2 == 0, "a gated activation takes gate_up");
  return {{{{in[0].shape.rows, in[0].shape.columns / 2}, in[0].format}}};
}

void differentiate(const Glu& kind, const Op& op, GradientBuilder& builder) {
  const Operand dy{*builder.gradient(op.outputs[0].tensor)};
  const Operand dgate_up{builder.new_gradient(op.inputs[0].tensor)};
  builder.emit(GluBackward{.gate = kind.gate}, {dy, op.inputs[0]}, {dgate_up});
}

Flops flops(const Glu&, InputTypes in) { return {2.5 * elements(in)}; }

OutputTypes infer(const GluBackward&, InputTypes in) {
  check(in.size() == 2 && in[1].shape.columns == 2 * in[0].shape.columns,
        "the backward of a gated activation takes dy and gate_up");
  return {{in[1]}};
}

Flops flops(const GluBackward&, InputTypes in) { return {11.0 * elements(in)}; }

std::string_view kind_name(const Gelu& kind) { return kind.has_bias ? "bias_gelu" : "gelu"; }

std::string_view kind_name(const GeluBackward& kind) {
  return kind.has_bias ? "bias_gelu_backward" : "gelu_backward";
}

OutputTypes infer(const Gelu& kind, InputTypes in) {
  check(in.size() == 1u + kind.has_bias, "gelu takes x and maybe a bias");
  check(!kind.has_bias || in[1].shape == Shape{1, in[0].shape.columns}, "gelu: length of the bias");
  return {{in[0]}};
}

void differentiate(const Gelu& kind, const Op& op, GradientBuilder& builder) {
  const Operand dy{*builder.gradient(op.outputs[0].tensor)};
  std::vector<Operand> inputs = {dy, op.inputs[0]}, outputs = {dy};
  if (kind.has_bias) {
    const Operand dbias{builder.weight_gradient(op.inputs[1].tensor)};
    inputs.insert(inputs.end(), {op.inputs[1], dbias});
    outputs.push_back(dbias);
  }
  builder.emit(GeluBackward{.has_bias = kind.has_bias}, inputs, outputs);
  builder.set_gradient(op.inputs[0].tensor, dy.tensor);
}

Flops flops(const Gelu&, InputTypes in) { return {10.0 * elements(in)}; }

OutputTypes infer(const GeluBackward& kind, InputTypes in) {
  check(in.size() == (kind.has_bias ? 4u : 2u) && in[0] == in[1],
        "gelu_backward takes dy, x and maybe bias and dbias");
  OutputTypes out = {{in[0], 0}};
  if (kind.has_bias) out.push_back({in[3], 3});
  return out;
}

Flops flops(const GeluBackward&, InputTypes in) { return {20.0 * elements(in)}; }

}  // namespace plimsoll::step

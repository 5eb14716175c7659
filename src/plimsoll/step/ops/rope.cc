#include "plimsoll/step/ops/rope.h"

#include "plimsoll/step/gradient.h"

namespace plimsoll::step {

OutputTypes infer(const RopeTable& kind, InputTypes) {
  check(kind.head_dim > 0 && kind.head_dim % 2 == 0, "rope_table: an even head_dim");
  return {{{{kind.sequence, kind.head_dim}, Format::f32}}};
}

Flops flops(const RopeTable&, InputTypes) { return {}; }

OutputTypes infer(const Rope& kind, InputTypes in) {
  check(in.size() == 2 && in[0].shape.columns >= kind.heads * kind.head_dim, "rope takes x, table");
  check(in[1].shape == Shape{kind.sequence, kind.head_dim}, "rope: the table's shape");
  return {{in[0], 0}};
}

void differentiate(const Rope& kind, const Op& op, GradientBuilder& builder) {
  Rope inverse = kind;
  inverse.inverse = !kind.inverse;
  const Operand dx{*builder.gradient(op.outputs[0].tensor)};
  builder.emit(inverse, {dx, op.inputs[1]}, {dx});
}

Flops flops(const Rope& kind, InputTypes in) {
  return {3.0 * static_cast<double>(in[0].shape.rows * kind.heads * kind.head_dim)};
}

}  // namespace plimsoll::step

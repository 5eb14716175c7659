#include "plimsoll/step/ops/embedding.h"

#include "plimsoll/step/gradient.h"

namespace plimsoll::step {

OutputTypes infer(const Embedding& kind, InputTypes in) {
  check(in.size() == 2 || in.size() == 3, "embedding takes tokens, a table and maybe positions");
  check(kind.sequence > 0 && in[0].shape.rows % kind.sequence == 0, "embedding: whole sequences");
  check(in[0].format == Format::i32, "embedding: token ids are i32");
  return {{{{in[0].shape.rows, in[1].shape.columns}, in[1].format}}};
}

void differentiate(const Embedding& kind, const Op& op, GradientBuilder& builder) {
  const Operand dx{*builder.gradient(op.outputs[0].tensor)};
  std::vector<Operand> tables;
  for (size_t i = 1; i < op.inputs.size(); ++i) {
    tables.push_back({builder.weight_gradient(op.inputs[i].tensor)});
  }
  std::vector<Operand> inputs = {op.inputs[0], dx};
  inputs.insert(inputs.end(), tables.begin(), tables.end());
  builder.emit(EmbeddingBackward{.sequence = kind.sequence}, inputs, tables);
}

Flops flops(const Embedding&, InputTypes in) {
  return {in.size() == 3 ? static_cast<double>(in[0].shape.rows * in[1].shape.columns) : 0.0};
}

OutputTypes infer(const EmbeddingBackward&, InputTypes in) {
  check(in.size() == 3 || in.size() == 4, "embedding_backward takes tokens, dx and tables");
  OutputTypes out = {{in[2], 2}};
  if (in.size() == 4) out.push_back({in[3], 3});
  return out;
}

Flops flops(const EmbeddingBackward&, InputTypes in) {
  return {static_cast<double>(in[1].shape.elements()) * static_cast<double>(in.size() - 2)};
}

}  // namespace plimsoll::step

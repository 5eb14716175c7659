#include "plimsoll/step/ops/loss.h"

namespace plimsoll::step {

OutputTypes infer(const CrossEntropy& kind, InputTypes in) {
  check(in.size() == 3 && in[0].format == Format::f32 && in[1].shape.rows == in[0].shape.rows &&
            in[2] == TensorType{{1, 1}, Format::f32},
        "cross_entropy takes f32 logits, one target a row and a scale");
  return {{{{in[0].shape.rows, 1}, Format::f32}},
          {{in[0].shape, kind.gradient}, kind.gradient == Format::f32 ? 0 : -1}};
}

Flops flops(const CrossEntropy&, InputTypes in) {
  return {5.0 * static_cast<double>(in[0].shape.elements())};
}

OutputTypes infer(const SumLosses&, InputTypes in) {
  check(in.size() == 3 && in[0].shape == in[1].shape && in[0].format == Format::f32 &&
            in[2] == TensorType{{1, 4}, Format::i32},
        "sum_losses takes losses, targets and a total");
  return {{in[2], 2}};
}

Flops flops(const SumLosses&, InputTypes in) {
  return {static_cast<double>(in[0].shape.elements())};
}

}  // namespace plimsoll::step

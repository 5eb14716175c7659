#include "plimsoll/step/ops/loss.h"

namespace plimsoll::step {

OutputTypes infer(const CrossEntropy& kind, InputTypes in) {
  check(in.size() == 2 && in[0].format == Format::f32 && in[1].shape.rows == in[0].shape.rows,
        "cross_entropy takes f32 logits and one target a row");
  return {{{{in[0].shape.rows, 1}, Format::f32}},
          {{in[0].shape, kind.gradient}, kind.gradient == Format::f32 ? 0 : -1}};
}

Flops flops(const CrossEntropy&, InputTypes in) {
  return {5.0 * static_cast<double>(in[0].shape.elements())};
}

}  // namespace plimsoll::step

#include "plimsoll/step/ops/optimizer.h"

namespace plimsoll::step {

OutputTypes infer(const SquaredNorm& kind, InputTypes in) {
  check(in.size() == 2 && kind.slot < in[1].shape.columns, "squared_norm takes grad and squares");
  return {{in[1], 1}};
}

Flops flops(const SquaredNorm&, InputTypes in) {
  return {2.0 * static_cast<double>(in[0].shape.elements())};
}

OutputTypes infer(const StepGuard& kind, InputTypes in) {
  check(in.size() == 1u + kind.dynamic && in[0].shape.columns == 8,
        "step_guard takes statistics, and a control when it is dynamic");
  OutputTypes out = {{{{1, 1}, Format::i32}}};
  if (kind.dynamic) out.push_back({in[1], 1});
  return out;
}

Flops flops(const StepGuard&, InputTypes in) { return {static_cast<double>(in[0].shape.rows)}; }

OutputTypes infer(const ClipFactor&, InputTypes in) {
  check(in.size() == 1 || (in.size() == 2 && in[1] == TensorType{{1, 1}, Format::i32}),
        "clip_factor takes squares and whether to skip");
  return {{{{1, 3}, Format::f32}}};
}

Flops flops(const ClipFactor&, InputTypes in) {
  return {static_cast<double>(in[0].shape.elements())};
}

OutputTypes infer(const AdamW& kind, InputTypes in) {
  check(in.size() == 6 && in[0] == in[1] && in[0].shape == in[2].shape && in[2] == in[3],
        "adam_w takes weight, grad, m and v of one shape, settings and clip");
  OutputTypes out = {{in[0], 0}, {in[1], 1}, {in[2], 2}, {in[3], 3}};
  if (kind.copy != Format::f32) out.push_back({{in[0].shape, kind.copy}});
  return out;
}

Flops flops(const AdamW&, InputTypes in) {
  return {14.0 * static_cast<double>(in[0].shape.elements())};
}

}  // namespace plimsoll::step

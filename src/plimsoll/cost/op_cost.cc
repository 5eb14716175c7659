#include "plimsoll/cost/op_cost.h"

#include <algorithm>

namespace plimsoll::cost {

namespace {

using namespace step;  // the op kinds

Work elementwise() { return {.unit = Work::Unit::elementwise}; }
Work attention() { return {.unit = Work::Unit::attention}; }
Work product(Format format, const Shape& output) {
  return {.unit = Work::Unit::product,
          .format = format,
          .shape = std::min(output.rows, output.columns) < narrow_below ? ShapeClass::narrow
                                                                        : ShapeClass::large};
}

// By kind, the types of what it reads and of its first output.
Work work_of(const MatMul&, InputTypes in, TensorType out) {
  return product(in[0].format, out.shape);
}
Work work_of(const QuantizedMatMul& kind, InputTypes, TensorType out) {
  return product(kind.a.format, out.shape);
}
Work work_of(const RopeTable&, InputTypes, TensorType) { return elementwise(); }
Work work_of(const Cast&, InputTypes, TensorType) { return elementwise(); }
Work work_of(const Embedding&, InputTypes, TensorType) { return elementwise(); }
Work work_of(const RmsNorm&, InputTypes, TensorType) { return elementwise(); }
Work work_of(const AddRmsNorm&, InputTypes, TensorType) { return elementwise(); }
Work work_of(const LayerNorm&, InputTypes, TensorType) { return elementwise(); }
Work work_of(const AddLayerNorm&, InputTypes, TensorType) { return elementwise(); }
Work work_of(const Rope&, InputTypes, TensorType) { return elementwise(); }
Work work_of(const QkNorm&, InputTypes, TensorType) { return elementwise(); }
Work work_of(const Attention&, InputTypes, TensorType) { return attention(); }
Work work_of(const Glu&, InputTypes, TensorType) { return elementwise(); }
Work work_of(const Gelu&, InputTypes, TensorType) { return elementwise(); }
Work work_of(const CrossEntropy&, InputTypes, TensorType) { return elementwise(); }
Work work_of(const EmbeddingBackward&, InputTypes, TensorType) { return elementwise(); }
Work work_of(const RmsNormBackward&, InputTypes, TensorType) { return elementwise(); }
Work work_of(const LayerNormBackward&, InputTypes, TensorType) { return elementwise(); }
Work work_of(const BiasGradient&, InputTypes, TensorType) { return elementwise(); }
Work work_of(const QkNormBackward&, InputTypes, TensorType) { return elementwise(); }
Work work_of(const AttentionBackward&, InputTypes, TensorType) { return attention(); }
Work work_of(const GluBackward&, InputTypes, TensorType) { return elementwise(); }
Work work_of(const GeluBackward&, InputTypes, TensorType) { return elementwise(); }
Work work_of(const SumLosses&, InputTypes, TensorType) { return elementwise(); }
Work work_of(const SquaredNorm&, InputTypes, TensorType) { return elementwise(); }
Work work_of(const StepGuard&, InputTypes, TensorType) { return elementwise(); }
Work work_of(const ClipFactor&, InputTypes, TensorType) { return elementwise(); }
Work work_of(const AdamW&, InputTypes, TensorType) { return elementwise(); }
Work work_of(const Quantize&, InputTypes, TensorType) { return elementwise(); }
Work work_of(const UpdateScaling&, InputTypes, TensorType) { return elementwise(); }

double rate(const Work& work, const DeviceProfile& device) {
  switch (work.unit) {
    case Work::Unit::product:
      return device.product(work.format, work.shape);
    case Work::Unit::attention:
      return device.attention;
    case Work::Unit::elementwise:
      return device.elementwise;
  }
  return device.elementwise;
}

}  // namespace

Work work(const Program& program, const Op& op) {
  const std::vector<TensorType> inputs = types_of(program, op.inputs);
  const TensorType output = type_of(program, op.outputs.front());
  return std::visit([&](const auto& kind) { return work_of(kind, inputs, output); }, op.kind);
}

Seconds op_time(const Program& program, const Op& op, const DeviceProfile& device) {
  const Bytes moved = bytes_read(program, op) + bytes_written(program, op);
  return {device.launch.count + std::max(flops(program, op).count / rate(work(program, op), device),
                                         static_cast<double>(moved.count) / device.memory)};
}

Seconds step_time(const Program& program, const DeviceProfile& device, int64_t micro_steps) {
  Seconds total;
  for (const Op& op : program.ops) {
    if (op.phase == Phase::setup) continue;
    const bool once = op.phase == Phase::optimizer || op.when != When::every;
    const double runs = once ? 1 : static_cast<double>(micro_steps);
    total.count += runs * op_time(program, op, device).count;
  }
  return total;
}

}  // namespace plimsoll::cost

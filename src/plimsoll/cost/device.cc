#include "plimsoll/cost/device.h"

#include <algorithm>

namespace plimsoll::cost {

namespace {

double compute_rate(const step::Program& program, const step::Op& op, const Device& device) {
  if (std::holds_alternative<step::QuantizedMatMul>(op.kind)) return device.bf16_matmul;
  if (std::holds_alternative<step::MatMul>(op.kind)) {
    const Format format = program.tensor(op.inputs[0].tensor).type.format;
    return format == Format::bf16 ? device.bf16_matmul : device.f32_matmul;
  }
  if (std::holds_alternative<step::Attention>(op.kind) ||
      std::holds_alternative<step::AttentionBackward>(op.kind)) {
    return device.attention;
  }
  return device.f32_matmul;  // elementwise kernels are bound by memory
}

}  // namespace

Device nominal_cpu() {
  return {.name = "nominal CPU",
          .source = "fixed rates of two server cores, not measured",
          .f32_matmul = 120e9,
          .bf16_matmul = 120e9,
          .attention = 90e9,
          .memory = 15e9};
}

Seconds op_time(const step::Program& program, const step::Op& op, const Device& device) {
  const Bytes moved = bytes_read(program, op) + bytes_written(program, op);
  return {std::max(flops(program, op).count / compute_rate(program, op, device),
                   static_cast<double>(moved.count) / device.memory)};
}

Seconds step_time(const step::Program& program, const Device& device, int64_t micro_steps) {
  Seconds total;
  for (const step::Op& op : program.ops) {
    if (op.phase == step::Phase::setup) continue;
    const double runs = op.phase == step::Phase::optimizer ? 1 : static_cast<double>(micro_steps);
    total.count += runs * op_time(program, op, device).count;
  }
  return total;
}

}  // namespace plimsoll::cost

#include "plimsoll/step/ops/quantize.h"

namespace plimsoll::step {

namespace {

constexpr TensorType control_type = {{1, 8}, Format::i32};
constexpr TensorType statistics_type = {{1, 8}, Format::f32};
constexpr TensorType tensor_scale_type = {{1, 2}, Format::f32};

// Checks one operand's tensors from `in` and returns the shape of its codes.
Shape operand_shape(const Quantization& q, InputTypes in, const char* which) {
  const Shape codes = in[0].shape;
  const std::vector<TensorType> expected = quantized_types(q, codes);
  for (size_t i = 0; i < expected.size(); ++i) {
    check(in[i] == expected[i], fmt::format("quantized_mat_mul: tensor {} of {}", i, which));
  }
  return codes;
}

}  // namespace

std::vector<TensorType> quantized_types(const Quantization& q, const Shape& shape) {
  const int64_t padded = padded_columns(q.scaling, shape.columns);
  std::vector<TensorType> types = {{{shape.rows, padded}, q.format}};
  if (has_block_scales(q.scaling)) {
    types.push_back({{scale_rows(q.scaling, shape.rows), padded / block_columns(q.scaling)},
                     scale_format(q.scaling)});
  }
  if (has_tensor_scale(q.scaling)) types.push_back(tensor_scale_type);
  return types;
}

OutputTypes infer(const Quantize& kind, InputTypes in) {
  const bool delayed = (kind.has_rows ? kind.rows : kind.columns).scaling == Scaling::delayed;
  check(in.size() == 3u + delayed, "quantize takes x, control, statistics and a state if delayed");
  check(in[0].format == Format::bf16, "quantize: x is bf16");
  check(in[1] == control_type && in[2] == statistics_type, "quantize: control and statistics");
  check(kind.has_rows || kind.has_columns, "quantize: for one product at least");
  const Shape x = in[0].shape;
  OutputTypes out;
  const auto add = [&](const Quantization& q, const Shape& shape) {
    for (const TensorType& type : quantized_types(q, shape)) out.push_back({type});
  };
  if (kind.has_rows) add(kind.rows, x);
  if (kind.has_columns) add(kind.columns, {x.columns, x.rows});
  out.push_back({in[2], 2});
  if (delayed) out.push_back({in[3], 3});
  return out;
}

Flops flops(const Quantize& kind, InputTypes in) {
  const double transform = kind.has_columns && kind.columns.hadamard ? 32 : 0;
  return {static_cast<double>(in[0].shape.elements()) *
          (2.0 * (kind.has_rows + kind.has_columns) + transform)};
}

OutputTypes infer(const QuantizedMatMul& kind, InputTypes in) {
  const size_t a = tensor_count(kind.a), b = tensor_count(kind.b);
  check(in.size() == a + b + kind.has_bias + kind.accumulate,
        "quantized_mat_mul takes a, b, bias, c");
  check(!kind.has_bias || !kind.accumulate, "quantized_mat_mul: a bias and an accumulation");
  const Shape a_shape = operand_shape(kind.a, in.first(a), "a");
  const Shape b_shape = operand_shape(kind.b, in.subspan(a, b), "b");
  check(a_shape.columns == b_shape.columns, "quantized_mat_mul: columns of a and b differ");
  const TensorType c = {{a_shape.rows, b_shape.rows}, kind.output};
  check(!kind.has_bias || in[a + b] == TensorType{{1, c.shape.columns}, Format::f32},
        "quantized_mat_mul: the bias is an f32 vector of c's columns");
  return {{c, kind.accumulate ? static_cast<int>(a + b) : -1}};
}

Flops flops(const QuantizedMatMul& kind, InputTypes in) {
  const Shape a = in[0].shape, b = in[tensor_count(kind.a)].shape;
  return {2.0 * static_cast<double>(a.rows) * static_cast<double>(b.rows) *
          static_cast<double>(a.columns)};
}

OutputTypes infer(const UpdateScaling&, InputTypes in) {
  check(in.size() == 1 && in[0].format == Format::f32 && in[0].shape.rows == 1,
        "update_scaling takes a state");
  return {{in[0], 0}};
}

Flops flops(const UpdateScaling&, InputTypes in) {
  return {static_cast<double>(in[0].shape.elements())};
}

}  // namespace plimsoll::step

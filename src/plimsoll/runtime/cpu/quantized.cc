#include "plimsoll/runtime/cpu/quantized.h"

#include "plimsoll/base/error.h"
#include "plimsoll/runtime/cpu/kernels/quantize.h"

namespace plimsoll::cpu {

namespace {

using step::Quantize;
using step::QuantizedMatMul;

constexpr size_t kAlignment = 64;
size_t aligned(size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

// The tensors of one quantised matrix out of an op's operands, from `at` on.
QuantizedView take(const Quantization& q, const std::vector<View>& operands, size_t& at) {
  QuantizedView view = {.codes = operands[at++]};
  if (has_block_scales(q.scaling)) view.scales = operands[at++];
  if (has_tensor_scale(q.scaling)) view.tensor_scale = operands[at++];
  return view;
}

GemmShape shape_of(const QuantizedMatMul& kind, int64_t m, int64_t n, int64_t k) {
  return {.product = step::Product::forward,
          .m = m,
          .n = n,
          .k = k,
          .a = product_format(kind.a.format),
          .b = product_format(kind.b.format),
          .c = kind.output,
          .has_bias = kind.has_bias,
          .accumulate = kind.accumulate};
}

size_t decoded_bytes(Format format, int64_t elements) {
  return aligned(static_cast<size_t>(bytes_of(format, elements)));
}

}  // namespace

size_t quantizer_scratch(const Quantize& kind, step::InputTypes in) {
  return quantize_workspace(kind, in[0].shape.rows, in[0].shape.columns);
}

Work prepare_quantizer(const Quantize& kind, std::vector<View> inputs, std::vector<View> outputs,
                       std::span<std::byte> workspace) {
  QuantizedView rows, columns;
  size_t at = 0;
  if (kind.has_rows) rows = take(kind.rows, outputs, at);
  if (kind.has_columns) columns = take(kind.columns, outputs, at);
  const View x = inputs[0];
  const auto* control = inputs[1].as<QuantizerControl>();
  auto* statistics = outputs[at++].as<QuantizerStatistics>();
  const std::span<float> state =
      at < outputs.size() ? outputs[at].span<float>() : std::span<float>();
  return [=] {
    QuantizerControl now = *control;
    if (!kind.loss_scaled) now.loss_scale_log2 = 0;
    quantize(kind, x, now, state, *statistics, rows, columns, workspace);
  };
}

size_t quantized_matmul_scratch(const QuantizedMatMul& kind, step::InputTypes in,
                                const ProductSettings& products) {
  const step::Shape a = in[0].shape, b = in[step::tensor_count(kind.a)].shape;
  const GemmShape shape = shape_of(kind, a.rows, b.rows, a.columns);
  return decoded_bytes(shape.a, a.elements()) + decoded_bytes(shape.b, b.elements()) +
         static_cast<size_t>(matmul_workspace(shape, products).count);
}

Work prepare_quantized_matmul(const QuantizedMatMul& kind, std::vector<View> inputs, const View& c,
                              std::span<std::byte> workspace, const ProductSettings& products) {
  size_t at = 0;
  const QuantizedView a = take(kind.a, inputs, at), b = take(kind.b, inputs, at);
  const View bias = kind.has_bias ? inputs[at] : View{};
  const GemmShape shape = shape_of(kind, a.codes.rows, b.codes.rows, a.codes.columns);
  const size_t a_bytes = decoded_bytes(shape.a, a.codes.elements());
  const size_t b_bytes = decoded_bytes(shape.b, b.codes.elements());
  const View decoded_a = {workspace.data(), shape.a, a.codes.rows, a.codes.columns};
  const View decoded_b = {workspace.data() + a_bytes, shape.b, b.codes.rows, b.codes.columns};
  const std::span<std::byte> scratch = workspace.subspan(a_bytes + b_bytes);
  const auto factor = [](const View& scale) { return scale ? scale.as<float>()[0] : 1.0f; };
  return [=] {
    dequantize(kind.a, a, decoded_a);
    dequantize(kind.b, b, decoded_b);
    matmul(shape, decoded_a, decoded_b, bias, c, scratch, products,
           factor(a.tensor_scale) * factor(b.tensor_scale));
  };
}

}  // namespace plimsoll::cpu

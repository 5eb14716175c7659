#include "plimsoll/runtime/cpu/scratch.h"

#include "plimsoll/runtime/cpu/kernels/kernels.h"
#include "plimsoll/runtime/cpu/kernels/quantize.h"
#include "plimsoll/runtime/cpu/machine.h"
#include "plimsoll/runtime/cpu/quantized.h"
#include "plimsoll/runtime/cpu/targets.h"

namespace plimsoll::cpu {

using namespace step;  // the op kinds

GemmShape gemm_shape(const MatMul& kind, const TensorType& a, const TensorType& b) {
  GemmShape shape = {.product = kind.product,
                     .a = a.format,
                     .b = b.format,
                     .c = kind.output,
                     .has_bias = kind.has_bias,
                     .accumulate = kind.accumulate};
  const bool transposed = kind.product == Product::weight_gradient;
  shape.m = transposed ? a.shape.columns : a.shape.rows;
  shape.k = transposed ? a.shape.rows : a.shape.columns;
  shape.n = kind.product == Product::forward ? b.shape.rows : b.shape.columns;
  return shape;
}

namespace {

// A kind without its own overload needs no scratch.
template <class Kind>
size_t scratch(const Kind&, InputTypes, const ProductSettings&) {
  return 0;
}
size_t scratch(const MatMul& kind, InputTypes in, const ProductSettings& products) {
  return static_cast<size_t>(matmul_workspace(gemm_shape(kind, in[0], in[1]), products).count);
}
size_t scratch(const RmsNormBackward&, InputTypes in, const ProductSettings&) {
  return rms_norm_backward_workspace(in[0].shape.rows, in[0].shape.columns);
}
size_t scratch(const LayerNormBackward&, InputTypes in, const ProductSettings&) {
  return layer_norm_backward_workspace(in[0].shape.rows, in[0].shape.columns);
}
size_t scratch(const BiasGradient&, InputTypes in, const ProductSettings&) {
  return bias_gradient_workspace(in[0].shape.rows, in[0].shape.columns);
}
size_t scratch(const QkNormBackward& kind, InputTypes in, const ProductSettings&) {
  return qk_norm_backward_workspace(in[0].shape.rows, kind.shape);
}
size_t scratch(const Attention& kind, InputTypes, const ProductSettings& products) {
  return attention_workspace(kind.shape, products.threads);
}
size_t scratch(const AttentionBackward& kind, InputTypes in, const ProductSettings& products) {
  return attention_backward_workspace(in[0].shape.rows, kind.shape, products.threads);
}
size_t scratch(const GeluBackward& kind, InputTypes in, const ProductSettings&) {
  return kind.has_bias ? gelu_backward_workspace(in[0].shape.rows, in[0].shape.columns) : 0;
}
size_t scratch(const SquaredNorm&, InputTypes in, const ProductSettings&) {
  return squared_norm_workspace(in[0].shape.elements());
}

size_t scratch(const Quantize& kind, InputTypes in, const ProductSettings&) {
  return quantizer_scratch(kind, in);
}
size_t scratch(const QuantizedMatMul& kind, InputTypes in, const ProductSettings& products) {
  return quantized_matmul_scratch(kind, in, products);
}

}  // namespace

ProductSettings product_settings(int threads, std::optional<Bf16Kernel> bf16) {
  return {.threads = threads > 0 ? threads : core_count(),
          .bf16 = bf16.value_or(bf16_kernels().front())};
}

ScratchModel scratch_model(const ProductSettings& products) {
  return {fmt::format("cpu: {} threads, kernels {}, products f32: {}, bf16: {}", products.threads,
                      simd_target(), matmul_description(Format::f32, products),
                      matmul_description(Format::bf16, products)),
          [products](const Program& program, const Op& op) {
            const std::vector<TensorType> inputs = types_of(program, op.inputs);
            return Bytes{static_cast<int64_t>(std::visit(
                [&](const auto& kind) { return scratch(kind, inputs, products); }, op.kind))};
          }};
}

}  // namespace plimsoll::cpu

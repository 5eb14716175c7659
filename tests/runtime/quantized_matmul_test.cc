// Products of quantised matrices: decoded operands, padded sums, the factor of the tensors.
#include "plimsoll/runtime/cpu/quantized.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <random>

#include "plimsoll/runtime/cpu/kernels/quantize.h"

namespace plimsoll::cpu {
namespace {

struct Matrix {
  View view;
  std::vector<std::byte> bytes;

  explicit Matrix(const step::TensorType& type)
      : bytes(static_cast<size_t>(step::bytes(type).count) + 64, std::byte{0xff}) {
    view = {bytes.data(), type.format, type.shape.rows, type.shape.columns};
  }
};

// A random bf16 matrix quantised along its columns.
struct Quantized {
  std::vector<Matrix> tensors;
  std::vector<View> views() const {
    std::vector<View> all;
    for (const Matrix& matrix : tensors) all.push_back(matrix.view);
    return all;
  }
};

Quantized quantized(const Quantization& q, int64_t rows, int64_t columns, uint32_t seed) {
  Matrix x({{rows, columns}, Format::bf16});
  std::minstd_rand random(seed);
  std::normal_distribution<float> normal;
  for (bf16& value : x.view.span<bf16>()) value = bf16(normal(random));
  Quantized result;
  for (const step::TensorType& type : step::quantized_types(q, {rows, columns})) {
    result.tensors.emplace_back(type);
  }
  const step::Quantize kind = {.rows = q};
  QuantizedView view = {.codes = result.tensors[0].view};
  size_t next = 1;
  if (has_block_scales(q.scaling)) view.scales = result.tensors[next++].view;
  if (has_tensor_scale(q.scaling)) view.tensor_scale = result.tensors[next++].view;
  std::vector<float> state(5, 0.0f);
  QuantizerStatistics statistics;
  std::vector<std::byte> scratch(quantize_workspace(kind, rows, columns) + 64);
  const bool delayed = q.scaling == Scaling::delayed;
  quantize(kind, x.view, {.seed_low = seed}, delayed ? std::span<float>(state) : std::span<float>(),
           statistics, view, {}, scratch);
  return result;
}

// Its values, the factor of the tensor applied; columns up to the padding.
std::vector<double> values(const Quantization& q, const Quantized& matrix) {
  const View codes = matrix.tensors[0].view;
  Matrix decoded({{codes.rows, codes.columns}, product_format(q.format)});
  QuantizedView view = {.codes = codes};
  size_t next = 1;
  if (has_block_scales(q.scaling)) view.scales = matrix.tensors[next++].view;
  double factor = 1;
  if (has_tensor_scale(q.scaling)) factor = matrix.tensors[next++].view.as<float>()[0];
  dequantize(q, view, decoded.view);
  std::vector<double> all;
  for (int64_t i = 0; i < codes.elements(); ++i) {
    const double value = decoded.view.format == Format::f32
                             ? decoded.view.as<float>()[i]
                             : static_cast<float>(decoded.view.as<bf16>()[i]);
    all.push_back(value * factor);
  }
  return all;
}

RC_GTEST_PROP(QuantizedMatMul, IsTheProductOfTheValuesForAnySize, ()) {
  const auto scaling = *rc::gen::element(Scaling::loss, Scaling::current, Scaling::delayed,
                                         Scaling::block_1x128, Scaling::block_128x128, Scaling::mx,
                                         Scaling::nvfp4_1x16, Scaling::nvfp4_16x16);
  Quantization a = {.scaling = scaling}, b;
  if (scaling == Scaling::loss) a.format = Format::f16;
  if (is_nvfp4(scaling)) a.format = Format::e2m1;
  b = a;
  if (scaling == Scaling::current) a.format = *rc::gen::element(Format::e4m3, Format::e5m2);
  const int64_t m = *rc::gen::inRange<int64_t>(1, 40), n = *rc::gen::inRange<int64_t>(1, 40),
                k = *rc::gen::inRange<int64_t>(1, 300);
  const bool bias = *rc::gen::arbitrary<bool>();
  const bool accumulate = !bias && *rc::gen::arbitrary<bool>();
  const step::QuantizedMatMul kind = {
      .a = a, .b = b, .has_bias = bias, .accumulate = accumulate, .output = Format::f32};
  const Quantized qa = quantized(a, m, k, 1), qb = quantized(b, n, k, 2);
  std::vector<View> inputs = qa.views();
  for (const View& view : qb.views()) inputs.push_back(view);
  Matrix bias_vector({{1, n}, Format::f32}), c({{m, n}, Format::f32});
  for (float& value : bias_vector.view.span<float>()) value = 0.25f;
  for (float& value : c.view.span<float>()) value = 2;
  if (bias) inputs.push_back(bias_vector.view);
  if (accumulate) inputs.push_back(c.view);
  std::vector<step::TensorType> types;
  for (const View& view : inputs) types.push_back({{view.rows, view.columns}, view.format});
  const ProductSettings products = {.threads = 2, .bf16 = bf16_kernels().front()};
  std::vector<std::byte> scratch(quantized_matmul_scratch(kind, types, products) + 64);
  auto* aligned =
      reinterpret_cast<std::byte*>((reinterpret_cast<uintptr_t>(scratch.data()) + 63) / 64 * 64);
  prepare_quantized_matmul(kind, inputs, c.view, {aligned, scratch.size() - 64}, products)();

  const std::vector<double> va = values(a, qa), vb = values(b, qb);
  const int64_t padded = padded_columns(scaling, k);
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      double sum = bias ? 0.25 : accumulate ? 2 : 0, magnitude = std::abs(sum);
      for (int64_t l = 0; l < k; ++l) {  // without the padding
        const double product =
            va[static_cast<size_t>(i * padded + l)] * vb[static_cast<size_t>(j * padded + l)];
        sum += product;
        magnitude += std::abs(product);
      }
      RC_ASSERT(std::abs(c.view.as<float>()[i * n + j] - sum) <= 1e-5 * magnitude + 1e-12);
    }
  }
}

}  // namespace
}  // namespace plimsoll::cpu

#include "plimsoll/runtime/cpu/matmul.h"

#include <fmt/format.h>

#include "plimsoll/runtime/cpu/targets.h"

namespace plimsoll::cpu {

namespace {

// With so few rows a product is as fast as its weights are read: gemm() reads them where they lie.
constexpr int64_t kFewRows = 16;

bool by_bf16_kernel(const GemmShape& s, const ProductSettings& settings) {
  const bool few_rows = s.product == step::Product::forward && s.m <= kFewRows;
  return takes(settings.bf16, s) && !few_rows;
}

}  // namespace

Bytes matmul_workspace(const GemmShape& shape, const ProductSettings& settings) {
  return {static_cast<int64_t>(by_bf16_kernel(shape, settings)
                                   ? gemm_bf16_workspace(settings.bf16, shape, settings.threads)
                                   : gemm_workspace(shape, settings.threads))};
}

void matmul(const GemmShape& shape, const View& a, const View& b, const View& bias, const View& c,
            std::span<std::byte> workspace, const ProductSettings& settings, float alpha) {
  if (by_bf16_kernel(shape, settings)) {
    gemm_bf16(settings.bf16, shape, a, b, bias, c, workspace, settings.threads, alpha);
  } else {
    gemm(shape, a, b, bias, c, workspace, settings.threads, alpha);
  }
}

std::string matmul_description(Format format, const ProductSettings& settings) {
  if (format != Format::bf16) return simd_target();
  if (settings.bf16 != Bf16Kernel::portable) return std::string(name(settings.bf16));
  return fmt::format("{}, {}", simd_target(), name(settings.bf16));
}

}  // namespace plimsoll::cpu

#include "plimsoll/runtime/cpu/matmul.h"

#include <fmt/format.h>

#include "plimsoll/runtime/cpu/targets.h"

namespace plimsoll::cpu {

Bytes matmul_workspace(const GemmShape& shape, const ProductSettings& settings) {
  return {static_cast<int64_t>(takes(settings.bf16, shape)
                                   ? gemm_bf16_workspace(settings.bf16, shape, settings.threads)
                                   : gemm_workspace(shape, settings.threads))};
}

void matmul(const GemmShape& shape, const View& a, const View& b, const View& bias, const View& c,
            std::span<std::byte> workspace, const ProductSettings& settings, float alpha) {
  if (takes(settings.bf16, shape)) {
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

#include "plimsoll/base/error.h"
#include "plimsoll/runtime/cpu/matmul.h"
#include "plimsoll/runtime/cpu/targets.h"

namespace plimsoll::cpu {

Bytes matmul_workspace(const GemmShape& shape, int threads) {
  return {static_cast<int64_t>(gemm_workspace(shape, threads))};
}

runtime::Launch prepare_matmul(const GemmShape& shape, const View& a, const View& b,
                               const View& bias, const View& c, std::span<std::byte> workspace,
                               int threads) {
  return [=] { gemm(shape, a, b, bias, c, workspace, threads); };
}

std::string matmul_description(Format format, int) { return gemm_description(format); }

}  // namespace plimsoll::cpu

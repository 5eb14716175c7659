// The scratch of the CPU's kernels and libraries, known without making the CPU a device.
#pragma once

#include <optional>

#include "plimsoll/runtime/cpu/matmul.h"
#include "plimsoll/step/scratch_model.h"

namespace plimsoll::cpu {

step::ScratchModel scratch_model(const ProductSettings& products);

// `threads`: 0 means as many as this process may use (machine.h). `bf16`: nothing: the fastest.
ProductSettings product_settings(int threads, std::optional<Bf16Kernel> bf16 = {});

// The product that a MatMul of these operands is.
GemmShape gemm_shape(const step::MatMul& kind, const step::TensorType& a, const step::TensorType& b);

}  // namespace plimsoll::cpu

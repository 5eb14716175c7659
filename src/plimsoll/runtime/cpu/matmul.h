// Matrix products of the CPU backend: bf16 by the instructions that the CPU has for it
// (kernels/gemm_bf16.h), everything else by kernels/gemm.h, which takes bf16 operands as f32.
#pragma once

#include <string>

#include "plimsoll/runtime/backend.h"
#include "plimsoll/runtime/cpu/kernels/gemm_bf16.h"

namespace plimsoll::cpu {

// How products are made: their threads, and the kernel of bf16 products.
struct ProductSettings {
  int threads = 1;
  Bf16Kernel bf16 = Bf16Kernel::portable;
};

Bytes matmul_workspace(const GemmShape& shape, const ProductSettings& settings);

// `bias` is empty unless shape.has_bias; alpha times the product is what counts.
void matmul(const GemmShape& shape, const View& a, const View& b, const View& bias, const View& c,
            std::span<std::byte> workspace, const ProductSettings& settings, float alpha = 1);

// What computes a product of these formats here: "AMX", "AVX2, bf16 values in f32 arithmetic". For
// logs and run directories.
std::string matmul_description(Format format, const ProductSettings& settings);

}  // namespace plimsoll::cpu

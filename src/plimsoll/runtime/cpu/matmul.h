// Matrix products of the CPU backend: oneDNN where it brings an implementation that works inside
// the scratch it asked for beforehand (its brgemm, on AVX-512 and AMX), our own GEMM elsewhere.
//
// oneDNN's AVX2 path allocates its packing buffers inside every call, outside any plan, and has no
// bf16; kernels/gemm.h packs bf16 operands as f32 on the fly, which gives the f32 product of the
// rounded values.
#pragma once

#include <string>

#include "plimsoll/runtime/backend.h"
#include "plimsoll/runtime/cpu/kernels/gemm.h"

namespace plimsoll::cpu {

Bytes matmul_workspace(const GemmShape& shape, int threads);

// `bias` is empty unless shape.has_bias.
runtime::Launch prepare_matmul(const GemmShape& shape, const View& a, const View& b,
                               const View& bias, const View& c, std::span<std::byte> workspace,
                               int threads);

// What computes a product of these formats here: "oneDNN brg:avx512_core_bf16", "gemm AVX2, bf16
// values in f32 arithmetic". For logs and run directories.
std::string matmul_description(Format format, int threads);

}  // namespace plimsoll::cpu

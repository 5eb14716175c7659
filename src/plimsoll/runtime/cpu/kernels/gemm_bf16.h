// Products of bf16 matrices with the instructions that newer CPUs have for them: AMX tiles
// (tdpbf16ps) and AVX-512 BF16 (vdpbf16ps). Shapes and operands as in gemm.h.
//
// A kernel sums every element of c in an order that depends on k and the product alone, so results
// are bit-identical for any number of threads and rows. Between kernels, and against gemm.h, the
// last bits differ: these instructions add products in pairs and take subnormal numbers as zero
// (Intel SDM, TDPBF16PS and VDPBF16PS).
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "plimsoll/runtime/cpu/kernels/gemm.h"

namespace plimsoll::cpu {

enum class Bf16Kernel : uint8_t { portable, avx512_bf16, amx };
std::string_view name(Bf16Kernel kernel);  // "AMX"

// Those that this CPU and system offer, the fastest first; `portable`, which is gemm(), is last.
const std::vector<Bf16Kernel>& bf16_kernels();

// Whether the kernel (not `portable`) takes the shape: a and b are bf16.
bool takes(Bf16Kernel kernel, const GemmShape& shape);

// Bytes of scratch, and the product; `kernel` is one of bf16_kernels() and takes the shape.
size_t gemm_bf16_workspace(Bf16Kernel kernel, const GemmShape& shape, int threads);
void gemm_bf16(Bf16Kernel kernel, const GemmShape& shape, const View& a, const View& b,
               const View& bias, const View& c, std::span<std::byte> workspace, int threads,
               float alpha = 1);

}  // namespace plimsoll::cpu

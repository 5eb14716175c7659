// The portable matrix product: packed panels and a register-blocked microkernel, vectorised with
// Highway. f32 or bf16 in, f32 or bf16 out, f32 sums.
//
// Goto & van de Geijn 2008, "Anatomy of High-Performance Matrix Multiplication".
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "plimsoll/numerics/format.h"
#include "plimsoll/runtime/view.h"
#include "plimsoll/step/ops/linear.h"

namespace plimsoll::cpu {

// c = alpha a' * b' (+ bias) (+ c when accumulate); all matrices row-major and contiguous:
//   forward:         a (m,k), b (n,k)  ->  c (m,n) = a * b^T
//   input_gradient:  a (m,k), b (k,n)  ->  c (m,n) = a * b
//   weight_gradient: a (k,m), b (k,n)  ->  c (m,n) = a^T * b
// a and b are f32 or bf16, both alike; c is f32 or bf16; bias (n) is f32, for any product.
struct GemmShape {
  step::Product product = step::Product::forward;
  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;
  Format a = Format::f32;
  Format b = Format::f32;
  Format c = Format::f32;
  bool has_bias = false;
  bool accumulate = false;
};

// Bytes of scratch `gemm` needs; less than 2 MiB a thread.
size_t gemm_workspace(const GemmShape& shape, int threads);

// alpha multiplies the sum over each block of k. `bias` is read only where shape.has_bias.
// `workspace` is aligned to 64; nothing else is allocated. A bf16 c is rounded once, from the
// complete f32 sum. Every element of c is summed in an order that depends on the shape only, so
// results are bit-identical for any number of threads.
void gemm(const GemmShape& shape, const View& a, const View& b, const View& bias, const View& c,
          std::span<std::byte> workspace, int threads, float alpha = 1);

}  // namespace plimsoll::cpu

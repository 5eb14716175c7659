// What gemm_bf16.cc asks of a kernel: to pack blocks of a and b, and to multiply packed blocks.
//
// Packed a: panels of panel_rows() rows; in a panel, for each 32 of k, the rows one after another,
// 32 elements each. Packed b: panels of 32 columns; in a panel, for each pair of k, the columns,
// two elements each. Both are 0 where rows, columns or k end. Elements are the bits of bf16.
#pragma once

#include <cstdint>

#include "plimsoll/runtime/cpu/kernels/gemm_bf16.h"
#include "plimsoll/runtime/cpu/kernels/gemm_blocks.h"

namespace plimsoll::cpu {

constexpr int64_t kPanelColumns = 32;
constexpr int64_t kPanelDepth = 32;
constexpr int64_t panel_rows(Bf16Kernel kernel) { return kernel == Bf16Kernel::amx ? 32 : 12; }

struct Bf16Operands {
  const uint16_t* a;
  const uint16_t* b;
  const float* bias;
  void* c;
  float alpha;
};

// Where a block of the product goes, and what is added on the way; null where nothing is.
struct Bf16Output {
  float* f32 = nullptr;  // one of the two
  uint16_t* bf16 = nullptr;
  int64_t stride = 0;
  bool turned = false;             // row r, column c of the product go to row c, column r
  const float* partial = nullptr;  // the sum over the blocks of k before
  int64_t partial_stride = 0;
  const float* bias = nullptr;
  bool accumulate = false;  // to what `bf16` holds
  float alpha = 1;          // times the product
};

struct Bf16Functions {
  int64_t panel_rows;
  void (*begin)();  // on each thread, before and after its products
  void (*end)();
  void (*pack_a)(const GemmShape&, const uint16_t* a, int64_t row, int64_t rows, int64_t k,
                 int64_t depth, uint16_t* out);
  void (*pack_b)(const GemmShape&, const uint16_t* b, int64_t column, int64_t columns, int64_t k,
                 int64_t depth, uint16_t* out);
  void (*multiply)(const uint16_t* a, const uint16_t* b, int64_t rows, int64_t columns,
                   int64_t depth, const Bf16Output& out);
};

// Null where the CPU, the system or the architecture has not got them.
const Bf16Functions* amx_functions();
const Bf16Functions* avx512_bf16_functions();

}  // namespace plimsoll::cpu

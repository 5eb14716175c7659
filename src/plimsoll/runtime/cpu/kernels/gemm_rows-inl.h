// Few rows of a times b^T, without packing: each row of b is read once, where it lies.

#include "hwy/cache_control.h"
#include "plimsoll/runtime/cpu/kernels/simd-inl.h"

#if defined(PLIMSOLL_RUNTIME_CPU_KERNELS_GEMM_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PLIMSOLL_RUNTIME_CPU_KERNELS_GEMM_ROWS_INL_H_
#undef PLIMSOLL_RUNTIME_CPU_KERNELS_GEMM_ROWS_INL_H_
#else
#define PLIMSOLL_RUNTIME_CPU_KERNELS_GEMM_ROWS_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace plimsoll::cpu::HWY_NAMESPACE {

// sums[i * columns + j] = dot product of row i of a and row j of b, both of `depth` elements. One
// vector sum each, so that its bits do not depend on `rows` and `columns`; 3 x 4 of them and what
// is read fill 16 registers.
template <int64_t rows, int64_t columns, class In>
HWY_INLINE void dot_products(const In* a, const In* b, int64_t depth, float* sums) {
  VF lanes_sums[rows][columns];
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) lanes_sums[i][j] = hn::Zero(DF());
  }
  const auto add = [&](int64_t k, auto lanes) HWY_ATTR {
    VF a_k[rows];
    for (int64_t i = 0; i < rows; ++i) a_k[i] = load(a + i * depth + k, lanes);
    for (int64_t j = 0; j < columns; ++j) {
      const VF b_k = load(b + j * depth + k, lanes);
      hwy::Prefetch(b + (columns + j) * depth + k);  // for the next rows: they come from memory
      for (int64_t i = 0; i < rows; ++i) {
        lanes_sums[i][j] = hn::MulAdd(a_k[i], b_k, lanes_sums[i][j]);
      }
    }
  };
  for_columns(depth, add);
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) {
      sums[i * columns + j] = hn::GetLane(hn::SumOfLanes(DF(), lanes_sums[i][j]));
    }
  }
}

// Where c's elements go, as in gemm.h.
template <class Out>
struct RowsOutput {
  Out* c;
  int64_t stride;
  const float* bias;  // may be null
  bool accumulate;
  float alpha;  // times the product
};

template <int64_t rows, int64_t columns, class In, class Out>
HWY_INLINE void multiply_dots(const In* a, const In* b, int64_t depth, int64_t row, int64_t column,
                              const RowsOutput<Out>& out) {
  float sums[rows * columns];
  dot_products<rows, columns>(a + row * depth, b + column * depth, depth, sums);
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) {
      float sum = out.alpha * sums[i * columns + j];
      Out& c = out.c[(row + i) * out.stride + column + j];
      if (out.bias) sum += out.bias[column + j];
      if (out.accumulate) sum += static_cast<float>(c);
      c = static_cast<Out>(sum);
    }
  }
}

template <int64_t columns, class In, class Out>
HWY_INLINE void multiply_columns(const In* a, const In* b, int64_t rows, int64_t depth,
                                 int64_t column, const RowsOutput<Out>& out) {
  int64_t i = 0;
  for (; i + 3 <= rows; i += 3) multiply_dots<3, columns>(a, b, depth, i, column, out);
  if (rows - i == 2) multiply_dots<2, columns>(a, b, depth, i, column, out);
  if (rows - i == 1) multiply_dots<1, columns>(a, b, depth, i, column, out);
}

// Columns [begin, end) of c = a * b^T, a (rows, depth), b (columns of c, depth).
template <class In, class Out>
void multiply_rows(const In* a, const In* b, int64_t rows, int64_t depth, int64_t begin,
                   int64_t end, const RowsOutput<Out>& out) {
  int64_t j = begin;
  for (; j + 4 <= end; j += 4) multiply_columns<4>(a, b, rows, depth, j, out);
  for (; j < end; ++j) multiply_columns<1>(a, b, rows, depth, j, out);
}

}  // namespace plimsoll::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard

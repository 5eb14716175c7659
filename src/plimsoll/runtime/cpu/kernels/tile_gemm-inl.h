// Small matrix products and the exponential on tiles of f32, for kernels that keep their operands
// in cache and interleave products with element-wise work (attention). Include it from a source
// that is compiled once per Highway target.
//
// A product is an outer-product kernel: `tile_rows` x `tile_vectors` accumulators stay in
// registers, every step loads `tile_vectors` vectors of B and broadcasts `tile_rows` scalars of A,
// so A may be read with any strides (transposed at no cost) while B and C are row-major.
#if defined(PLIMSOLL_TILE_GEMM_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PLIMSOLL_TILE_GEMM_INL_H_
#undef PLIMSOLL_TILE_GEMM_INL_H_
#else
#define PLIMSOLL_TILE_GEMM_INL_H_
#endif

#include <cstdint>

#include "hwy/highway.h"
#include "plimsoll/runtime/cpu/kernels/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace plimsoll::cpu::HWY_NAMESPACE {

inline constexpr int64_t tile_vectors = 2;
static_assert(hn::MaxLanes(DF()) <= 16);  // so a panel is at most 32 floats wide
// 12 accumulators for 16 vector registers, 24 for 32.
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_NEON
inline constexpr int64_t tile_rows = 12;
#else
inline constexpr int64_t tile_rows = 6;
#endif

HWY_INLINE int64_t lanes() { return static_cast<int64_t>(hn::Lanes(DF())); }
HWY_INLINE int64_t panel_columns() { return tile_vectors * lanes(); }

// How a product meets what C holds: C = AB, C += AB, or C = C * scale + AB with one scale a column.
enum class Into { store, add, scale_add };

struct Operand {  // A: element (i, k) at data[i * row + k * depth]
  const float* data;
  int64_t row;
  int64_t depth;
};
struct Matrix {  // row-major, `stride` floats from row to row
  float* data;
  int64_t stride;
  Matrix from(int64_t row, int64_t column) const { return {data + row * stride + column, stride}; }
};

// One register tile: `rows` x (`vectors` * lanes) elements of C. `scale` is read by scale_add only.
template <Into into, int rows, int vectors>
HWY_INLINE void multiply_tile(int64_t depth, Operand a, Matrix b, Matrix c,
                              const float* HWY_RESTRICT scale) {
  const DF d;
  const int64_t n = lanes();
  VF sum[rows][vectors];
  for (int i = 0; i < rows; ++i) {
    for (int v = 0; v < vectors; ++v) sum[i][v] = hn::Zero(d);
  }
  const float* HWY_RESTRICT a_step = a.data;
  const float* HWY_RESTRICT b_row = b.data;
  for (int64_t k = 0; k < depth; ++k, a_step += a.depth, b_row += b.stride) {
    VF b_vector[vectors];
    for (int v = 0; v < vectors; ++v) b_vector[v] = hn::Load(d, b_row + v * n);
    for (int i = 0; i < rows; ++i) {
      const VF a_scalar = hn::Set(d, a_step[i * a.row]);
      for (int v = 0; v < vectors; ++v) {
        sum[i][v] = hn::MulAdd(a_scalar, b_vector[v], sum[i][v]);
      }
    }
  }
  for (int i = 0; i < rows; ++i) {
    for (int v = 0; v < vectors; ++v) {
      float* to = c.data + i * c.stride + v * n;
      if constexpr (into == Into::add) {
        sum[i][v] = hn::Add(hn::Load(d, to), sum[i][v]);
      } else if constexpr (into == Into::scale_add) {
        sum[i][v] = hn::MulAdd(hn::Load(d, to), hn::Load(d, scale + v * n), sum[i][v]);
      }
      hn::Store(sum[i][v], d, to);
    }
  }
}

// The last `rows` < tile_rows rows of a panel.
template <Into into, int vectors, int rows = tile_rows - 1>
HWY_INLINE void multiply_tail(int64_t tail, int64_t depth, Operand a, Matrix b, Matrix c,
                              const float* scale) {
  if (tail == rows) {
    multiply_tile<into, rows, vectors>(depth, a, b, c, scale);
  } else if constexpr (rows > 1) {
    multiply_tail<into, vectors, rows - 1>(tail, depth, a, b, c, scale);
  }
}

template <Into into, int vectors>
HWY_NOINLINE void multiply_panel(int64_t rows, int64_t depth, Operand a, Matrix b, Matrix c,
                                 const float* scale) {
  int64_t i = 0;
  for (; i + tile_rows <= rows; i += tile_rows) {
    multiply_tile<into, tile_rows, vectors>(depth, {a.data + i * a.row, a.row, a.depth}, b,
                                            c.from(i, 0), scale);
  }
  multiply_tail<into, vectors>(rows - i, depth, {a.data + i * a.row, a.row, a.depth}, b,
                               c.from(i, 0), scale);
}

// C (rows, columns) from A (rows, depth) and B (depth, columns). Columns are rounded up to whole
// vectors: B and C have readable, C writable, floats there. B, C and scale are aligned to a vector.
template <Into into>
HWY_INLINE void multiply(int64_t rows, int64_t columns, int64_t depth, Operand a, Matrix b,
                         Matrix c, const float* scale = nullptr) {
  int64_t j = 0;
  for (; j + lanes() < columns; j += panel_columns()) {
    multiply_panel<into, tile_vectors>(rows, depth, a, b.from(0, j), c.from(0, j), scale);
  }
  if (j < columns) multiply_panel<into, 1>(rows, depth, a, b.from(0, j), c.from(0, j), scale);
}

// 2^x for x <= 127, within 2 units in the last place; exactly 0 below -126 and exactly 1 at 0; a
// NaN stays one. 2^x = 2^n 2^f with f in [-1/2, 1/2] and 2^f from a polynomial, as in Cody & Waite
// 1980, "Software Manual for the Elementary Functions"; coefficients interpolate (2^f - 1) / f at
// Chebyshev nodes.
HWY_INLINE VF exp2(VF x) {
  const DF d;
  const hn::RebindToSigned<DF> di;
  // Adding 1.5 * 2^23 rounds x to an integer and leaves that integer in the lowest bits.
  const VF magic = hn::Set(d, 12582912.0f);
  const VF rounded = hn::Add(x, magic);
  const VF f = hn::Sub(x, hn::Sub(rounded, magic));
  VF p = hn::Set(d, 0.00015453162939696504f);
  p = hn::MulAdd(p, f, hn::Set(d, 0.0013390863364625236f));
  p = hn::MulAdd(p, f, hn::Set(d, 0.00961808255730196f));
  p = hn::MulAdd(p, f, hn::Set(d, 0.05550357114219158f));
  p = hn::MulAdd(p, f, hn::Set(d, 0.24022650760567846f));
  p = hn::MulAdd(p, f, hn::Set(d, 0.6931471880262287f));
  p = hn::MulAdd(p, f, hn::Set(d, 1.0f));
  const auto exponent = hn::ShiftLeft<23>(hn::BitCast(di, rounded));
  const VF power = hn::BitCast(d, hn::Add(hn::BitCast(di, p), exponent));
  return hn::IfThenZeroElse(hn::Lt(x, hn::Set(d, -126.0f)), power);
}

}  // namespace plimsoll::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard

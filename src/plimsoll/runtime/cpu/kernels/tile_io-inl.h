// Tiles of f32 read from and written to matrices of f32 or bf16, and their transposition. Include
// it from a source that is compiled once per Highway target.
#if defined(PLIMSOLL_TILE_IO_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PLIMSOLL_TILE_IO_INL_H_
#undef PLIMSOLL_TILE_IO_INL_H_
#else
#define PLIMSOLL_TILE_IO_INL_H_
#endif

#include <algorithm>
#include <cstdint>

#include "hwy/cache_control.h"
#include "hwy/highway.h"
#include "plimsoll/numerics/bf16.h"
#include "plimsoll/runtime/cpu/kernels/simd-inl.h"
#include "plimsoll/runtime/cpu/kernels/tile_gemm-inl.h"
#include "plimsoll/runtime/view.h"

HWY_BEFORE_NAMESPACE();
namespace plimsoll::cpu::HWY_NAMESPACE {

HWY_INLINE int64_t tile_padded(int64_t columns) { return (columns + 15) / 16 * 16; }

template <class T>
HWY_INLINE void load_rows(const T* from, int64_t from_stride, int64_t rows, int64_t columns,
                          Matrix tile) {
  // Rows are short and far apart, which the hardware's prefetchers do not follow.
  constexpr int64_t rows_ahead = 12, line = 64 / sizeof(T);
  for (int64_t r = 0; r < rows; ++r) {
    const T* row = from + r * from_stride;
    for (int64_t c = 0; c < columns && r + rows_ahead < rows; c += line) {
      hwy::Prefetch(row + rows_ahead * from_stride + c);
    }
    float* to = tile.data + r * tile.stride;
    for_columns(columns, [&](int64_t c, auto part)
                             HWY_ATTR { hn::Store(load(row + c, part), DF(), to + c); });
    std::fill(to + columns, to + tile_padded(columns), 0.0f);
  }
}

template <class T>
HWY_INLINE void store_rows(Matrix tile, int64_t rows, int64_t columns, T* to, int64_t to_stride) {
  for (int64_t r = 0; r < rows; ++r) {
    const float* row = tile.data + r * tile.stride;
    for_columns(columns, [&](int64_t c, auto part) HWY_ATTR {
      store(hn::Load(DF(), row + c), to + r * to_stride + c, part);
    });
  }
}

// tile (rows, columns) = matrix[row.., column..]; columns up to the next multiple of 16 and rows up
// to `padded_rows` are zero.
HWY_INLINE void load_tile(const View& matrix, int64_t row, int64_t rows, int64_t padded_rows,
                          int64_t column, int64_t columns, Matrix tile) {
  const int64_t offset = row * matrix.columns + column;
  if (matrix.format == Format::bf16) {
    load_rows(matrix.as<const bf16>() + offset, matrix.columns, rows, columns, tile);
  } else {
    load_rows(matrix.as<const float>() + offset, matrix.columns, rows, columns, tile);
  }
  for (int64_t r = rows; r < padded_rows; ++r) {
    std::fill_n(tile.data + r * tile.stride, tile_padded(columns), 0.0f);
  }
}

// matrix[row.., column..] = tile (rows, columns).
HWY_INLINE void store_tile(Matrix tile, int64_t rows, int64_t columns, const View& matrix,
                           int64_t row, int64_t column) {
  const int64_t offset = row * matrix.columns + column;
  if (matrix.format == Format::bf16) {
    store_rows(tile, rows, columns, matrix.as<bf16>() + offset, matrix.columns);
  } else {
    store_rows(tile, rows, columns, matrix.as<float>() + offset, matrix.columns);
  }
}

// to (columns, rows) = factor * from (rows, columns)^T. Rows and columns are rounded up to
// multiples of 4, which both tiles hold.
HWY_INLINE void transpose(Matrix from, int64_t rows, int64_t columns, float factor, Matrix to) {
#if HWY_TARGET == HWY_SCALAR
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < columns; ++c) {
      to.data[c * to.stride + r] = factor * from.data[r * from.stride + c];
    }
  }
#else
  const hn::CappedTag<float, 4> d;
  const hn::RepartitionToWide<decltype(d)> dw;
  const auto scale = hn::Set(d, factor);
  for (int64_t r = 0; r < rows; r += 4) {
    for (int64_t c = 0; c < columns; c += 4) {
      const float* in = from.data + r * from.stride + c;
      const auto r0 = hn::Mul(scale, hn::Load(d, in));
      const auto r1 = hn::Mul(scale, hn::Load(d, in + from.stride));
      const auto r2 = hn::Mul(scale, hn::Load(d, in + 2 * from.stride));
      const auto r3 = hn::Mul(scale, hn::Load(d, in + 3 * from.stride));
      const auto low01 = hn::BitCast(dw, hn::InterleaveLower(d, r0, r1));
      const auto low23 = hn::BitCast(dw, hn::InterleaveLower(d, r2, r3));
      const auto high01 = hn::BitCast(dw, hn::InterleaveUpper(d, r0, r1));
      const auto high23 = hn::BitCast(dw, hn::InterleaveUpper(d, r2, r3));
      float* out = to.data + c * to.stride + r;
      hn::Store(hn::BitCast(d, hn::InterleaveLower(dw, low01, low23)), d, out);
      hn::Store(hn::BitCast(d, hn::InterleaveUpper(dw, low01, low23)), d, out + to.stride);
      hn::Store(hn::BitCast(d, hn::InterleaveLower(dw, high01, high23)), d, out + 2 * to.stride);
      hn::Store(hn::BitCast(d, hn::InterleaveUpper(dw, high01, high23)), d, out + 3 * to.stride);
    }
  }
#endif
}

}  // namespace plimsoll::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard

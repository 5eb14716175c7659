// How a product is cut: c into one rectangle a thread, a rectangle into pieces, k into blocks.
//
// Only `depth` decides the order of sums, and it depends on k and the kind of product alone; how
// rows and columns are cut follows the number of threads and never changes a bit.
#pragma once

#include <algorithm>
#include <cstdint>

#include "plimsoll/runtime/cpu/kernels/gemm.h"

namespace plimsoll::cpu {

// A rectangle of c, which one thread computes.
struct GemmRectangle {
  int64_t row, column, rows, columns;
};

// How a thread cuts its rectangle. For each rows x columns piece of c and each block of k, b is
// packed (depth x columns), then a, packed_rows at a time.
struct GemmBlocks {
  int64_t rows, packed_rows, columns, depth;

  int64_t a_elements() const { return packed_rows * depth; }
  int64_t b_elements() const { return columns * depth; }
};

// What a kernel's tiles and the caches allow: granules are multiples of its tile.
struct GemmLimits {
  int64_t row_granule, column_granule, depth_granule;
  int64_t most_rows, most_packed_rows, most_columns;
  int64_t most_depth;
  // Of a weight gradient: a sum over tokens may be made in chunks of so many and keep its bits.
  int64_t gradient_depth;
};

inline int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }
inline int64_t round_up(int64_t a, int64_t granule) { return divide_up(a, granule) * granule; }

// The size of equal pieces of `total`, at most `most`, multiples of `granule`.
inline int64_t piece_of(int64_t total, int64_t most, int64_t granule) {
  const int64_t pieces = std::max<int64_t>(1, divide_up(total, most));
  return round_up(divide_up(total, pieces), granule);
}

// c in a grid of rectangles, one a thread.
struct GemmGrid {
  int64_t down, across;
  int64_t rows, columns;  // of one rectangle, the last ones may be smaller or empty

  GemmRectangle rectangle(const GemmShape& s, int64_t thread) const {
    const int64_t row = std::min(s.m, thread / across * rows);
    const int64_t column = std::min(s.n, thread % across * columns);
    return {row, column, std::min(rows, s.m - row), std::min(columns, s.n - column)};
  }
};

// The grid whose rectangles cost least: multiplication and packing, in cycles per k.
inline GemmGrid grid_of(const GemmShape& s, const GemmLimits& limits, int threads) {
  GemmGrid best{};
  double best_cost = 0;
  for (int64_t down = 1; down <= threads; ++down) {
    if (threads % down != 0) continue;
    const int64_t across = threads / down;
    const int64_t rows = round_up(divide_up(s.m, down), limits.row_granule);
    const int64_t columns = round_up(divide_up(s.n, across), limits.column_granule);
    const auto products = static_cast<double>(rows * columns);
    const auto packed = static_cast<double>(rows * divide_up(columns, limits.most_columns) +
                                            columns * divide_up(rows, limits.most_rows));
    const double cost = products / 16 + packed / 2;
    if (best.down == 0 || cost < best_cost) {
      best = {down, across, rows, columns};
      best_cost = cost;
    }
  }
  return best;
}

inline GemmBlocks blocks_of(const GemmShape& s, const GemmLimits& limits, const GemmGrid& grid) {
  const int64_t rows = piece_of(grid.rows, limits.most_rows, limits.row_granule);
  const bool in_chunks = s.product == step::Product::weight_gradient;
  const int64_t depth = in_chunks
                            ? std::min(round_up(s.k, limits.depth_granule), limits.gradient_depth)
                            : piece_of(s.k, limits.most_depth, limits.depth_granule);
  return {rows, piece_of(rows, limits.most_packed_rows, limits.row_granule),
          piece_of(grid.columns, limits.most_columns, limits.column_granule), depth};
}

}  // namespace plimsoll::cpu

// The microkernel: a tile of c that stays in registers while two packed panels are read once.

#include "hwy/cache_control.h"
#include "plimsoll/runtime/cpu/kernels/simd-inl.h"

#if defined(PLIMSOLL_RUNTIME_CPU_KERNELS_GEMM_MICRO_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PLIMSOLL_RUNTIME_CPU_KERNELS_GEMM_MICRO_INL_H_
#undef PLIMSOLL_RUNTIME_CPU_KERNELS_GEMM_MICRO_INL_H_
#else
#define PLIMSOLL_RUNTIME_CPU_KERNELS_GEMM_MICRO_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace plimsoll::cpu::HWY_NAMESPACE {

// 2 vectors wide; as high as 16 registers (32 with AVX-512) allow.
constexpr int64_t kLanes = hn::MaxLanes(DF());
constexpr int64_t kTileRows = kLanes >= 16 ? 12 : 6;
constexpr int64_t kTileColumns = 2 * kLanes;

// Where a tile of c goes, and what is added to the product on the way; null where nothing is.
template <class T>
struct TileOutput {
  T* to;
  int64_t to_stride;
  const float* partial;  // sum over the blocks of k before this one, or the c to accumulate to
  int64_t partial_stride;
  const float* bias;
  const T* c;   // to accumulate to, at `to`'s stride, where `partial` is not already it
  float alpha;  // times the product

  TileOutput at(int64_t row, int64_t column) const {
    return {to + row * to_stride + column,
            to_stride,
            partial ? partial + row * partial_stride + column : nullptr,
            partial_stride,
            bias ? bias + column : nullptr,
            c ? c + row * to_stride + column : nullptr,
            alpha};
  }
};

template <class T, class Lanes>
HWY_INLINE void finish(VF sum, const TileOutput<T>& out, int64_t row, int64_t column, Lanes lanes) {
  sum = hn::Mul(hn::Set(hn::DFromV<VF>(), out.alpha), sum);
  if (out.partial) {
    sum = hn::Add(load(out.partial + row * out.partial_stride + column, lanes), sum);
  }
  if (out.bias) sum = hn::Add(sum, load(out.bias + column, lanes));
  if (out.c) sum = hn::Add(load(out.c + row * out.to_stride + column, lanes), sum);
  store(sum, out.to + row * out.to_stride + column, lanes);
}

template <class T>
HWY_NOINLINE void finish_edge(const float* tile, const TileOutput<T>& out, int64_t rows,
                              int64_t columns) {
  for (int64_t r = 0; r < rows; ++r) {
    for_columns(columns, [&, r](int64_t column, auto lanes) HWY_ATTR {
      finish(hn::LoadU(DF(), tile + r * kTileColumns + column), out, r, column, lanes);
    });
  }
}

// Fetches the lines of a tile that `finish` reads or writes, while the product is made.
template <class T>
HWY_INLINE void prefetch(const TileOutput<T>& out, int64_t rows) {
  for (int64_t r = 0; r < rows; ++r) {
    hwy::Prefetch(out.to + r * out.to_stride);
    hwy::Prefetch(out.to + r * out.to_stride + kTileColumns - 1);
    if (out.partial) hwy::Prefetch(out.partial + r * out.partial_stride);
  }
}

// sums += a column of the panel a times a row of the panel b.
HWY_INLINE void add_product(const float* HWY_RESTRICT a, const float* HWY_RESTRICT b,
                            VF (&sums)[kTileRows][2]) {
  const DF d;
  const VF b0 = hn::Load(d, b);
  const VF b1 = hn::Load(d, b + kLanes);
  for (int64_t r = 0; r < kTileRows; ++r) {
    const VF a_r = hn::Set(d, a[r]);
    sums[r][0] = hn::MulAdd(a_r, b0, sums[r][0]);
    sums[r][1] = hn::MulAdd(a_r, b1, sums[r][1]);
  }
}

// The rows x columns upper left elements of the product of the panels a and b.
template <class T>
HWY_INLINE void multiply_tile(const float* HWY_RESTRICT a, const float* HWY_RESTRICT b,
                              int64_t depth, const TileOutput<T>& out, int64_t rows,
                              int64_t columns) {
  constexpr int64_t kSteps = 8;   // unrolled, which matters where two threads share a core
  constexpr int64_t kAhead = 16;  // steps for which the next lines of a are fetched early
  constexpr int64_t kLine = 16;   // f32 in a cache line
  const DF d;
  prefetch(out, std::min(rows, kTileRows));
  VF sums[kTileRows][2];
  for (int64_t r = 0; r < kTileRows; ++r) sums[r][0] = sums[r][1] = hn::Zero(d);
  int64_t k = 0;
  for (; k + kSteps <= depth; k += kSteps, a += kSteps * kTileRows, b += kSteps * kTileColumns) {
    for (int64_t i = 0; i < kSteps * kTileRows; i += kLine) {
      hwy::Prefetch(a + kAhead * kTileRows + i);
    }
    for (int64_t step = 0; step < kSteps; ++step) {
      add_product(a + step * kTileRows, b + step * kTileColumns, sums);
    }
  }
  for (; k < depth; ++k, a += kTileRows, b += kTileColumns) add_product(a, b, sums);
  if (rows >= kTileRows && columns >= kTileColumns) {
    for (int64_t r = 0; r < kTileRows; ++r) {
      finish(sums[r][0], out, r, 0, Whole());
      finish(sums[r][1], out, r, kLanes, Whole());
    }
  } else {
    HWY_ALIGN float tile[kTileRows * kTileColumns];
    for (int64_t r = 0; r < kTileRows; ++r) {
      hn::Store(sums[r][0], d, tile + r * kTileColumns);
      hn::Store(sums[r][1], d, tile + r * kTileColumns + kLanes);
    }
    finish_edge(tile, out, std::min(rows, kTileRows), std::min(columns, kTileColumns));
  }
}

// c of two packed blocks: rows x depth and depth x columns.
template <class T>
HWY_NOINLINE void multiply_block(const float* a, const float* b, int64_t rows, int64_t columns,
                                 int64_t depth, const TileOutput<T>& out) {
  for (int64_t j = 0; j < columns; j += kTileColumns) {
    for (int64_t i = 0; i < rows; i += kTileRows) {
      multiply_tile(a + i * depth, b + j * depth, depth, out.at(i, j), rows - i, columns - j);
    }
  }
}

}  // namespace plimsoll::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard

#include "plimsoll/runtime/cpu/kernels/gemm.h"

#include <algorithm>
#include <type_traits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "plimsoll/runtime/cpu/kernels/gemm.cc"
#include "hwy/foreach_target.h"

#include "plimsoll/runtime/cpu/kernels/gemm_blocks.h"
#include "plimsoll/runtime/cpu/kernels/gemm_micro-inl.h"
#include "plimsoll/runtime/cpu/kernels/gemm_pack-inl.h"
#include "plimsoll/runtime/cpu/kernels/parallel.h"

#ifndef PLIMSOLL_RUNTIME_CPU_KERNELS_GEMM_ONCE
#define PLIMSOLL_RUNTIME_CPU_KERNELS_GEMM_ONCE
namespace plimsoll::cpu {

using step::Product;

struct GemmOperands {
  const void* a;
  const void* b;
  const float* bias;
  void* c;
  float alpha;
};

}  // namespace plimsoll::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace plimsoll::cpu::HWY_NAMESPACE {

template <class In>
HWY_NOINLINE void pack_a(const GemmShape& s, const In* a, int64_t row, int64_t rows, int64_t k,
                         int64_t depth, float* out) {
  if (s.product == Product::weight_gradient) {
    pack_along_width<kTileRows>(a + k * s.m + row, s.m, rows, depth, out);
  } else {
    pack_along_depth<kTileRows>(a + row * s.k + k, s.k, rows, depth, out);
  }
}

template <class In>
HWY_NOINLINE void pack_b(const GemmShape& s, const In* b, int64_t column, int64_t columns,
                         int64_t k, int64_t depth, float* out) {
  if (s.product == Product::forward) {
    pack_along_depth<kTileColumns>(b + column * s.k + k, s.k, columns, depth, out);
  } else {
    pack_along_width<kTileColumns>(b + k * s.n + column, s.n, columns, depth, out);
  }
}

// One piece of c, at most blocks.rows x blocks.columns. Sums over several blocks of k are kept in c
// where it is f32, and in `sums` where it is not.
template <class In, class Out>
void multiply_piece(const GemmShape& s, const GemmOperands& operands, const GemmBlocks& blocks,
                    const GemmRectangle& piece, float* packed_a, float* packed_b, float* sums) {
  constexpr bool sums_in_c = std::is_same_v<Out, float>;
  Out* const c = static_cast<Out*>(operands.c) + piece.row * s.n + piece.column;
  for (int64_t k = 0; k < s.k; k += blocks.depth) {
    const int64_t depth = std::min(blocks.depth, s.k - k);
    const bool first = k == 0;
    const bool last = k + depth == s.k;
    pack_b(s, static_cast<const In*>(operands.b), piece.column, piece.columns, k, depth, packed_b);
    for (int64_t i = 0; i < piece.rows; i += blocks.packed_rows) {
      const int64_t rows = std::min(blocks.packed_rows, piece.rows - i);
      pack_a(s, static_cast<const In*>(operands.a), piece.row + i, rows, k, depth, packed_a);
      const float* bias = first && s.has_bias ? operands.bias + piece.column : nullptr;
      if constexpr (sums_in_c) {
        const float* partial = first && !s.accumulate ? nullptr : c;
        const TileOutput<float> out{c, s.n, partial, s.n, bias, nullptr, operands.alpha};
        multiply_block(packed_a, packed_b, rows, piece.columns, depth, out.at(i, 0));
      } else {
        const float* partial = first ? nullptr : sums;
        if (last) {
          const TileOutput<Out> out{
              c, s.n, partial, blocks.columns, bias, s.accumulate ? c : nullptr, operands.alpha};
          multiply_block(packed_a, packed_b, rows, piece.columns, depth, out.at(i, 0));
        } else {
          const TileOutput<float> out{sums, blocks.columns, partial,       blocks.columns,
                                      bias, nullptr,        operands.alpha};
          multiply_block(packed_a, packed_b, rows, piece.columns, depth, out.at(i, 0));
        }
      }
    }
  }
}

template <class In, class Out>
void multiply_rectangle(const GemmShape& s, const GemmOperands& operands, const GemmBlocks& blocks,
                        const GemmRectangle& all, float* workspace) {
  float* const packed_a = workspace;
  float* const packed_b = packed_a + blocks.a_elements();
  float* const sums = packed_b + blocks.b_elements();
  for (int64_t j = 0; j < all.columns; j += blocks.columns) {
    for (int64_t i = 0; i < all.rows; i += blocks.rows) {
      const GemmRectangle piece{all.row + i, all.column + j, std::min(blocks.rows, all.rows - i),
                                std::min(blocks.columns, all.columns - j)};
      multiply_piece<In, Out>(s, operands, blocks, piece, packed_a, packed_b, sums);
    }
  }
}

void gemm_rectangle(const GemmShape& s, const GemmOperands& operands, const GemmBlocks& blocks,
                    const GemmRectangle& all, float* workspace) {
  if (s.a == Format::f32) {
    s.c == Format::f32 ? multiply_rectangle<float, float>(s, operands, blocks, all, workspace)
                       : multiply_rectangle<float, bf16>(s, operands, blocks, all, workspace);
  } else {
    s.c == Format::f32 ? multiply_rectangle<bf16, float>(s, operands, blocks, all, workspace)
                       : multiply_rectangle<bf16, bf16>(s, operands, blocks, all, workspace);
  }
}

}  // namespace plimsoll::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plimsoll::cpu {
namespace {

// Granules are multiples of every target's tile, so that plans do not depend on the target. A panel
// of b (16 KiB with AVX2) fits a first level cache, the packed rows of a (216 KiB) half a second
// level one. Packed elements are used some 500 times, which makes up for packing them.
constexpr GemmLimits kLimits = {.row_granule = 12,
                                .column_granule = 32,
                                .depth_granule = 4,
                                .most_rows = 516,
                                .most_packed_rows = 216,
                                .most_columns = 512,
                                .most_depth = 256,
                                .gradient_depth = 256};

// f32 elements, a multiple of a cache line.
int64_t workspace_per_thread(const GemmShape& s, const GemmBlocks& blocks) {
  const bool sums = s.c != Format::f32 && s.k > blocks.depth;
  return round_up(
      blocks.a_elements() + blocks.b_elements() + (sums ? blocks.rows * blocks.columns : 0), 16);
}

HWY_EXPORT(gemm_rectangle);

}  // namespace

size_t gemm_workspace(const GemmShape& s, int threads) {
  const GemmBlocks blocks = blocks_of(s, kLimits, grid_of(s, kLimits, threads));
  return static_cast<size_t>(threads * workspace_per_thread(s, blocks)) * sizeof(float);
}

void gemm(const GemmShape& s, const View& a, const View& b, const View& bias, const View& c,
          std::span<std::byte> workspace, int threads, float alpha) {
  const GemmOperands operands{a.data, b.data, bias.as<float>(), c.data, alpha};
  const GemmGrid cut = grid_of(s, kLimits, threads);
  const GemmBlocks blocks = blocks_of(s, kLimits, cut);
  const int64_t scratch = workspace_per_thread(s, blocks);
  const auto multiply = HWY_DYNAMIC_DISPATCH(gemm_rectangle);
  run_pieces(threads, [&](int thread) {
    multiply(s, operands, blocks, cut.rectangle(s, thread),
             reinterpret_cast<float*>(workspace.data()) + thread * scratch);
  });
}

}  // namespace plimsoll::cpu
#endif  // HWY_ONCE

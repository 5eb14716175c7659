#include "plimsoll/runtime/cpu/kernels/gemm_bf16.h"

#include "plimsoll/base/error.h"
#include "plimsoll/runtime/cpu/kernels/gemm_bf16_kernels.h"
#include "plimsoll/runtime/cpu/kernels/parallel.h"

namespace plimsoll::cpu {

namespace {

// Rows of a in 32s for AMX, whose tiles are 16 x 16, two down and two across; in 12s for AVX-512,
// whose 32 registers hold 12 x 2 sums and a row of b. A panel of b, 32 columns by 512, fills 32
// KiB.
GemmLimits limits_of(Bf16Kernel kernel) {
  const int64_t rows = panel_rows(kernel);
  return {.row_granule = rows,
          .column_granule = kPanelColumns,
          .depth_granule = kPanelDepth,
          .most_rows = 768,
          .most_packed_rows = 384,
          .most_columns = 512,
          .most_depth = 512,
          .gradient_depth = 256};
}

struct Workspace {  // bytes of one thread, each a multiple of a cache line
  size_t a, b, sums;
  size_t total() const { return a + b + sums; }
};

Workspace workspace_of(const GemmShape& s, const GemmBlocks& blocks) {
  const bool sums = s.c != Format::f32 && s.k > blocks.depth;
  return {static_cast<size_t>(blocks.a_elements()) * sizeof(uint16_t),
          static_cast<size_t>(blocks.b_elements()) * sizeof(uint16_t),
          sums ? static_cast<size_t>(blocks.rows * blocks.columns) * sizeof(float) : 0};
}

// One piece of c. Sums over several blocks of k are kept in c where it is f32, else in `sums`.
void multiply_piece(const Bf16Functions& kernel, const GemmShape& s, const Bf16Operands& operands,
                    const GemmBlocks& blocks, const GemmRectangle& piece, uint16_t* packed_a,
                    uint16_t* packed_b, float* sums) {
  const bool f32 = s.c == Format::f32;
  for (int64_t k = 0; k < s.k; k += blocks.depth) {
    const int64_t depth = std::min(blocks.depth, s.k - k);
    const bool first = k == 0, last = k + depth == s.k;
    kernel.pack_b(s, operands.b, piece.column, piece.columns, k, depth, packed_b);
    for (int64_t i = 0; i < piece.rows; i += blocks.packed_rows) {
      const int64_t rows = std::min(blocks.packed_rows, piece.rows - i);
      kernel.pack_a(s, operands.a, piece.row + i, rows, k, depth, packed_a);
      Bf16Output out = {.alpha = operands.alpha};
      if (first && s.has_bias) out.bias = operands.bias + piece.column;
      const int64_t at = (piece.row + i) * s.n + piece.column;
      if (f32) {
        out.f32 = static_cast<float*>(operands.c) + at;
        out.stride = out.partial_stride = s.n;
        if (!first || s.accumulate) out.partial = out.f32;
      } else {
        float* const partial = sums + i * blocks.columns;
        if (!first) out.partial = partial;
        out.partial_stride = blocks.columns;
        if (last) {
          out.bf16 = static_cast<uint16_t*>(operands.c) + at;
          out.stride = s.n;
          out.accumulate = s.accumulate;
        } else {
          out.f32 = partial;
          out.stride = blocks.columns;
        }
      }
      kernel.multiply(packed_a, packed_b, rows, piece.columns, depth, out);
    }
  }
}

}  // namespace

std::string_view name(Bf16Kernel kernel) {
  switch (kernel) {
    case Bf16Kernel::portable:
      return "bf16 values in f32 arithmetic";
    case Bf16Kernel::avx512_bf16:
      return "AVX-512 BF16";
    case Bf16Kernel::amx:
      return "AMX";
  }
  return "";
}

const std::vector<Bf16Kernel>& bf16_kernels() {
  static const std::vector<Bf16Kernel> kernels = [] {
    std::vector<Bf16Kernel> found;
    if (amx_functions()) found.push_back(Bf16Kernel::amx);
    if (avx512_bf16_functions()) found.push_back(Bf16Kernel::avx512_bf16);
    found.push_back(Bf16Kernel::portable);
    return found;
  }();
  return kernels;
}

bool takes(Bf16Kernel kernel, const GemmShape& shape) {
  return kernel != Bf16Kernel::portable && shape.a == Format::bf16 && shape.b == Format::bf16;
}

size_t gemm_bf16_workspace(Bf16Kernel kernel, const GemmShape& s, int threads) {
  const GemmLimits limits = limits_of(kernel);
  const GemmBlocks blocks = blocks_of(s, limits, grid_of(s, limits, threads));
  return static_cast<size_t>(threads) * workspace_of(s, blocks).total();
}

void gemm_bf16(Bf16Kernel kernel, const GemmShape& s, const View& a, const View& b,
               const View& bias, const View& c, std::span<std::byte> workspace, int threads,
               float alpha) {
  const Bf16Functions* functions =
      kernel == Bf16Kernel::amx ? amx_functions() : avx512_bf16_functions();
  check(functions && takes(kernel, s), "a kernel of this CPU that takes the shape");
  const Bf16Operands operands = {a.as<uint16_t>(), b.as<uint16_t>(), bias.as<float>(), c.data,
                                 alpha};
  const GemmLimits limits = limits_of(kernel);
  const GemmGrid grid = grid_of(s, limits, threads);
  const GemmBlocks blocks = blocks_of(s, limits, grid);
  const Workspace scratch = workspace_of(s, blocks);
#pragma omp parallel for num_threads(threads) schedule(static, 1)
  for (int thread = 0; thread < threads; ++thread) {
    std::byte* const mine = workspace.data() + static_cast<size_t>(thread) * scratch.total();
    const GemmRectangle all = grid.rectangle(s, thread);
    if (all.rows <= 0 || all.columns <= 0) continue;
    functions->begin();
    for (int64_t j = 0; j < all.columns; j += blocks.columns) {
      for (int64_t i = 0; i < all.rows; i += blocks.rows) {
        const GemmRectangle piece{all.row + i, all.column + j, std::min(blocks.rows, all.rows - i),
                                  std::min(blocks.columns, all.columns - j)};
        multiply_piece(*functions, s, operands, blocks, piece, reinterpret_cast<uint16_t*>(mine),
                       reinterpret_cast<uint16_t*>(mine + scratch.a),
                       reinterpret_cast<float*>(mine + scratch.a + scratch.b));
      }
    }
    functions->end();
  }
}

}  // namespace plimsoll::cpu

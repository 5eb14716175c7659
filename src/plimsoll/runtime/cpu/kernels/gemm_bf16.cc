#include "plimsoll/runtime/cpu/kernels/gemm_bf16.h"

#include <utility>

#include "plimsoll/base/error.h"
#include "plimsoll/runtime/cpu/kernels/gemm_bf16_kernels.h"
#include "plimsoll/runtime/cpu/kernels/parallel.h"

namespace plimsoll::cpu {

namespace {

// k is summed in blocks whose depth depends on k and the product alone, so that a sum's order does
// too. A panel of b, 32 columns by 1024, is 64 KiB: what is added to c between blocks costs more
// than a panel that does not stay in a first level cache. A weight gradient may be summed over
// chunks of 256 tokens and keeps its bits.
constexpr int64_t kMostDepth = 1024, kGradientDepth = 256;

// What is packed at once, by all threads, before all of them multiply it: 8 MiB of a, 4 MiB of b.
constexpr int64_t kMostRows = 2048, kMostColumns = 1024, kMostPackedDepth = 2048;

// What a task packs, and the rectangle of c that a task multiplies: 128 rows by a depth of 1024
// stay in a second level cache while the panels of b go by.
constexpr int64_t kPackedAtOnce = 128;
constexpr int64_t kTaskRows = 128, kTaskColumns = 256;

// The product as it is made. AMX makes c^T = b a^T of a forward product: of the two, the weights
// are then read as they lie, and the activations, which are fewer, are transposed. The sums are the
// same.
struct Cut {
  GemmShape s;
  bool turned;
  int64_t depth;                        // of a block of k
  int64_t rows, columns, packed_depth;  // packed at once
  int64_t task_rows, task_columns;
  size_t a_bytes, b_bytes, sums_bytes;  // of the workspace, multiples of a cache line
  size_t total() const { return a_bytes + b_bytes + sums_bytes; }
};

Cut cut_of(Bf16Kernel kernel, const GemmShape& shape, int threads) {
  Cut cut = {.s = shape,
             .turned = kernel == Bf16Kernel::amx && shape.product == step::Product::forward};
  GemmShape& s = cut.s;
  if (cut.turned) std::swap(s.m, s.n);
  const int64_t panel = panel_rows(kernel);
  cut.depth = s.product == step::Product::weight_gradient
                  ? std::min(round_up(s.k, kPanelDepth), kGradientDepth)
                  : piece_of(s.k, kMostDepth, kPanelDepth);
  cut.packed_depth = std::min(round_up(s.k, cut.depth), kMostPackedDepth / cut.depth * cut.depth);
  cut.rows = piece_of(s.m, kMostRows, panel);
  cut.columns = piece_of(s.n, kMostColumns, kPanelColumns);
  // Some tasks a thread, so that all end together; how c is cut changes no bit.
  cut.task_rows = std::min(cut.rows, round_up(kTaskRows, panel));
  cut.task_columns = std::min(cut.columns, kTaskColumns);
  const auto tasks = [&] {
    return divide_up(cut.rows, cut.task_rows) * divide_up(cut.columns, cut.task_columns);
  };
  while (tasks() < 4 * threads && cut.task_columns > kPanelColumns) {
    cut.task_columns = round_up(cut.task_columns / 2, kPanelColumns);
  }
  while (tasks() < 4 * threads && cut.task_rows > panel) {
    cut.task_rows = round_up(cut.task_rows / 2, panel);
  }
  const auto bytes = [](int64_t elements, size_t each) {
    return static_cast<size_t>(round_up(elements, 32)) * each;
  };
  cut.a_bytes = bytes(cut.rows * cut.packed_depth, sizeof(uint16_t));
  cut.b_bytes = bytes(cut.columns * cut.packed_depth, sizeof(uint16_t));
  const bool sums = s.c != Format::f32 && s.k > cut.depth;
  cut.sums_bytes = sums ? bytes(cut.rows * cut.columns, sizeof(float)) : 0;
  return cut;
}

// Rows, columns and a range of k whose panels are packed in the workspace: blocks of k one after
// another, each with all rows (columns).
struct Packed {
  int64_t row, rows, column, columns, k, k_end;
  uint16_t* a;
  uint16_t* b;
  float* sums;  // as c lies
};

void pack(const Bf16Functions& kernel, const Cut& cut, const Bf16Operands& operands,
          const Packed& at, bool with_a, int threads) {
  const int64_t blocks = divide_up(at.k_end - at.k, cut.depth);
  const int64_t a_pieces = with_a ? divide_up(cut.rows, kPackedAtOnce) : 0;
  const int64_t b_pieces = divide_up(cut.columns, kPackedAtOnce);
  const int64_t a_step = divide_up(cut.rows, a_pieces ? a_pieces : 1);
  const int64_t panel = kernel.panel_rows;
  parallel_tasks((a_pieces + b_pieces) * blocks, threads, [&](int64_t task, int) {
    const int64_t block = task / (a_pieces + b_pieces);
    const int64_t piece = task % (a_pieces + b_pieces);
    const int64_t k = at.k + block * cut.depth, depth = std::min(cut.depth, cut.s.k - k);
    const int64_t padded = round_up(depth, kPanelDepth);
    if (piece < a_pieces) {
      const int64_t step = round_up(a_step, panel), begin = piece * step;
      const int64_t rows = std::min(step, at.rows - begin);
      if (rows <= 0) return;
      kernel.pack_a(cut.s, operands.a, at.row + begin, rows, k, depth,
                    at.a + block * cut.depth * cut.rows + begin * padded);
    } else {
      const int64_t begin = (piece - a_pieces) * kPackedAtOnce;
      const int64_t columns = std::min(kPackedAtOnce, at.columns - begin);
      if (columns <= 0) return;
      kernel.pack_b(cut.s, operands.b, at.column + begin, columns, k, depth,
                    at.b + block * cut.depth * cut.columns + begin * padded);
    }
  });
}

// One rectangle of c, `row` and `column` within what is packed. Sums over several blocks of k are
// kept in c where it is f32, else in `sums`.
void multiply_rectangle(const Bf16Functions& kernel, const Cut& cut, const Bf16Operands& operands,
                        const Packed& at, int64_t row, int64_t column) {
  const GemmShape& s = cut.s;
  const int64_t rows = std::min(cut.task_rows, at.rows - row);
  const int64_t columns = std::min(cut.task_columns, at.columns - column);
  if (rows <= 0 || columns <= 0) return;
  const int64_t c_stride = cut.turned ? s.m : s.n;
  const int64_t sums_stride = cut.turned ? cut.rows : cut.columns;
  const auto offset = [&](int64_t r, int64_t c, int64_t stride) {
    return cut.turned ? c * stride + r : r * stride + c;
  };
  const int64_t in_c = offset(at.row + row, at.column + column, c_stride);
  float* const partial = at.sums + offset(row, column, sums_stride);
  for (int64_t k = at.k; k < at.k_end; k += cut.depth) {
    const int64_t depth = std::min(cut.depth, s.k - k);
    const int64_t padded = round_up(depth, kPanelDepth);
    const bool first = k == 0, last = k + depth == s.k;
    Bf16Output out = {.turned = cut.turned, .alpha = operands.alpha};
    if (first && s.has_bias) {
      out.bias = operands.bias + (cut.turned ? at.row + row : at.column + column);
    }
    if (s.c == Format::f32) {
      out.f32 = static_cast<float*>(operands.c) + in_c;
      out.stride = out.partial_stride = c_stride;
      if (!first || s.accumulate) out.partial = out.f32;
    } else {
      if (!first) out.partial = partial;
      out.partial_stride = sums_stride;
      if (last) {
        out.bf16 = static_cast<uint16_t*>(operands.c) + in_c;
        out.stride = c_stride;
        out.accumulate = s.accumulate;
      } else {
        out.f32 = partial;
        out.stride = sums_stride;
      }
    }
    const int64_t block = k - at.k;
    kernel.multiply(at.a + block * cut.rows + row * padded,
                    at.b + block * cut.columns + column * padded, rows, columns, depth, out);
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

size_t gemm_bf16_workspace(Bf16Kernel kernel, const GemmShape& shape, int threads) {
  return cut_of(kernel, shape, threads).total();
}

void gemm_bf16(Bf16Kernel kernel, const GemmShape& shape, const View& a, const View& b,
               const View& bias, const View& c, std::span<std::byte> workspace, int threads,
               float alpha) {
  const Bf16Functions* functions =
      kernel == Bf16Kernel::amx ? amx_functions() : avx512_bf16_functions();
  check(functions && takes(kernel, shape), "a kernel of this CPU that takes the shape");
  const Cut cut = cut_of(kernel, shape, threads);
  check(workspace.size() >= cut.total(), "the scratch of a product is planned");
  const GemmShape& s = cut.s;
  Bf16Operands operands = {a.as<uint16_t>(), b.as<uint16_t>(), bias.as<float>(), c.data, alpha};
  if (cut.turned) std::swap(operands.a, operands.b);

  Packed at = {};
  at.a = reinterpret_cast<uint16_t*>(workspace.data());
  at.b = reinterpret_cast<uint16_t*>(workspace.data() + cut.a_bytes);
  at.sums = reinterpret_cast<float*>(workspace.data() + cut.a_bytes + cut.b_bytes);
  const bool in_one_depth = s.k <= cut.packed_depth;
  for (at.row = 0; at.row < s.m; at.row += cut.rows) {
    at.rows = std::min(cut.rows, s.m - at.row);
    for (at.column = 0; at.column < s.n; at.column += cut.columns) {
      at.columns = std::min(cut.columns, s.n - at.column);
      for (at.k = 0; at.k < s.k; at.k += cut.packed_depth) {
        at.k_end = std::min(s.k, at.k + cut.packed_depth);
        pack(*functions, cut, operands, at, !in_one_depth || at.column == 0, threads);
        const int64_t down = divide_up(at.rows, cut.task_rows);
        const int64_t across = divide_up(at.columns, cut.task_columns);
        parallel_tasks(down * across, threads, [&](int64_t task, int) {
          functions->begin();
          multiply_rectangle(*functions, cut, operands, at, task / across * cut.task_rows,
                             task % across * cut.task_columns);
          functions->end();
        });
      }
    }
  }
}

}  // namespace plimsoll::cpu

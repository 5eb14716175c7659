// x (R, C) bf16  ->  codes, scales and tensor scale of x and of x^T, in two passes over x where a
// scale needs the largest magnitude of the tensor (three with the Hadamard transform), else in one.
#include "plimsoll/runtime/cpu/kernels/quantize.h"

#include <array>
#include <cmath>
#include <mutex>

#include "plimsoll/base/error.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "plimsoll/runtime/cpu/kernels/quantize.cc"
#include "hwy/foreach_target.h"

#include "plimsoll/runtime/cpu/kernels/quantize_codes-inl.h"
#include "plimsoll/runtime/cpu/kernels/quantize_scales-inl.h"
#include "plimsoll/runtime/cpu/kernels/quantize_stochastic-inl.h"

HWY_BEFORE_NAMESPACE();
namespace plimsoll::cpu::HWY_NAMESPACE {

// Joins what threads found; maxima and whole numbers, so in any order.
class SharedMagnitudes {
 public:
  void add(const Magnitudes& m) {
    const std::lock_guard lock(mutex_);
    sum_.add(m);
  }
  const Magnitudes& sum() const { return sum_; }

 private:
  std::mutex mutex_;
  Magnitudes sum_;
};

Magnitudes magnitudes_of(const View& x) {
  constexpr int64_t piece = int64_t{1} << 16;
  const int64_t count = x.elements();
  SharedMagnitudes shared;
  parallel_for((count + piece - 1) / piece, [&](int64_t i) HWY_ATTR {
    shared.add(magnitudes(x.as<bf16>() + i * piece, std::min(piece, count - i * piece)));
  });
  return shared.sum();
}

// body(row, column) of each tile's first element, in parallel.
template <class Body>
void for_tiles(const View& x, const Body& body) {
  const int64_t across = (x.columns + tile_side - 1) / tile_side;
  const int64_t down = (x.rows + tile_side - 1) / tile_side;
  parallel_for(across * down,
               [&](int64_t i) { body(i / across * tile_side, i % across * tile_side); });
}

inline Tile tile_at(const View& x, int64_t row, int64_t column, bf16* buffer) {
  return load_tile(x.as<bf16>() + row * x.columns + column, x.columns,
                   std::min(tile_side, x.rows - row), std::min(tile_side, x.columns - column),
                   buffer);
}

// The transformed tile, whose padding has become values, but for magnitudes of its own.
inline Tile transformed(const Tile& tile, bool along_rows, bf16* buffer) {
  Tile to = tile;
  to.x = buffer;
  along_rows ? transform_along_rows(tile, buffer) : transform_along_columns(tile, buffer);
  return to;
}

struct TileBuffers {
  alignas(64) uint16_t x[tile_elements];
  alignas(64) uint16_t hadamard[tile_elements];
  alignas(64) uint16_t codes[tile_elements];  // of 8 bits as well
  alignas(64) uint16_t transposed[tile_elements];
  BlockScales scales;
};

Magnitudes magnitudes_after_hadamard(const View& x, bool along_rows) {
  SharedMagnitudes shared;
  for_tiles(x, [&](int64_t row, int64_t column) HWY_ATTR {
    alignas(64) uint16_t plain[tile_elements], hadamard[tile_elements];
    const Tile tile = tile_at(x, row, column, reinterpret_cast<bf16*>(plain));
    const Tile to = transformed(tile, along_rows, reinterpret_cast<bf16*>(hadamard));
    Magnitudes sum;
    for (int64_t r = 0; r < to.padded_rows; ++r) {
      sum.add(magnitudes(to.x + r * tile_side, to.padded_columns));
    }
    shared.add(sum);
  });
  return shared.sum();
}

// One of the two matrices to make.
struct Direction {
  Quantization q;
  QuantizedView to;
  bool along_rows;   // of x: x^T is what is quantised
  float multiplier;  // the scale of a tensor, nvfp4's S_enc
  RandomStream stream;
};

// Whether both are the same but for the order of elements: the scale of an element does not depend
// on the direction, nor do random bits come in.
bool same_codes(const Direction& a, const Direction& b) {
  const Scaling s = a.q.scaling;
  return a.q == b.q && a.multiplier == b.multiplier && !a.q.stochastic && !a.q.hadamard &&
         s != Scaling::block_1x128 && s != Scaling::mx && s != Scaling::nvfp4_1x16;
}

template <Format F, class Code>
void encode_tile(const Direction& direction, const Tile& tile, const float* multiplier,
                 uint64_t first_group, Code* codes) {
  const Quantization& q = direction.q;
  const int64_t width = has_block_scales(q.scaling) ? block_columns(q.scaling) : tile_side;
  if constexpr (F == Format::e2m1) {
    if (q.stochastic) {
      const auto groups = static_cast<uint64_t>(direction.to.codes.columns / 16);
      direction.along_rows ? encode_stochastic_along_rows(tile, multiplier, direction.stream,
                                                          first_group, groups, codes)
                           : encode_stochastic_along_columns(tile, multiplier, direction.stream,
                                                             first_group, groups, codes);
      return;
    }
  }
  // The Hadamard transform makes magnitudes at most four times as large.
  const bool finite = tile.magnitudes.not_finite == 0 && tile.magnitudes.amax() < 0x1p125f &&
                      std::isfinite(direction.multiplier);
  finite ? encode_finite<F>(tile, width, direction.along_rows, multiplier, codes)
         : encode_any<F>(tile, width, direction.along_rows, multiplier, codes);
}

// Quantises the tile at (row, column) of x. `ready`: the codes are there already.
template <Format F>
void quantize_tile(const Direction& direction, const Tile& x_tile, int64_t row, int64_t column,
                   bool ready, TileBuffers& buffers) {
  using Code = std::conditional_t<F == Format::f16, uint16_t, uint8_t>;
  const bool along_rows = direction.along_rows, hadamard = direction.q.hadamard;
  auto* codes = reinterpret_cast<Code*>(buffers.codes);
  const Tile tile = hadamard
                        ? transformed(x_tile, along_rows, reinterpret_cast<bf16*>(buffers.hadamard))
                        : x_tile;
  // From here on in terms of the matrix that is quantised.
  const int64_t rows = along_rows ? tile.columns : tile.rows;
  const int64_t columns = along_rows ? tile.rows : tile.columns;
  if (along_rows) std::swap(row, column);
  const View& to = direction.to.codes;
  const int64_t end = std::min(tile_side, to.columns - column);

  scale_blocks(direction.q, tile, along_rows, direction.multiplier, buffers.scales);
  write_scales(direction.q, buffers.scales, along_rows, rows, columns, tile.padded_columns,
               direction.to.scales, row, column);
  if (!ready) {
    const auto first_group = static_cast<uint64_t>(row * (to.columns / 16) + column / 16);
    encode_tile<F>(direction, tile, buffers.scales.multiplier, first_group, codes);
  }
  if (along_rows) {
    transpose_codes(tile, codes, reinterpret_cast<Code*>(buffers.transposed));
    codes = reinterpret_cast<Code*>(buffers.transposed);
  }
  write_codes<F>(codes, rows, hadamard ? end : columns, end, to, row, column);
}

void quantize_tile_as(const Direction& direction, const Tile& tile, int64_t row, int64_t column,
                      bool ready, TileBuffers& buffers) {
  switch (direction.q.format) {
    case Format::f16:
      return quantize_tile<Format::f16>(direction, tile, row, column, ready, buffers);
    case Format::e4m3:
      return quantize_tile<Format::e4m3>(direction, tile, row, column, ready, buffers);
    case Format::e5m2:
      return quantize_tile<Format::e5m2>(direction, tile, row, column, ready, buffers);
    default:
      return quantize_tile<Format::e2m1>(direction, tile, row, column, ready, buffers);
  }
}

// Returns the magnitudes of x.
Magnitudes quantize_tiles(const View& x, std::span<const Direction> directions) {
  SharedMagnitudes shared;
  for_tiles(x, [&](int64_t row, int64_t column) HWY_ATTR {
    TileBuffers buffers;
    const Tile tile = tile_at(x, row, column, reinterpret_cast<bf16*>(buffers.x));
    shared.add(tile.magnitudes);
    for (size_t i = 0; i < directions.size(); ++i) {
      const bool ready = i > 0 && same_codes(directions[0], directions[i]);
      quantize_tile_as(directions[i], tile, row, column, ready, buffers);
    }
  });
  return shared.sum();
}

// How many elements of x times `scale` are Inf or NaN as f16.
int64_t count_not_finite_f16(const View& x, float scale) {
  const RowBlocks blocks(x.rows);
  std::array<int64_t, 64> counts{};
  parallel_for(blocks.count(), [&](int64_t block) {
    for (int64_t i = blocks.begin(block) * x.columns; i < blocks.end(block) * x.columns; ++i) {
      const uint16_t code = encode_f16(multiply_rn(static_cast<float>(x.as<bf16>()[i]), scale));
      counts[static_cast<size_t>(block)] += (code & 0x7fffu) >= f16_inf;
    }
  });
  int64_t sum = 0;
  for (const int64_t count : counts) sum += count;
  return sum;
}

void quantize(const step::Quantize& kind, const View& x, const QuantizerControl& control,
              std::span<float> state, QuantizerStatistics& statistics, const QuantizedView& rows,
              const QuantizedView& columns, Workspace workspace) {
  std::array<Direction, 2> storage;
  size_t count = 0;
  if (rows) storage[count++] = {kind.rows, rows, false, 1, {}};
  if (columns) storage[count++] = {kind.columns, columns, true, 1, {}};
  const std::span<Direction> directions(storage.data(), count);
  if (directions.empty()) return;

  Magnitudes of_x;
  bool known = false;
  for (const Direction& d : directions) {
    if (!known && has_tensor_scale(d.q.scaling) && !d.q.hadamard) {
      of_x = magnitudes_of(x);
      known = true;
    }
  }
  for (Direction& d : directions) {
    const Scaling scaling = d.q.scaling;
    const uint64_t seed = uint64_t{control.seed_high} << 32 | control.seed_low;
    d.stream = random_stream({seed, control.step, control.micro_step, kind.layer,
                              2 * kind.tensor + (d.along_rows ? 1u : 0u)});
    if (!has_tensor_scale(scaling)) continue;
    const float amax = (d.q.hadamard ? magnitudes_after_hadamard(x, d.along_rows) : of_x).amax();
    if (scaling == Scaling::loss) {
      d.multiplier = std::ldexp(1.0f, control.loss_scale_log2);
    } else if (is_nvfp4(scaling)) {
      d.multiplier = nvfp4_encode_scale(amax);
    } else if (scaling == Scaling::delayed && state.back() != 0) {
      d.multiplier = state.back();
    } else {
      d.multiplier = tensor_scale(amax, largest_finite(d.q.format), d.q.power_of_two);
    }
    auto* tensor_scale = d.to.tensor_scale.as<float>();
    tensor_scale[0] = divide_rn(1, d.multiplier);
    tensor_scale[1] = amax;
  }
  of_x = quantize_tiles(x, directions);

  const Direction& first = directions.front();
  if (control.observe != 0) {
    const int64_t not_finite = first.q.scaling != Scaling::loss ? of_x.not_finite
                               : of_x.not_finite > 0 || of_x.amax() * first.multiplier > f16_max
                                   ? count_not_finite_f16(x, first.multiplier)
                                   : 0;
    statistics.not_finite += static_cast<float>(not_finite);
    if (first.q.scaling == Scaling::delayed) {
      DelayedScaling{state.first(state.size() - 1), state.back()}.observe(of_x.amax());
    }
  }
  if (control.collect != 0) {
    quantize_statistics(first.q, x, first.along_rows, first.multiplier, first.to, statistics,
                        workspace);
  }
}

}  // namespace plimsoll::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plimsoll::cpu {

namespace {

bool has_format(const Quantization& q) {
  if (is_nvfp4(q.scaling)) return q.format == Format::e2m1;
  if (q.hadamard || q.stochastic) return false;
  if (q.scaling == Scaling::loss) return q.format == Format::f16;
  return q.format == Format::e4m3 || q.format == Format::e5m2;
}

void check_direction(const Quantization& q, const QuantizedView& to, int64_t rows,
                     int64_t columns) {
  if (!to) return;
  check(has_format(q), "quantize: the format does not go with the scaling");
  check(to.codes.format == q.format && to.codes.rows == rows &&
            to.codes.columns == padded_columns(q.scaling, columns),
        "quantize: shape of codes");
  check(static_cast<bool>(to.scales) == has_block_scales(q.scaling) &&
            static_cast<bool>(to.tensor_scale) == has_tensor_scale(q.scaling),
        "quantize: which scales there are");
}

}  // namespace

HWY_EXPORT(quantize);

size_t quantize_workspace(const step::Quantize& kind, int64_t rows, int64_t columns) {
  return quantize_statistics_workspace(kind.has_rows ? rows : columns);
}

void quantize(const step::Quantize& kind, const View& x, const QuantizerControl& control,
              std::span<float> state, QuantizerStatistics& statistics, const QuantizedView& rows,
              const QuantizedView& columns, Workspace workspace) {
  check(x.format == Format::bf16, "quantize: x is bf16");
  for (const auto& [q, to] : {std::pair{kind.rows, rows}, {kind.columns, columns}}) {
    check(!to || q.scaling != Scaling::delayed || state.size() >= 2,
          "quantize: delayed scaling has a history and a scale");
  }
  check_direction(kind.rows, rows, x.rows, x.columns);
  check_direction(kind.columns, columns, x.columns, x.rows);
  HWY_DYNAMIC_DISPATCH(quantize)
  (kind, x, control, state, statistics, rows, columns, workspace);
}

void update_scaling(AmaxAlgorithm algorithm, float format_max, int margin, std::span<float> state) {
  DelayedScaling{state.first(state.size() - 1), state.back()}.update(algorithm, format_max, margin);
}

}  // namespace plimsoll::cpu
#endif  // HWY_ONCE

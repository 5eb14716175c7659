// Tiles of 128 x 128 elements, the pieces in which quantize.cc works: no block crosses their
// borders. A tile of x lies in cache as bf16 with zeros around what is real, and is quantised from
// there along its columns and along its rows; the codes of the latter are transposed at the end.
//
// Scales of blocks have an order that suits the vectors: along columns [row][block], along rows
// [block][column].
#include <algorithm>
#include <bit>

#include "hwy/cache_control.h"
#include "hwy/highway.h"
#include "plimsoll/numerics/scaling.h"
#include "plimsoll/runtime/cpu/kernels/quantize_encode-inl.h"
#include "plimsoll/runtime/view.h"

#if defined(PLIMSOLL_RUNTIME_CPU_KERNELS_QUANTIZE_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PLIMSOLL_RUNTIME_CPU_KERNELS_QUANTIZE_TILE_INL_H_
#undef PLIMSOLL_RUNTIME_CPU_KERNELS_QUANTIZE_TILE_INL_H_
#else
#define PLIMSOLL_RUNTIME_CPU_KERNELS_QUANTIZE_TILE_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace plimsoll::cpu::HWY_NAMESPACE {

inline constexpr int64_t tile_side = 128;
inline constexpr int64_t tile_elements = tile_side * tile_side;
// Tiles are worked on in whole multiples of this many rows and columns.
inline constexpr int64_t tile_granule = 32;
static_assert(hn::MaxLanes(DF()) <= 16);  // so 16-bit lanes fit a granule

using D16 = hn::ScalableTag<int16_t>;  // magnitudes of bf16 are positive there

constexpr int64_t round_up(int64_t value, int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

// What is known of magnitudes of bf16: the largest that is not NaN, as bits.
struct Magnitudes {
  uint32_t largest = 0;
  int64_t not_finite = 0;
  float amax() const { return std::bit_cast<float>(largest << 16); }
  void add(const Magnitudes& other) {
    largest = std::max(largest, other.largest);
    not_finite += other.not_finite;
  }
};

template <class D>
HWY_INLINE hn::Vec<D> load_magnitude(D d, const bf16* x) {
  return hn::And(hn::LoadU(d, reinterpret_cast<const int16_t*>(x)), hn::Set(d, 0x7fff));
}

HWY_INLINE uint32_t largest_lane(hn::Vec<D16> v) {
  int16_t lanes[hn::MaxLanes(D16())];
  hn::StoreU(v, D16(), lanes);
  return static_cast<uint32_t>(*std::max_element(lanes, lanes + hn::Lanes(D16())));
}

// `largest`: with NaN, which is larger than anything.
inline void add_magnitudes(const bf16* x, int64_t count, uint32_t largest, Magnitudes& sum) {
  if (largest < 0x7f80) {
    sum.largest = std::max(sum.largest, largest);
    return;
  }
  for (int64_t i = 0; i < count; ++i) {
    const uint32_t magnitude = x[i].bits & 0x7fffu;
    sum.not_finite += magnitude >= 0x7f80;
    if (magnitude <= 0x7f80) sum.largest = std::max(sum.largest, magnitude);
  }
}

inline Magnitudes magnitudes(const bf16* x, int64_t count) {
  const D16 d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  auto a = hn::Zero(d), b = a;
  int64_t i = 0;
  for (; i + 2 * lanes <= count; i += 2 * lanes) {
    a = hn::Max(a, load_magnitude(d, x + i));
    b = hn::Max(b, load_magnitude(d, x + i + lanes));
  }
  uint32_t largest = largest_lane(hn::Max(a, b));
  for (; i < count; ++i) largest = std::max<uint32_t>(largest, x[i].bits & 0x7fffu);
  Magnitudes sum;
  add_magnitudes(x, count, largest, sum);
  return sum;
}

// For short rows, where what the compiler makes of memcpy (rep movs) took a third of the time.
HWY_INLINE void copy_bytes(const void* from, void* to, int64_t count) {
  const hn::ScalableTag<uint8_t> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto* source = static_cast<const uint8_t*>(from);
  auto* target = static_cast<uint8_t*>(to);
  int64_t i = 0;
  if constexpr (HWY_TARGET != HWY_SCALAR) {
    for (; i + lanes <= count; i += lanes) hn::StoreU(hn::LoadU(d, source + i), d, target + i);
  }
  if (i < count) std::memcpy(target + i, source + i, static_cast<size_t>(count - i));
}

// A tile in cache, its rows 128 elements apart.
struct Tile {
  bf16* x;
  int64_t rows, columns;                // real
  int64_t padded_rows, padded_columns;  // to granules
  Magnitudes magnitudes;
};

inline Tile load_tile(const bf16* from, int64_t stride, int64_t rows, int64_t columns,
                      bf16* buffer) {
  Tile tile{buffer, rows, columns, round_up(rows, tile_granule), round_up(columns, tile_granule),
            {}};
  const D16 d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  auto largest = hn::Zero(d);
  // Short pieces of rows far apart, which no machine foresees.
  constexpr int64_t rows_ahead = 16;
  for (int64_t r = 0; r < tile.padded_rows; ++r) {
    bf16* row = buffer + r * tile_side;
    const int64_t real = r < rows ? columns : 0;
    if (r + rows_ahead < rows) {
      const bf16* later = from + (r + rows_ahead) * stride;
      for (int64_t c = 0; c < columns; c += 32) hwy::Prefetch(later + c);
    }
    copy_bytes(from + std::min(r, rows - 1) * stride, row,
               real * static_cast<int64_t>(sizeof(bf16)));
    if (real < tile.padded_columns) {
      std::memset(static_cast<void*>(row + real), 0,
                  static_cast<size_t>(tile.padded_columns - real) * sizeof(bf16));
    }
    for (int64_t c = 0; c < tile.padded_columns; c += lanes) {
      largest = hn::Max(largest, load_magnitude(d, row + c));
    }
  }
  const uint32_t with_nan = largest_lane(largest);
  if (with_nan < 0x7f80) {
    tile.magnitudes.largest = with_nan;
  } else {
    for (int64_t r = 0; r < rows; ++r) {
      add_magnitudes(buffer + r * tile_side, columns, with_nan, tile.magnitudes);
    }
  }
  return tile;
}

// ---- largest magnitudes of blocks

template <class D>
HWY_INLINE hn::Vec<D> drop_nan(D d, hn::Vec<D> magnitude) {
  return hn::IfThenZeroElse(hn::Gt(magnitude, hn::Set(d, 0x7f80)), magnitude);
}

template <bool keep_nan, class D>
HWY_INLINE hn::Vec<D> largest_of(D d, const bf16* x, int64_t count) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  auto largest = hn::Zero(d);
  for (int64_t i = 0; i < count; i += lanes) {
    auto magnitude = load_magnitude(d, x + i);
    if constexpr (!keep_nan) magnitude = drop_nan(d, magnitude);
    largest = hn::Max(largest, magnitude);
  }
  return largest;
}

// The largest magnitudes of eight blocks of `count`. next(): where the next block starts.
template <bool keep_nan, class Next>
HWY_INLINE void largest_of_blocks(int64_t count, const Next& next, bf16* largest) {
#if HWY_TARGET == HWY_SCALAR
  const D16 d;
  for (int64_t i = 0; i < 8; ++i) {
    const auto lane = largest_of<keep_nan>(d, next(), count);
    hn::StoreU(lane, d, reinterpret_cast<int16_t*>(largest + i));
  }
#else
  const hn::FixedTag<int16_t, 8> d;
  using V = hn::Vec<decltype(d)>;
  const auto max_of_pairs = [d](V a, V b) HWY_ATTR {
    return hn::Max(hn::InterleaveLower(d, a, b), hn::InterleaveUpper(d, a, b));
  };
  // Blocks and lanes change places: three levels, each of which halves the lanes a block has.
  V v[8];
  for (int64_t i = 0; i < 8; ++i) v[i] = largest_of<keep_nan>(d, next(), count);
  for (int64_t i = 0; i < 4; ++i) v[i] = max_of_pairs(v[i], v[i + 4]);
  const V even = max_of_pairs(v[0], v[2]), odd = max_of_pairs(v[1], v[3]);
  hn::StoreU(max_of_pairs(even, odd), d, reinterpret_cast<int16_t*>(largest));
#endif
}

// amax[row * blocks + block] for `width` columns each; NaN stays where `keep_nan`.
template <bool keep_nan>
void amax_along_columns(const Tile& tile, int64_t width, float* amax) {
  const int64_t blocks = (tile.padded_columns + width - 1) / width;
  const bf16* row = tile.x;
  int64_t block = 0;
  const auto next = [&] {
    const bf16* start = row + block * width;
    if (++block == blocks) block = 0, row += tile_side;
    return start;
  };
  for (int64_t i = 0; i < tile.padded_rows * blocks; i += 8) {
    bf16 largest[8];
    largest_of_blocks<keep_nan>(std::min(width, tile.padded_columns), next, largest);
    for (int64_t k = 0; k < 8; ++k) amax[i + k] = static_cast<float>(largest[k]);
  }
}

// amax[block * 128 + column] for `width` rows each.
template <bool keep_nan>
void amax_along_rows(const Tile& tile, int64_t width, float* amax) {
  const D16 d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t begin = 0; begin < tile.padded_rows; begin += width) {
    const int64_t end = std::min(tile.padded_rows, begin + width);
    bf16 largest_of[tile_side];
    for (int64_t c = 0; c < tile.padded_columns; c += lanes) {
      auto largest = hn::Zero(d);
      for (int64_t r = begin; r < end; ++r) {
        auto magnitude = load_magnitude(d, tile.x + r * tile_side + c);
        if constexpr (!keep_nan) magnitude = drop_nan(d, magnitude);
        largest = hn::Max(largest, magnitude);
      }
      hn::StoreU(largest, d, reinterpret_cast<int16_t*>(largest_of + c));
    }
    float* to = amax + begin / width * tile_side;
    for (int64_t c = 0; c < tile.padded_columns; c += static_cast<int64_t>(hn::Lanes(DF()))) {
      store(load(largest_of + c, Whole()), to + c, Whole());
    }
  }
}

// ---- codes

// Values of any kind: slower, for tiles with Inf and NaN, and for vectors longer than a block.
template <Format F, class Code>
void encode_any(const Tile& tile, int64_t width, bool along_rows, const float* multiplier,
                Code* codes) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(DF()));
  const int64_t blocks = (tile.padded_columns + width - 1) / width;
  for (int64_t r = 0; r < tile.padded_rows; ++r) {
    const bf16* x = tile.x + r * tile_side;
    for (int64_t c = 0; c < tile.padded_columns; c += lanes) {
      const VF m = along_rows ? load(multiplier + r / width * tile_side + c, Whole())
                              : set(multiplier[r * blocks + c / width]);
      store_codes(encode_nearest<F>(hn::Mul(load(x + c, Whole()), m)), codes + r * tile_side + c);
    }
  }
}

#if HWY_TARGET == HWY_SCALAR

template <Format F, class Code>
void encode_finite(const Tile& tile, int64_t width, bool along_rows, const float* multiplier,
                   Code* codes) {
  encode_any<F>(tile, width, along_rows, multiplier, codes);
}

#else

inline constexpr int64_t pair_lanes = 2 * hn::MaxLanes(DF());

// A vector of bf16 as two of f32. Where lanes go is left to Highway, in blocks of 128 bits; two
// vectors of codes come back in the order of x.
HWY_INLINE VF first_of_pair(hn::Vec<D16> x) {
  return hn::BitCast(DF(), hn::InterleaveLower(D16(), hn::Zero(D16()), x));
}
HWY_INLINE VF second_of_pair(hn::Vec<D16> x) {
  return hn::BitCast(DF(), hn::InterleaveUpper(D16(), hn::Zero(D16()), x));
}

// Codes of a vector of finite bf16 times multipliers > 0, which are in the order of a pair.
template <Format F, class Code>
HWY_INLINE void encode_pair(const bf16* x, VF first, VF second, Code* codes) {
  constexpr int bits = code_layout(F).bits;
  const D16 d;
  const hn::RebindToUnsigned<D16> du;
  const auto values = hn::LoadU(d, reinterpret_cast<const int16_t*>(x));
  const auto magnitudes = hn::And(values, hn::Set(d, 0x7fff));
  const VI a = encode_magnitude<F>(hn::Mul(first_of_pair(magnitudes), first));
  const VI b = encode_magnitude<F>(hn::Mul(second_of_pair(magnitudes), second));
  const auto signs =
      hn::ShiftRight<16 - bits>(hn::BitCast(du, hn::AndNot(hn::Set(d, 0x7fff), values)));
  const auto joined = hn::Or(hn::ReorderDemote2To(d, a, b), hn::BitCast(d, signs));
  if constexpr (bits == 16) {
    hn::StoreU(hn::BitCast(du, joined), du, codes);
  } else {
    const hn::Rebind<uint8_t, D16> du8;
    hn::StoreU(hn::DemoteTo(du8, joined), du8, codes);
  }
}

// A row of multipliers in the order of pairs.
inline void order_as_pairs(const float* from, int64_t count, float* to) {
  alignas(64) int16_t lanes[pair_lanes];
  for (int64_t i = 0; i < pair_lanes; ++i) lanes[i] = static_cast<int16_t>(i);
  const auto v = hn::Load(D16(), lanes);
  alignas(64) int32_t order[pair_lanes];
  hn::Store(hn::ShiftRight<16>(hn::BitCast(DI(), first_of_pair(v))), DI(), order);
  hn::Store(hn::ShiftRight<16>(hn::BitCast(DI(), second_of_pair(v))), DI(), order + pair_lanes / 2);
  for (int64_t c = 0; c < count; c += pair_lanes) {
    for (int64_t i = 0; i < pair_lanes; ++i) to[c + i] = from[c + order[i]];
  }
}

// Neither values nor multipliers are Inf or NaN.
template <Format F, class Code>
void encode_finite(const Tile& tile, int64_t width, bool along_rows, const float* multiplier,
                   Code* codes) {
  if (!along_rows && width < pair_lanes) {
    return encode_any<F>(tile, width, along_rows, multiplier, codes);
  }
  const int64_t blocks = (tile.padded_columns + width - 1) / width;
  float ordered[tile_side];
  for (int64_t r = 0; r < tile.padded_rows; ++r) {
    const bf16* x = tile.x + r * tile_side;
    Code* to = codes + r * tile_side;
    if (along_rows) {
      if (r % width == 0) {
        order_as_pairs(multiplier + r / width * tile_side, tile.padded_columns, ordered);
      }
      for (int64_t c = 0; c < tile.padded_columns; c += pair_lanes) {
        encode_pair<F>(x + c, load(ordered + c, Whole()),
                       load(ordered + c + pair_lanes / 2, Whole()), to + c);
      }
      continue;
    }
    for (int64_t b = 0; b < blocks; ++b) {
      const VF m = set(multiplier[r * blocks + b]);
      const int64_t end = std::min(tile.padded_columns, (b + 1) * width);
      for (int64_t c = b * width; c < end; c += pair_lanes) encode_pair<F>(x + c, m, m, to + c);
    }
  }
}

#endif

// The Hadamard transform of 16 rows at a time.
inline void transform_along_rows(const Tile& tile, bf16* to) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(DF()));
  for (int64_t r = 0; r < tile.padded_rows; r += 16) {
    for (int64_t c = 0; c < tile.padded_columns; c += lanes) {
      hadamard_columns(tile.x + r * tile_side + c, tile_side, to + r * tile_side + c);
    }
  }
}

// Of 16 columns at a time; no recipe needs it fast.
inline void transform_along_columns(const Tile& tile, bf16* to) {
  for (int64_t r = 0; r < tile.padded_rows; ++r) {
    for (int64_t c = 0; c < tile.padded_columns; c += 16) {
      float x[16], y[16];
      for (int64_t i = 0; i < 16; ++i) x[i] = static_cast<float>(tile.x[r * tile_side + c + i]);
      hadamard16(x, y);
      for (int64_t i = 0; i < 16; ++i) to[r * tile_side + c + i] = bf16(y[i]);
    }
  }
}

}  // namespace plimsoll::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard

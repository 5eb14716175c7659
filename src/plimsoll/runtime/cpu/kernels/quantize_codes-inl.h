// Codes in a tile and in memory: transposed, and two of 4 bits in a byte.
#include "hwy/highway.h"
#include "plimsoll/runtime/cpu/kernels/quantize_tile-inl.h"

#if defined(PLIMSOLL_RUNTIME_CPU_KERNELS_QUANTIZE_CODES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PLIMSOLL_RUNTIME_CPU_KERNELS_QUANTIZE_CODES_INL_H_
#undef PLIMSOLL_RUNTIME_CPU_KERNELS_QUANTIZE_CODES_INL_H_
#else
#define PLIMSOLL_RUNTIME_CPU_KERNELS_QUANTIZE_CODES_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace plimsoll::cpu::HWY_NAMESPACE {

// to[column][row] = from[row][column], both with rows of 128.
template <class Code>
void transpose_codes(const Tile& tile, const Code* from, Code* to) {
#if HWY_TARGET == HWY_SCALAR
  for (int64_t c = 0; c < tile.padded_columns; ++c) {
    for (int64_t r = 0; r < tile.padded_rows; ++r) to[c * tile_side + r] = from[r * tile_side + c];
  }
#else
  constexpr int64_t n = 16 / sizeof(Code);
  const hn::FixedTag<Code, n> d;
  using V = hn::Vec<decltype(d)>;
  for (int64_t c = 0; c < tile.padded_columns; c += n) {
    for (int64_t r = 0; r < tile.padded_rows; r += n) {
      V a[n], b[n];
      for (int64_t i = 0; i < n; ++i) a[i] = hn::LoadU(d, from + (r + i) * tile_side + c);
      // log2(n) perfect shuffles of the rows.
      for (int64_t step = 1; step < n; step *= 2) {
        for (int64_t i = 0; i < n / 2; ++i) {
          b[2 * i] = hn::InterleaveLower(d, a[i], a[i + n / 2]);
          b[2 * i + 1] = hn::InterleaveUpper(d, a[i], a[i + n / 2]);
        }
        for (int64_t i = 0; i < n; ++i) a[i] = b[i];
      }
      for (int64_t i = 0; i < n; ++i) hn::StoreU(a[i], d, to + (c + i) * tile_side + r);
    }
  }
#endif
}

// Pairs of 4-bit codes in bytes, the first in the low half; 128 codes, of which `count` matter.
HWY_INLINE void pack_codes(const uint8_t* codes, int64_t count, uint8_t* packed) {
  const hn::ScalableTag<uint16_t> d;
  const hn::ScalableTag<int16_t> di;
  const hn::Rebind<uint8_t, decltype(d)> du8;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t i = 0; i < count / 2; i += lanes) {
    const auto pair = hn::LoadU(d, reinterpret_cast<const uint16_t*>(codes + 2 * i));
    const auto joined = hn::And(hn::Or(pair, hn::ShiftRight<4>(pair)), hn::Set(d, 0xff));
    hn::StoreU(hn::DemoteTo(du8, hn::BitCast(di, joined)), du8, packed + i);
  }
}

// Writes rows of codes, `real` of 128 columns from the tile and zeros up to `end`, to
// codes(row, column) of a matrix with `padded` columns.
template <Format F, class Code>
void write_codes(Code* tile, int64_t rows, int64_t real, int64_t end, const View& to, int64_t row,
                 int64_t column) {
  const int64_t stride = bytes_of(F, to.columns);
  std::byte* out = to.data + row * stride + bytes_of(F, column);
  const int64_t bytes = bytes_of(F, end);
  for (int64_t r = 0; r < rows; ++r, out += stride) {
    Code* codes = tile + r * tile_side;
    if (real < end) std::memset(codes + real, 0, static_cast<size_t>(end - real) * sizeof(Code));
    if constexpr (F == Format::e2m1) {
      alignas(64) uint8_t packed[tile_side / 2];
      pack_codes(codes, end, packed);
      copy_bytes(packed, out, bytes);
    } else {
      copy_bytes(codes, out, bytes);
    }
  }
}

// 16 codes of 4 bits as bytes.
HWY_INLINE void unpack_codes(const uint8_t* packed, uint8_t* codes) {
#if HWY_TARGET == HWY_SCALAR
  for (size_t i = 0; i < 16; ++i) codes[i] = unpack_e2m1(packed[i / 2], i);
#else
  const hn::FixedTag<uint8_t, 16> d;
  const hn::FixedTag<uint16_t, 8> d16;
  const auto pairs = hn::PromoteTo(d16, hn::LoadU(hn::FixedTag<uint8_t, 8>(), packed));
  const auto apart = hn::Or(hn::And(pairs, hn::Set(d16, 15)),
                            hn::ShiftLeft<4>(hn::And(pairs, hn::Set(d16, 0xf0))));
  hn::StoreU(hn::BitCast(d, apart), d, codes);
#endif
}

}  // namespace plimsoll::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard

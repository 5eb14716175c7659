// Stochastic rounding of a tile's elements to e2m1 in blocks of 16, with the random bytes of
// numerics/stochastic.h: a group of 16 bytes for each block.
#include "hwy/highway.h"
#include "plimsoll/numerics/stochastic.h"
#include "plimsoll/runtime/cpu/kernels/quantize_tile-inl.h"

#if defined(PLIMSOLL_RUNTIME_CPU_KERNELS_QUANTIZE_STOCHASTIC_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PLIMSOLL_RUNTIME_CPU_KERNELS_QUANTIZE_STOCHASTIC_INL_H_
#undef PLIMSOLL_RUNTIME_CPU_KERNELS_QUANTIZE_STOCHASTIC_INL_H_
#else
#define PLIMSOLL_RUNTIME_CPU_KERNELS_QUANTIZE_STOCHASTIC_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace plimsoll::cpu::HWY_NAMESPACE {

#if HWY_TARGET == HWY_SCALAR

// The bytes of `count` groups from `first` on, one after another.
inline void store_random_bytes(const RandomStream& stream, uint64_t first, int64_t count,
                               uint8_t* to) {
  for (int64_t i = 0; i < count; ++i) {
    const PhiloxBytes bytes = random_bytes16(stream, first + static_cast<uint64_t>(i));
    std::copy(bytes.begin(), bytes.end(), to + 16 * i);
  }
}

// Random words for each of a tile's columns, whose groups are `stride` apart.
class GroupsOfColumns {
 public:
  GroupsOfColumns(uint64_t first, uint64_t stride) : first_(first), stride_(stride) {}

  // Of block b of the columns from `column` on; word i holds the bytes of rows 4 i to 4 i + 3.
  void words(const RandomStream& stream, int64_t b, int64_t column, VI* words) const {
    const uint64_t group =
        first_ + static_cast<uint64_t>(column) * stride_ + static_cast<uint64_t>(b);
    const PhiloxBytes bytes = random_bytes16(stream, group);
    for (int i = 0; i < 4; ++i) {
      int32_t word;
      std::memcpy(&word, &bytes[static_cast<size_t>(4 * i)], 4);
      words[i] = set_int(word);
    }
  }

 private:
  uint64_t first_, stride_;
};

#else

using D64 = hn::Repartition<uint64_t, DF>;
using V64 = hn::Vec<D64>;

// The four words of Philox for a vector of groups, in the lower halves of its lanes; the upper
// halves hold rubbish, which a product of lower halves does not see.
struct RandomWords {
  V64 word[4];
};
HWY_INLINE RandomWords random_words(const RandomStream& stream, V64 groups) {
  const D64 d;
  const hn::Repartition<uint32_t, DF> du;
  const auto multiplier0 = hn::BitCast(du, hn::Set(d, 0xD2511F53u));
  const auto multiplier1 = hn::BitCast(du, hn::Set(d, 0xCD9E8D57u));
  V64 c0 = groups, c1 = hn::ShiftRight<32>(groups);
  V64 c2 = hn::Set(d, stream.words[0]), c3 = hn::Set(d, stream.words[1]);
  uint32_t key0 = stream.words[2], key1 = stream.words[3];
  for (int round = 0; round < 10; ++round) {
    const V64 a = hn::MulEven(hn::BitCast(du, c0), multiplier0);
    const V64 b = hn::MulEven(hn::BitCast(du, c2), multiplier1);
    c0 = hn::Xor(hn::ShiftRight<32>(b), hn::Xor(c1, hn::Set(d, key0)));
    c2 = hn::Xor(hn::ShiftRight<32>(a), hn::Xor(c3, hn::Set(d, key1)));
    c1 = b;
    c3 = a;
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  return {{c0, c1, c2, c3}};
}

// The bytes of `count` groups from `first` on, one after another, and of what fills the vector.
inline void store_random_bytes(const RandomStream& stream, uint64_t first, int64_t count,
                               uint8_t* to) {
  const D64 d;
  const V64 lower = hn::Set(d, 0xffffffffu);
  for (int64_t i = 0; i < count; i += static_cast<int64_t>(hn::Lanes(d))) {
    const RandomWords w = random_words(stream, hn::Iota(d, first + static_cast<uint64_t>(i)));
    const V64 even = hn::Or(hn::And(w.word[0], lower), hn::ShiftLeft<32>(w.word[1]));
    const V64 odd = hn::Or(hn::And(w.word[2], lower), hn::ShiftLeft<32>(w.word[3]));
    hn::StoreInterleaved2(even, odd, d, reinterpret_cast<uint64_t*>(to + 16 * i));
  }
}

// Random words for each of a tile's columns, whose groups are `stride` apart.
class GroupsOfColumns {
 public:
  GroupsOfColumns(uint64_t first, uint64_t stride) {
    for (uint64_t i = 0; i < tile_side / 2; ++i) {
      even_[i] = first + 2 * i * stride;
      odd_[i] = even_[i] + stride;
    }
  }

  // Of block b of the columns from `column` on; word i holds the bytes of rows 4 i to 4 i + 3.
  HWY_INLINE void words(const RandomStream& stream, int64_t b, int64_t column, VI* words) const {
    const D64 d;
    const V64 block = hn::Set(d, static_cast<uint64_t>(b));
    const RandomWords even = random_words(stream, hn::Add(hn::LoadU(d, even_ + column / 2), block));
    const RandomWords odd = random_words(stream, hn::Add(hn::LoadU(d, odd_ + column / 2), block));
    for (int i = 0; i < 4; ++i) {
      words[i] = hn::OddEven(hn::BitCast(DI(), hn::ShiftLeft<32>(odd.word[i])),
                             hn::BitCast(DI(), even.word[i]));
    }
  }

 private:
  uint64_t even_[tile_side / 2], odd_[tile_side / 2];
};

#endif

// Stochastic rounding in blocks of 16. Block b of the tile's row r draws the bytes of the group
// first_group + r * row_groups + b.
inline void encode_stochastic_along_columns(const Tile& tile, const float* multiplier,
                                            const RandomStream& stream, uint64_t first_group,
                                            uint64_t row_groups, uint8_t* codes) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(DF()));
  const int64_t blocks = tile.padded_columns / 16;
  for (int64_t r = 0; r < tile.padded_rows; ++r) {
    alignas(64) uint8_t bytes[tile_side];
    const uint64_t group = first_group + static_cast<uint64_t>(r) * row_groups;
    store_random_bytes(stream, group, blocks, bytes);
    for (int64_t c = 0; c < tile.padded_columns; c += lanes) {
      const VF scaled =
          hn::Mul(load(tile.x + r * tile_side + c, Whole()), set(multiplier[r * blocks + c / 16]));
      store_codes(encode_stochastic(scaled, load_codes(bytes + c)), codes + r * tile_side + c);
    }
  }
}

// The same along rows: block b of the tile's column c draws those of
// first_group + c * column_groups + b.
inline void encode_stochastic_along_rows(const Tile& tile, const float* multiplier,
                                         const RandomStream& stream, uint64_t first_group,
                                         uint64_t column_groups, uint8_t* codes) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(DF()));
  const GroupsOfColumns groups(first_group, column_groups);
  for (int64_t b = 0; b < tile.padded_rows / 16; ++b) {
    for (int64_t c = 0; c < tile.padded_columns; c += lanes) {
      VI random[4];
      groups.words(stream, b, c, random);
      const VF m = load(multiplier + b * tile_side + c, Whole());
      for (int64_t i = 0; i < 16; ++i) {
        const int64_t at = (b * 16 + i) * tile_side + c;
        const VF scaled = hn::Mul(load(tile.x + at, Whole()), m);
        const VI byte = hn::And(random[i / 4], set_int(0xff));
        store_codes(encode_stochastic(scaled, byte), codes + at);
        random[i / 4] = hn::ShiftRight<8>(random[i / 4]);
      }
    }
  }
}

}  // namespace plimsoll::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard

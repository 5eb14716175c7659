// The scratch of the attention kernels: block sizes and where each tile lies in a thread's part of
// the workspace. Scores are held transposed, a row per key and a lane per query, so that the
// softmax runs down columns without horizontal operations and no key or value is ever transposed.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "plimsoll/runtime/view.h"
#include "plimsoll/step/ops/attention.h"

namespace plimsoll::cpu {

// Tokens in a block of keys, and in a block of queries of the backward and the forward. Multiples
// of every target's panel width (up to 32) and, for keys, of its tile rows (6 or 12).
inline constexpr int64_t attention_block = 96;
inline constexpr int64_t attention_query_block = 192;

constexpr int64_t round_up(int64_t value, int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}
constexpr int64_t blocks_of(int64_t tokens, int64_t block) { return (tokens + block - 1) / block; }

// Floats from row to row of a tile: whole cache lines, an odd number of them, so that one column of
// the tile spreads over all sets of the L1 cache.
constexpr int64_t tile_stride(int64_t columns) { return 16 * (blocks_of(columns, 16) | 1); }

// Hands out consecutive pieces of an array of floats, each aligned to 64 bytes.
class FloatArena {
 public:
  explicit FloatArena(float* base) : base_(base) {}
  float* take(int64_t floats) {
    float* piece = base_ == nullptr ? nullptr : base_ + used_;
    used_ += round_up(floats, 16);
    return piece;
  }
  int64_t used() const { return used_; }

 private:
  float* base_;
  int64_t used_ = 0;
};

// Of one thread. With D = head_dim: about 4 * (576 D + 3072 + 2 * 192) bytes and padding,
// 180 KiB at D = 64.
struct AttentionScratch {
  float* keys;     // (block, D); with `values` behind it, also the queries or outputs by row
  float* values;   // (block, D)
  float* queries;  // (D, query block), scaled
  float* out;      // (D, query block), not yet divided by the softmax denominator
  float* scores;   // (block, panel)
  float* max;      // (query block)
  float* sum;      // (query block)

  static AttentionScratch take(const step::HeadShape& shape, FloatArena& arena) {
    const int64_t by_token = attention_block * tile_stride(shape.head_dim);
    const int64_t by_dim = round_up(shape.head_dim, 4) * tile_stride(attention_query_block);
    return {arena.take(by_token),
            arena.take(by_token),
            arena.take(by_dim),
            arena.take(by_dim),
            arena.take(attention_block * 32),
            arena.take(attention_query_block),
            arena.take(attention_query_block)};
  }
};

// Of one thread. With D = head_dim: about 4 * (768 D + 2 * 96 * 112) bytes and padding, 320 KiB at
// D = 64.
struct AttentionBackwardScratch {
  float *keys, *values, *dkeys, *dvalues, *queries, *dout;  // (block, D)
  float *queries_t, *dout_t;                                // (D, block), scaled
  float *probabilities, *dscores;                           // (block of keys, block of queries)
  float* log2_sum;                                          // (block): lse / log(2)

  static AttentionBackwardScratch take(const step::HeadShape& shape, FloatArena& arena) {
    const int64_t by_token = attention_block * tile_stride(shape.head_dim);
    const int64_t by_dim = round_up(shape.head_dim, 4) * tile_stride(attention_block);
    const int64_t scores = attention_block * tile_stride(attention_block);
    return {arena.take(by_token), arena.take(by_token),       arena.take(by_token),
            arena.take(by_token), arena.take(by_token),       arena.take(by_token),
            arena.take(by_dim),   arena.take(by_dim),         arena.take(scores),
            arena.take(scores),   arena.take(attention_block)};
  }
};

// How many (sequence, key head) pairs the backward has in flight. Long sequences keep all threads
// busy with one; with short ones every thread has its own.
constexpr int64_t backward_slots(int64_t tokens, const step::HeadShape& shape, int threads) {
  const int64_t blocks = blocks_of(shape.sequence, attention_block);
  const int64_t pairs = tokens / shape.sequence * shape.query_groups;
  const int64_t wanted = std::min<int64_t>(threads, blocks_of(int64_t{32} * threads, blocks));
  return std::max<int64_t>(1, std::min(pairs, wanted));
}

// Shared by all threads: the gradients of the queries of the pairs in flight while they are summed,
// and how far each has come. Block of queries i of the h-th query head of the pair in slot s has
// index (s * heads per key head + h) * blocks + i.
struct QueryGradients {
  // Of one block of queries: (D, block) gradients and a row of delta = sum over D of dout * out.
  static constexpr int64_t floats(const step::HeadShape& shape) {
    return (round_up(shape.head_dim, 4) + 1) * attention_block;
  }
  float* sums;
  int64_t* progress;  // blocks of keys added, of this pair and all earlier ones of the slot

  static QueryGradients take(const step::HeadShape& shape, int64_t slots, FloatArena& arena) {
    const int64_t count =
        slots * (shape.heads / shape.query_groups) * blocks_of(shape.sequence, attention_block);
    return {arena.take(count * floats(shape)), reinterpret_cast<int64_t*>(arena.take(2 * count))};
  }
};

// What every task of one backward reads and writes.
struct AttentionBackwardOperands {
  View dout, out, qk, qkv, lse, dqkv;
  step::HeadShape shape;
  QueryGradients dqueries;
  int64_t slots;
};

}  // namespace plimsoll::cpu

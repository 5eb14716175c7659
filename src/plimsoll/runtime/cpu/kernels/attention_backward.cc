// dout, out (T, heads * head_dim), qk (T, >= qk_columns), qkv (T, qkv_columns) f32 or bf16,
// lse (T, heads) f32  ->  dqkv (T, qkv_columns) of the same format
//
//   p = exp(q k^T / sqrt(D) - lse)    delta = sum over D of dout * out
//   ds = p * (dout v^T - delta) / sqrt(D)
//   dv = p^T dout    dk = ds^T q    dq = ds k          (Dao et al. 2022, algorithm 4)
//
// A task is a block of keys of one (sequence, key head) pair: it walks over the query heads and
// blocks of queries that see it, sums dk and dv in its own scratch and adds its part of dq to sums
// shared with the other tasks. Tasks start in order, last block of keys first, and each waits for
// the one before at every block of queries (never at its first). So every sum is taken in one order
// whatever the number of threads, threads follow each other as a pipeline, and nothing is computed
// twice.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "plimsoll/runtime/cpu/kernels/attention_backward.cc"
#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <numbers>
#include <thread>

#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "plimsoll/base/error.h"
#include "plimsoll/runtime/cpu/kernels/attention_layout.h"
#include "plimsoll/runtime/cpu/kernels/kernels.h"
#include "plimsoll/runtime/cpu/kernels/tile_gemm-inl.h"
#include "plimsoll/runtime/cpu/kernels/tile_io-inl.h"

HWY_BEFORE_NAMESPACE();
namespace plimsoll::cpu::HWY_NAMESPACE {

static_assert(attention_block % tile_rows == 0);

// A block of queries of one head as a block of keys meets it.
struct QueryBlock {
  int64_t row;     // its first token
  int64_t count;   // of queries
  int64_t padded;  // to whole panels
  int64_t head;
  bool diagonal;  // the block of keys has the same tokens
  bool first;     // no block of keys came before
  bool last;
  float* dqueries;  // (D, block)
  float* delta;     // (block)
};

template <class T>
HWY_INLINE float dot(const float* a, const T* b, int64_t count) {
  return sum_columns(count, [&](int64_t c, auto part, VF& sum) HWY_ATTR {
    sum = hn::MulAdd(load(a + c, part), load(b + c, part), sum);
  });
}

// delta[q] = factor * sum over D of dout * out, 0 for the padding.
void row_products(Matrix dout, const View& out, int64_t dim, float factor,
                  const QueryBlock& block) {
  for (int64_t q = 0; q < block.count; ++q) {
    const int64_t offset = (block.row + q) * out.columns + block.head * dim;
    const float* row = dout.from(q, 0).data;
    block.delta[q] =
        factor * (out.format == Format::bf16 ? dot(row, out.as<const bf16>() + offset, dim)
                                             : dot(row, out.as<const float>() + offset, dim));
  }
  std::fill(block.delta + block.count, block.delta + block.padded, 0.0f);
}

// One panel of queries: scores -> p, dout v^T -> ds. The first `visible` keys are seen by every
// query of the panel; query i sees i + `visible` of them.
HWY_INLINE void score_gradients(int64_t keys, int64_t visible, Matrix scores, Matrix dscores,
                                const float* log2_sum, const float* delta) {
  const DF d;
  const int64_t n = lanes();
  for (int64_t v = 0; v < tile_vectors; ++v) {
    const VF sum = hn::Load(d, log2_sum + v * n);
    const VF product = hn::Load(d, delta + v * n);
    const int64_t clear = std::clamp<int64_t>(visible + v * n, 0, keys);
    const VF query = hn::Iota(d, static_cast<float>(visible + v * n));
    for (int64_t k = 0; k < keys; ++k) {
      float* score = scores.from(k, v * n).data;
      float* dscore = dscores.from(k, v * n).data;
      VF p = exp2(hn::Sub(hn::Load(d, score), sum));
      if (k >= clear) {
        p = hn::IfThenElseZero(hn::Lt(hn::Set(d, static_cast<float>(k)), query), p);
      }
      hn::Store(p, d, score);
      hn::Store(hn::Mul(p, hn::Sub(hn::Load(d, dscore), product)), d, dscore);
    }
  }
}

// dk and dv of a block of keys += those of a block of queries on the diagonal, without the part
// above it, where p and ds were not computed.
void add_diagonal(const AttentionBackwardScratch& s, int64_t count, int64_t dim) {
  const int64_t stride = tile_stride(dim);
  const int64_t score_stride = tile_stride(attention_block);
  for (int64_t k = 0; k < count; k += tile_rows) {
    const int64_t rows = std::min(tile_rows, count - k);
    const int64_t q = k / panel_columns() * panel_columns();
    const int64_t from = k * score_stride + q;
    const Matrix dkeys = Matrix{s.dkeys, stride}.from(k, 0);
    const Matrix dvalues = Matrix{s.dvalues, stride}.from(k, 0);
    multiply<Into::add>(rows, dim, count - q, {s.probabilities + from, score_stride, 1},
                        Matrix{s.dout, stride}.from(q, 0), dvalues);
    multiply<Into::add>(rows, dim, count - q, {s.dscores + from, score_stride, 1},
                        Matrix{s.queries, stride}.from(q, 0), dkeys);
  }
}

// Adds what a block of `count` keys and a block of queries contribute to dq, dk and dv.
void add_block(const AttentionBackwardOperands& op, const AttentionBackwardScratch& s,
               int64_t count, const QueryBlock& block) {
  const int64_t dim = op.shape.head_dim;
  const int64_t stride = tile_stride(dim);
  const int64_t score_stride = tile_stride(attention_block);
  const float scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(dim)));
  const Matrix queries{s.queries, stride}, dout{s.dout, stride};
  const Matrix queries_t{s.queries_t, score_stride}, dout_t{s.dout_t, score_stride};
  const Matrix scores{s.probabilities, score_stride}, dscores{s.dscores, score_stride};
  const Matrix dqueries{block.dqueries, attention_block};

  load_tile(op.qk, block.row, block.count, block.padded, block.head * dim, dim, queries);
  load_tile(op.dout, block.row, block.count, block.padded, block.head * dim, dim, dout);
  transpose(queries, block.padded, dim, scale * std::numbers::log2e_v<float>, queries_t);
  transpose(dout, block.padded, dim, scale, dout_t);
  if (block.first) row_products(dout, op.out, dim, scale, block);
  for (int64_t q = 0; q < block.count; ++q) {
    s.log2_sum[q] = std::numbers::log2e_v<float> *
                    op.lse.as<const float>()[(block.row + q) * op.shape.heads + block.head];
  }
  std::fill(s.log2_sum + block.count, s.log2_sum + block.padded,
            std::numeric_limits<float>::infinity());  // p = 0 in the padding

  for (int64_t q = 0; q < block.padded; q += panel_columns()) {
    // On the diagonal whole register tiles, so that `add_diagonal` finds zeros above it.
    const int64_t used =
        block.diagonal ? std::min(count, round_up(q + panel_columns(), tile_rows)) : count;
    const int64_t visible = block.diagonal ? q + 1 : count;
    multiply<Into::store>(used, panel_columns(), dim, {s.keys, stride, 1}, queries_t.from(0, q),
                          scores.from(0, q));
    multiply<Into::store>(used, panel_columns(), dim, {s.values, stride, 1}, dout_t.from(0, q),
                          dscores.from(0, q));
    score_gradients(used, visible, scores.from(0, q), dscores.from(0, q), s.log2_sum + q,
                    block.delta + q);
    if (block.first) {
      multiply<Into::store>(dim, panel_columns(), used, {s.keys, 1, stride}, dscores.from(0, q),
                            dqueries.from(0, q));
    } else {
      multiply<Into::add>(dim, panel_columns(), used, {s.keys, 1, stride}, dscores.from(0, q),
                          dqueries.from(0, q));
    }
  }
  if (block.diagonal) {
    add_diagonal(s, count, dim);
  } else {
    multiply<Into::add>(count, dim, block.count, {scores.data, score_stride, 1}, dout,
                        {s.dvalues, stride});
    multiply<Into::add>(count, dim, block.count, {dscores.data, score_stride, 1}, queries,
                        {s.dkeys, stride});
  }
  if (block.last) {
    transpose(dqueries, dim, block.count, 1.0f, queries);
    store_tile(queries, block.count, dim, op.dqkv, block.row, block.head * dim);
  }
}

// The task of one block of keys; `pair` counts (sequence, key head) pairs.
void backward_keys(const AttentionBackwardOperands& op, int64_t pair, int64_t key_block,
                   float* scratch) {
  FloatArena arena(scratch);
  const HeadShape& shape = op.shape;
  const AttentionBackwardScratch s = AttentionBackwardScratch::take(shape, arena);
  const int64_t dim = shape.head_dim;
  const int64_t blocks = blocks_of(shape.sequence, attention_block);
  const int64_t heads = shape.heads / shape.query_groups;  // that read these keys
  const int64_t key_head = pair % shape.query_groups;
  const int64_t key_column = (shape.heads + key_head) * dim;
  const int64_t value_column = key_column + shape.query_groups * dim;
  const int64_t sequence_row = pair / shape.query_groups * shape.sequence;
  const int64_t row = sequence_row + key_block * attention_block;
  const int64_t count = std::min(attention_block, shape.sequence - key_block * attention_block);

  const Matrix dkeys{s.dkeys, tile_stride(dim)}, dvalues{s.dvalues, tile_stride(dim)};
  load_tile(op.qk, row, count, count, key_column, dim, {s.keys, tile_stride(dim)});
  load_tile(op.qkv, row, count, count, value_column, dim, {s.values, tile_stride(dim)});
  std::fill_n(s.dkeys, count * dkeys.stride, 0.0f);
  std::fill_n(s.dvalues, count * dvalues.stride, 0.0f);
  for (int64_t h = 0; h < heads; ++h) {
    for (int64_t i = key_block; i < blocks; ++i) {
      const int64_t index = (pair % op.slots * heads + h) * blocks + i;
      const std::atomic_ref<int64_t> progress(op.dqueries.progress[index]);
      // i + 1 blocks of keys a pair; of this one, those after `key_block` come before.
      const int64_t turn = pair / op.slots * (i + 1) + (i - key_block);
      while (progress.load(std::memory_order_acquire) < turn) std::this_thread::yield();
      float* sums = op.dqueries.sums + index * QueryGradients::floats(shape);
      const int64_t queries = std::min(attention_block, shape.sequence - i * attention_block);
      add_block(op, s, count,
                {.row = sequence_row + i * attention_block,
                 .count = queries,
                 .padded = round_up(queries, panel_columns()),
                 .head = key_head * heads + h,
                 .diagonal = i == key_block,
                 .first = i == key_block,
                 .last = key_block == 0,
                 .dqueries = sums,
                 .delta = sums + round_up(dim, 4) * attention_block});
      progress.store(turn + 1, std::memory_order_release);
    }
  }
  store_tile(dkeys, count, dim, op.dqkv, row, key_column);
  store_tile(dvalues, count, dim, op.dqkv, row, value_column);
}

}  // namespace plimsoll::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace plimsoll::cpu {

HWY_EXPORT(backward_keys);

namespace {

int64_t scratch_floats(const HeadShape& shape) {  // of one thread
  FloatArena arena(nullptr);
  AttentionBackwardScratch::take(shape, arena);
  return arena.used();
}

}  // namespace

size_t attention_backward_workspace(int64_t tokens, const HeadShape& shape, int threads) {
  FloatArena arena(nullptr);
  QueryGradients::take(shape, backward_slots(tokens, shape, threads), arena);
  return sizeof(float) * static_cast<size_t>(arena.used() + threads * scratch_floats(shape));
}

void attention_backward(const View& dout, const View& out, const View& qk, const View& qkv,
                        const View& lse, const HeadShape& shape, const View& dqkv,
                        Workspace workspace, int threads) {
  check(workspace.size() >= attention_backward_workspace(qkv.rows, shape, threads),
        "the workspace of attention_backward is too small");
  check(qkv.rows % shape.sequence == 0, "attention_backward got a part of a sequence");
  const int64_t slots = backward_slots(qkv.rows, shape, threads);
  const int64_t blocks = blocks_of(shape.sequence, attention_block);
  const int64_t pairs = qkv.rows / shape.sequence * shape.query_groups;
  const int64_t stride = scratch_floats(shape);

  float* base = reinterpret_cast<float*>(workspace.data());
  FloatArena arena(base + threads * stride);
  const AttentionBackwardOperands op{
      dout, out, qk, qkv, lse, dqkv, shape, QueryGradients::take(shape, slots, arena), slots};
  std::fill_n(op.dqueries.progress, slots * (shape.heads / shape.query_groups) * blocks, 0);

  // Threads take tasks in order: a task waits only for earlier ones, so some thread can always go
  // on.
  parallel_tasks(pairs * blocks, threads, [&](int64_t task, int thread) {
    HWY_DYNAMIC_DISPATCH(backward_keys)
    (op, task / blocks, blocks - 1 - task % blocks, base + thread * stride);
  });
}

}  // namespace plimsoll::cpu
#endif  // HWY_ONCE

// qk (T, >= qk_columns), qkv (T, qkv_columns) f32 or bf16
//   -> out (T, heads * head_dim) of the same format, lse (T, heads) f32
//
// A task is a block of queries of one head; it walks over the blocks of keys up to the diagonal and
// keeps a running maximum and sum (Dao 2023, "FlashAttention-2", algorithm 1). Scores are in base
// 2: the queries carry log2(e) / sqrt(head_dim).
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "plimsoll/runtime/cpu/kernels/attention.cc"
#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

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

// Turns the scores (keys, panel) into exp2(score - maximum) and returns in `rescale` what the sums
// so far must be multiplied with. The first `visible` keys are seen by every query of the panel;
// query i sees i + `visible` of them.
HWY_INLINE void online_softmax(int64_t keys, int64_t visible, float* scores, float* max, float* sum,
                               float* rescale) {
  const DF d;
  const int64_t n = lanes();
  for (int64_t v = 0; v < tile_vectors; ++v) {
    float* column = scores + v * n;
    const VF old_max = hn::Load(d, max + v * n);
    VF new_max = old_max;
    const int64_t clear = std::clamp<int64_t>(visible + v * n, 0, keys);
    for (int64_t k = 0; k < clear; ++k) {
      new_max = hn::Max(new_max, hn::Load(d, column + k * panel_columns()));
    }
    const VF query = hn::Iota(d, static_cast<float>(visible + v * n));
    const VF hidden = hn::Set(d, -std::numeric_limits<float>::infinity());
    for (int64_t k = clear; k < keys; ++k) {
      const auto seen = hn::Lt(hn::Set(d, static_cast<float>(k)), query);
      const VF score = hn::IfThenElse(seen, hn::Load(d, column + k * panel_columns()), hidden);
      hn::Store(score, d, column + k * panel_columns());
      new_max = hn::Max(new_max, score);
    }
    VF total = hn::Zero(d);
    for (int64_t k = 0; k < keys; ++k) {
      float* score = column + k * panel_columns();
      const VF p = exp2(hn::Sub(hn::Load(d, score), new_max));
      total = hn::Add(total, p);
      hn::Store(p, d, score);
    }
    const VF factor = exp2(hn::Sub(old_max, new_max));
    hn::Store(factor, d, rescale + v * n);
    hn::Store(new_max, d, max + v * n);
    hn::Store(hn::MulAdd(hn::Load(d, sum + v * n), factor, total), d, sum + v * n);
  }
}

// Divides by the softmax denominator, then writes `out` and `lse` of one block of queries.
void finish_queries(const AttentionScratch& s, const HeadShape& shape, int64_t row, int64_t count,
                    int64_t head, const View& out, const View& lse) {
  const DF d;
  const Matrix out_t{s.out, tile_stride(attention_query_block)};
  for (int64_t q = 0; q < count; q += lanes()) {
    const VF inverse = hn::Div(hn::Set(d, 1.0f), hn::Load(d, s.sum + q));
    for (int64_t c = 0; c < shape.head_dim; ++c) {
      float* element = out_t.from(c, q).data;
      hn::Store(hn::Mul(inverse, hn::Load(d, element)), d, element);
    }
  }
  const Matrix by_row{s.keys, tile_stride(shape.head_dim)};
  transpose(out_t, shape.head_dim, count, 1.0f, by_row);
  store_tile(by_row, count, shape.head_dim, out, row, head * shape.head_dim);
  for (int64_t q = 0; q < count; ++q) {
    lse.as<float>()[(row + q) * shape.heads + head] =
        s.max[q] * std::numbers::ln2_v<float> + std::log(s.sum[q]);
  }
}

void attend(const View& qk, const View& qkv, const HeadShape& shape, int64_t sequence, int64_t head,
            int64_t query_block, const View& out, const View& lse, float* scratch) {
  FloatArena arena(scratch);
  const AttentionScratch s = AttentionScratch::take(shape, arena);
  const int64_t dim = shape.head_dim;
  const int64_t key_head = head / (shape.heads / shape.query_groups);
  const int64_t key_column = (shape.heads + key_head) * dim;
  const int64_t value_column = (shape.heads + shape.query_groups + key_head) * dim;
  const int64_t row = sequence * shape.sequence;
  const int64_t first_query = query_block * attention_query_block;
  const int64_t queries = std::min(attention_query_block, shape.sequence - first_query);
  const int64_t padded = round_up(queries, panel_columns());

  const Matrix keys{s.keys, tile_stride(dim)};
  const Matrix values{s.values, tile_stride(dim)};
  const Matrix queries_t{s.queries, tile_stride(attention_query_block)};
  const Matrix out_t{s.out, tile_stride(attention_query_block)};
  const double scale = std::numbers::log2e / std::sqrt(static_cast<double>(dim));
  load_tile(qk, row + first_query, queries, padded, head * dim, dim, keys);
  transpose(keys, padded, dim, static_cast<float>(scale), queries_t);
  std::fill_n(s.out, round_up(dim, 4) * out_t.stride, 0.0f);
  std::fill_n(s.max, padded, -std::numeric_limits<float>::infinity());
  std::fill_n(s.sum, padded, 0.0f);

  HWY_ALIGN float rescale[32];
  for (int64_t first_key = 0; first_key < first_query + queries; first_key += attention_block) {
    const int64_t count = std::min(attention_block, first_query + queries - first_key);
    load_tile(qk, row + first_key, count, count, key_column, dim, keys);
    load_tile(qkv, row + first_key, count, count, value_column, dim, values);
    for (int64_t q = 0; q < padded; q += panel_columns()) {
      // Keys after the last query of the panel are never looked at.
      const int64_t visible = first_query + q + 1 - first_key;
      const int64_t used = std::min(count, visible + panel_columns() - 1);
      if (used <= 0) continue;
      const Matrix scores{s.scores, panel_columns()};
      multiply<Into::store>(used, panel_columns(), dim, {keys.data, keys.stride, 1},
                            queries_t.from(0, q), scores);
      online_softmax(used, visible, s.scores, s.max + q, s.sum + q, rescale);
      multiply<Into::scale_add>(dim, panel_columns(), used, {values.data, 1, values.stride}, scores,
                                out_t.from(0, q), rescale);
    }
  }
  finish_queries(s, shape, row + first_query, queries, head, out, lse);
}

}  // namespace plimsoll::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace plimsoll::cpu {

HWY_EXPORT(attend);

size_t attention_workspace(const HeadShape& shape, int threads) {
  FloatArena arena(nullptr);
  AttentionScratch::take(shape, arena);
  return sizeof(float) * static_cast<size_t>(arena.used()) * static_cast<size_t>(threads);
}

void attention(const View& qk, const View& qkv, const HeadShape& shape, const View& out,
               const View& lse, Workspace workspace, int threads) {
  check(workspace.size() >= attention_workspace(shape, threads),
        "the workspace of attention is too small");
  check(qkv.rows % shape.sequence == 0, "attention got a part of a sequence");
  const int64_t blocks = blocks_of(shape.sequence, attention_query_block);
  const int64_t pairs = qkv.rows / shape.sequence * shape.heads;
  const int64_t stride = static_cast<int64_t>(attention_workspace(shape, 1) / sizeof(float));
  float* scratch = reinterpret_cast<float*>(workspace.data());
  // Last blocks first: they see the most keys, and the short ones then fill the gaps at the end.
  parallel_tasks(blocks * pairs, threads, [&](int64_t task, int thread) {
    const int64_t pair = task % pairs;
    HWY_DYNAMIC_DISPATCH(attend)
    (qk, qkv, shape, pair / shape.heads, pair % shape.heads, blocks - 1 - task / pairs, out, lse,
     scratch + thread * stride);
  });
}

}  // namespace plimsoll::cpu
#endif  // HWY_ONCE

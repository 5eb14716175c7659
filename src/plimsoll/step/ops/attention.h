// Causal self-attention with grouped queries, and the normalisation of queries and keys (Qwen3).
//
// A row of `qkv` (T, (heads + 2 groups) * head_dim) holds the query heads, then the key heads, then
// the value heads; query head i reads key and value head i / (heads / groups).
#pragma once

#include "plimsoll/step/ops/rules.h"

namespace plimsoll::step {

struct HeadShape {
  int64_t heads = 0;         // query heads
  int64_t query_groups = 0;  // key and value heads; divides heads
  int64_t head_dim = 0;
  int64_t sequence = 0;  // tokens per sequence; attention never crosses a sequence
  int64_t qk_columns() const { return (heads + query_groups) * head_dim; }
  int64_t qkv_columns() const { return (heads + 2 * query_groups) * head_dim; }
};

// out = softmax(q k^T / sqrt(head_dim), causal) v, block by block, so that no (sequence, sequence)
// matrix is ever held. Dao et al. 2022, "FlashAttention".
// inputs: qk (T, >= qk_columns), qkv (T, qkv_columns), of which q and k are read from qk and v from
//         qkv; the two are the same tensor when queries and keys are not normalised
// outputs: out (T, heads * head_dim), lse (T, heads) f32 = log of the softmax denominator
struct Attention {
  static constexpr const char* kind_name = "attention";
  HeadShape shape;
};
OutputTypes infer(const Attention&, InputTypes in);
void differentiate(const Attention&, const Op&, GradientBuilder&);
Flops flops(const Attention&, InputTypes in);

// inputs: dout, out, qk, qkv, lse   outputs: dqkv (T, qkv_columns)
struct AttentionBackward : NotDifferentiated {
  static constexpr const char* kind_name = "attention_backward";
  HeadShape shape;
};
OutputTypes infer(const AttentionBackward&, InputTypes in);
Flops flops(const AttentionBackward&, InputTypes in);

// RMSNorm of every query and key head over head_dim, one weight for queries and one for keys.
// inputs: qkv, q_weight (1, head_dim) f32, k_weight (1, head_dim) f32
// outputs: qk (T, qk_columns), rstd (T, heads + query_groups) f32
struct QkNorm {
  static constexpr const char* kind_name = "qk_norm";
  HeadShape shape;
  float eps = 1e-6f;
};
OutputTypes infer(const QkNorm&, InputTypes in);
void differentiate(const QkNorm&, const Op&, GradientBuilder&);
Flops flops(const QkNorm&, InputTypes in);

// Turns the gradient of the normalised q and k inside dqkv into that of the raw ones.
// inputs: dqkv, qkv, rstd, q_weight, k_weight, dq_weight f32, dk_weight f32
// outputs: dqkv, dq_weight +=, dk_weight +=, all in place
struct QkNormBackward : NotDifferentiated {
  static constexpr const char* kind_name = "qk_norm_backward";
  HeadShape shape;
};
OutputTypes infer(const QkNormBackward&, InputTypes in);
Flops flops(const QkNormBackward&, InputTypes in);

}  // namespace plimsoll::step

// The op kinds as plain loops in double: what the kernels are tested against. Shapes and formulas
// stand in step/ops/*.h; here a matrix is a row-major vector, and its number of rows follows from
// its size. Results that the kernels add to (+=) are returned as what is added.
#pragma once

#include <cstdint>
#include <vector>

#include "plimsoll/step/ops/activation.h"
#include "plimsoll/step/ops/attention.h"

namespace plimsoll::cpu::reference {

using Reals = std::vector<double>;
using Tokens = std::vector<int32_t>;
using step::Gate;
using step::HeadShape;

Reals embedding(const Tokens& tokens, const Reals& table, const Reals& positions, int64_t sequence,
                int64_t hidden);  // positions may be empty
struct EmbeddingGradients {
  Reals dtable, dpositions;
};
EmbeddingGradients embedding_backward(const Tokens& tokens, const Reals& dx, int64_t sequence,
                                      int64_t vocab, int64_t positions);

struct RmsNormResult {
  Reals y, rstd;
};
RmsNormResult rms_norm(const Reals& x, const Reals& weight, double eps);
struct RmsNormGradients {
  Reals dx, dweight;
};
RmsNormGradients rms_norm_backward(const Reals& dy, const Reals& x, const Reals& weight,
                                   const Reals& rstd);

struct LayerNormResult {
  Reals y, statistics;
};
LayerNormResult layer_norm(const Reals& x, const Reals& weight, const Reals& bias, double eps);
struct LayerNormGradients {
  Reals dx, dweight, dbias;
};
LayerNormGradients layer_norm_backward(const Reals& dy, const Reals& x, const Reals& weight,
                                       const Reals& statistics);

Reals bias_gradient(const Reals& dy, int64_t columns);

Reals rope_table(double theta, int64_t head_dim, int64_t sequence);
// `columns` of x, of which the first heads * head_dim are rotated.
Reals rope(const Reals& x, int64_t columns, const Reals& table, int64_t heads, int64_t head_dim,
           int64_t sequence, bool inverse);

struct QkNormResult {
  Reals qk, rstd;
};
QkNormResult qk_norm(const Reals& qkv, const Reals& q_weight, const Reals& k_weight,
                     const HeadShape&, double eps);
struct QkNormGradients {
  Reals dqkv, dq_weight, dk_weight;
};
QkNormGradients qk_norm_backward(const Reals& dqkv, const Reals& qkv, const Reals& rstd,
                                 const Reals& q_weight, const Reals& k_weight, const HeadShape&);

struct AttentionResult {
  Reals out, lse;
};
AttentionResult attention(const Reals& qk, const Reals& qkv, const HeadShape&);
Reals attention_backward(const Reals& dout, const Reals& qk, const Reals& qkv, const HeadShape&);

Reals glu(Gate gate, const Reals& gate_up, int64_t f);
Reals glu_backward(Gate gate, const Reals& dy, const Reals& gate_up, int64_t f);
// No bias: zeros.
Reals gelu(const Reals& x, const Reals& bias);
struct GeluGradients {
  Reals dx, dbias;
};
GeluGradients gelu_backward(const Reals& dy, const Reals& x, const Reals& bias);

struct CrossEntropyResult {
  Reals losses, dlogits;
};
CrossEntropyResult cross_entropy(const Reals& logits, const Tokens& targets, double scale);

double squared_norm(const Reals& grad);

struct AdamWState {
  Reals weight, m, v;
};
struct AdamWStep {
  double lr, c1, c2, clip_factor, beta1, beta2, eps, weight_decay;
};
AdamWState adam_w(const AdamWState&, const Reals& grad, const AdamWStep&);

}  // namespace plimsoll::cpu::reference

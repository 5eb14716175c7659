// The CPU kernels, one function an op kind, vectorised with Highway and dispatched at run time.
//
// Activations are f32 or bf16 (`View::format`), both of one op alike; weights of norms, biases,
// statistics and every gradient of a weight are f32; arithmetic is f32 except where said.
// Shapes and formulas stand in step/ops/*.h; the same functions in plain double loops stand in
// ../reference/. Every kernel is deterministic: work is cut into pieces that depend on shapes only,
// so results do not change with the number of threads.
//
// Kernels with scratch take `workspace`, of at least `*_workspace(...)` bytes, aligned to 64.
// Their number of threads is `threads`; the others use thread_count().
#pragma once

#include <cstddef>
#include <span>

#include "plimsoll/model/rope.h"
#include "plimsoll/runtime/view.h"
#include "plimsoll/step/ops/activation.h"
#include "plimsoll/step/ops/attention.h"

namespace plimsoll::cpu {

using step::Gate;
using step::HeadShape;
using Workspace = std::span<std::byte>;

// embedding.cc
void embedding(const View& tokens, const View& table, const View& positions, int64_t sequence,
               const View& x);  // positions may be empty
void embedding_backward(const View& tokens, const View& dx, int64_t sequence, const View& dtable,
                        const View& dpositions);  // dpositions may be empty

// rms_norm.cc
void rms_norm(const View& x, const View& weight, float eps, const View& y, const View& rstd);
void add_rms_norm(const View& x, const View& branch, const View& weight, float eps, const View& sum,
                  const View& y, const View& rstd);
size_t rms_norm_backward_workspace(int64_t tokens, int64_t hidden);
void rms_norm_backward(const View& dy, const View& x, const View& weight, const View& rstd,
                       bool accumulate, const View& dx, const View& dweight, Workspace workspace);

// layer_norm.cc
void layer_norm(const View& x, const View& weight, const View& bias, float eps, const View& y,
                const View& statistics);
void add_layer_norm(const View& x, const View& branch, const View& weight, const View& bias,
                    float eps, const View& sum, const View& y, const View& statistics);
size_t layer_norm_backward_workspace(int64_t tokens, int64_t hidden);
void layer_norm_backward(const View& dy, const View& x, const View& weight, const View& statistics,
                         bool accumulate, const View& dx, const View& dweight, const View& dbias,
                         Workspace workspace);

// bias_gradient.cc
size_t bias_gradient_workspace(int64_t tokens, int64_t columns);
void bias_gradient(const View& dy, const View& dbias, Workspace workspace);

// rope.cc
void rope_table(const model::RopeFrequencies& frequencies, const View& table);
void rope(const View& x, const View& table, int64_t heads, int64_t head_dim, int64_t sequence,
          bool inverse);

// qk_norm.cc
void qk_norm(const View& qkv, const View& q_weight, const View& k_weight, const HeadShape& shape,
             float eps, const View& qk, const View& rstd);
size_t qk_norm_backward_workspace(int64_t tokens, const HeadShape& shape);
void qk_norm_backward(const View& dqkv, const View& qkv, const View& rstd, const View& q_weight,
                      const View& k_weight, const HeadShape& shape, const View& dq_weight,
                      const View& dk_weight, Workspace workspace);

// attention.cc, attention_backward.cc
size_t attention_workspace(const HeadShape& shape, int threads);
void attention(const View& qk, const View& qkv, const HeadShape& shape, const View& out,
               const View& lse, Workspace workspace, int threads);
size_t attention_backward_workspace(int64_t tokens, const HeadShape& shape, int threads);
void attention_backward(const View& dout, const View& out, const View& qk, const View& qkv,
                        const View& lse, const HeadShape& shape, const View& dqkv,
                        Workspace workspace, int threads);

// activation.cc
void glu(Gate gate, const View& gate_up, const View& y);
void glu_backward(Gate gate, const View& dy, const View& gate_up, const View& dgate_up);
void gelu(const View& x, const View& bias, const View& y);        // bias may be empty
size_t gelu_backward_workspace(int64_t tokens, int64_t columns);  // with a bias
void gelu_backward(const View& dy_dx, const View& x, const View& bias, const View& dbias,
                   Workspace workspace);  // dy is overwritten by dx; bias and dbias may be empty

// cross_entropy.cc
void cross_entropy(const View& logits, const View& targets, float scale, const View& losses,
                   const View& dlogits);  // dlogits may be logits itself

// optimizer.cc
size_t squared_norm_workspace(int64_t elements);
void squared_norm(const View& grad, const View& squares, int64_t slot, Workspace workspace);
void clip_factor(const View& squares, float max_norm, const View& clip);
struct AdamWSettings {
  float beta1, beta2, eps, weight_decay;
};
void adam_w(const View& weight, const View& grad, const View& m, const View& v,
            const View& settings, const View& clip, const AdamWSettings&,
            const View& copy);  // copy may be empty

// convert.cc
void to_f32(const View& from, const View& to);   // bf16 -> f32
void to_bf16(const View& from, const View& to);  // f32 -> bf16, nearest even

}  // namespace plimsoll::cpu

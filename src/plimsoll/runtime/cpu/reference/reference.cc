#include "plimsoll/runtime/cpu/reference/reference.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace plimsoll::cpu::reference {

Reals embedding(const Tokens& tokens, const Reals& table, const Reals& positions, int64_t sequence,
                int64_t hidden) {
  Reals x;
  for (size_t t = 0; t < tokens.size(); ++t) {
    for (int64_t c = 0; c < hidden; ++c) {
      const int64_t position = static_cast<int64_t>(t) % sequence;
      x.push_back(table[tokens[t] * hidden + c] +
                  (positions.empty() ? 0.0 : positions[position * hidden + c]));
    }
  }
  return x;
}

EmbeddingGradients embedding_backward(const Tokens& tokens, const Reals& dx, int64_t sequence,
                                      int64_t vocab, int64_t positions) {
  const int64_t hidden = std::ssize(dx) / std::ssize(tokens);
  EmbeddingGradients result{Reals(vocab * hidden), Reals(positions * hidden)};
  for (int64_t t = 0; t < std::ssize(tokens); ++t) {
    for (int64_t c = 0; c < hidden; ++c) {
      result.dtable[tokens[t] * hidden + c] += dx[t * hidden + c];
      if (positions > 0) result.dpositions[t % sequence * hidden + c] += dx[t * hidden + c];
    }
  }
  return result;
}

RmsNormResult rms_norm(const Reals& x, const Reals& weight, double eps) {
  const int64_t hidden = std::ssize(weight);
  RmsNormResult result;
  for (int64_t t = 0; t < std::ssize(x) / hidden; ++t) {
    const double* row = &x[t * hidden];
    double squares = 0;
    for (int64_t c = 0; c < hidden; ++c) squares += row[c] * row[c];
    const double rstd = 1 / std::sqrt(squares / hidden + eps);
    for (int64_t c = 0; c < hidden; ++c) result.y.push_back(row[c] * rstd * weight[c]);
    result.rstd.push_back(rstd);
  }
  return result;
}

RmsNormGradients rms_norm_backward(const Reals& dy, const Reals& x, const Reals& weight,
                                   const Reals& rstd) {
  const int64_t hidden = std::ssize(weight);
  RmsNormGradients result{{}, Reals(hidden)};
  for (int64_t t = 0; t < std::ssize(rstd); ++t) {
    const double* d = &dy[t * hidden];
    const double* row = &x[t * hidden];
    double dot = 0;
    for (int64_t c = 0; c < hidden; ++c) dot += d[c] * weight[c] * row[c] * rstd[t];
    for (int64_t c = 0; c < hidden; ++c) {
      const double normal = row[c] * rstd[t];
      result.dx.push_back(rstd[t] * (d[c] * weight[c] - normal * dot / hidden));
      result.dweight[c] += d[c] * normal;
    }
  }
  return result;
}

LayerNormResult layer_norm(const Reals& x, const Reals& weight, const Reals& bias, double eps) {
  const int64_t hidden = std::ssize(weight);
  LayerNormResult result;
  for (int64_t t = 0; t < std::ssize(x) / hidden; ++t) {
    const double* row = &x[t * hidden];
    double sum = 0;
    for (int64_t c = 0; c < hidden; ++c) sum += row[c];
    const double mean = sum / hidden;
    double squares = 0;
    for (int64_t c = 0; c < hidden; ++c) squares += (row[c] - mean) * (row[c] - mean);
    const double rstd = 1 / std::sqrt(squares / hidden + eps);
    for (int64_t c = 0; c < hidden; ++c) {
      result.y.push_back((row[c] - mean) * rstd * weight[c] + bias[c]);
    }
    result.statistics.push_back(mean);
    result.statistics.push_back(rstd);
  }
  return result;
}

LayerNormGradients layer_norm_backward(const Reals& dy, const Reals& x, const Reals& weight,
                                       const Reals& statistics) {
  const int64_t hidden = std::ssize(weight);
  LayerNormGradients result{{}, Reals(hidden), Reals(hidden)};
  for (int64_t t = 0; t < std::ssize(statistics) / 2; ++t) {
    const double* d = &dy[t * hidden];
    const double* row = &x[t * hidden];
    const double mean = statistics[2 * t], rstd = statistics[2 * t + 1];
    double sum_g = 0, sum_gn = 0;
    for (int64_t c = 0; c < hidden; ++c) {
      sum_g += d[c] * weight[c];
      sum_gn += d[c] * weight[c] * (row[c] - mean) * rstd;
    }
    for (int64_t c = 0; c < hidden; ++c) {
      const double normal = (row[c] - mean) * rstd;
      result.dx.push_back(rstd * (d[c] * weight[c] - sum_g / hidden - normal * sum_gn / hidden));
      result.dweight[c] += d[c] * normal;
      result.dbias[c] += d[c];
    }
  }
  return result;
}

Reals bias_gradient(const Reals& dy, int64_t columns) {
  Reals dbias(columns);
  for (int64_t i = 0; i < std::ssize(dy); ++i) dbias[i % columns] += dy[i];
  return dbias;
}

Reals rope_table(double theta, int64_t head_dim, int64_t sequence) {
  Reals table(sequence * head_dim);
  for (int64_t p = 0; p < sequence; ++p) {
    for (int64_t i = 0; i < head_dim / 2; ++i) {
      const double angle = p * std::pow(theta, -2.0 * i / head_dim);
      table[p * head_dim + i] = std::cos(angle);
      table[p * head_dim + head_dim / 2 + i] = std::sin(angle);
    }
  }
  return table;
}

Reals rope(const Reals& x, int64_t columns, const Reals& table, int64_t heads, int64_t head_dim,
           int64_t sequence, bool inverse) {
  Reals y = x;
  const int64_t half = head_dim / 2;
  for (int64_t t = 0; t < std::ssize(x) / columns; ++t) {
    for (int64_t head = 0; head < heads; ++head) {
      for (int64_t i = 0; i < half; ++i) {
        const int64_t at = t * columns + head * head_dim + i;
        const double cosine = table[t % sequence * head_dim + i];
        const double sine = table[t % sequence * head_dim + half + i] * (inverse ? -1 : 1);
        y[at] = x[at] * cosine - x[at + half] * sine;
        y[at + half] = x[at + half] * cosine + x[at] * sine;
      }
    }
  }
  return y;
}

namespace {

// The heads [first, first + heads) of every row, one after another, as rows of head_dim.
Reals heads_of(const Reals& x, int64_t columns, int64_t first, int64_t heads, int64_t head_dim) {
  Reals result;
  for (int64_t t = 0; t < std::ssize(x) / columns; ++t) {
    const auto begin = x.begin() + t * columns + first * head_dim;
    result.insert(result.end(), begin, begin + heads * head_dim);
  }
  return result;
}

// Rows of `from`, `width` wide, over the columns [first, first + width) of every row of x.
void set_heads(Reals& x, int64_t columns, int64_t first, int64_t width, const Reals& from) {
  for (int64_t t = 0; t < std::ssize(x) / columns; ++t) {
    std::copy_n(from.begin() + t * width, width, x.begin() + t * columns + first);
  }
}

}  // namespace

QkNormResult qk_norm(const Reals& qkv, const Reals& q_weight, const Reals& k_weight,
                     const HeadShape& shape, double eps) {
  const int64_t columns = shape.qkv_columns(), heads = shape.heads, groups = shape.query_groups;
  const int64_t tokens = std::ssize(qkv) / columns;
  const auto q = rms_norm(heads_of(qkv, columns, 0, heads, shape.head_dim), q_weight, eps);
  const auto k = rms_norm(heads_of(qkv, columns, heads, groups, shape.head_dim), k_weight, eps);
  QkNormResult result{Reals(tokens * shape.qk_columns()), Reals(tokens * (heads + groups))};
  set_heads(result.qk, shape.qk_columns(), 0, heads * shape.head_dim, q.y);
  set_heads(result.qk, shape.qk_columns(), heads * shape.head_dim, groups * shape.head_dim, k.y);
  set_heads(result.rstd, heads + groups, 0, heads, q.rstd);
  set_heads(result.rstd, heads + groups, heads, groups, k.rstd);
  return result;
}

QkNormGradients qk_norm_backward(const Reals& dqkv, const Reals& qkv, const Reals& rstd,
                                 const Reals& q_weight, const Reals& k_weight,
                                 const HeadShape& shape) {
  const int64_t columns = shape.qkv_columns(), heads = shape.heads, groups = shape.query_groups;
  const auto q = rms_norm_backward(heads_of(dqkv, columns, 0, heads, shape.head_dim),
                                   heads_of(qkv, columns, 0, heads, shape.head_dim), q_weight,
                                   heads_of(rstd, heads + groups, 0, heads, 1));
  const auto k = rms_norm_backward(heads_of(dqkv, columns, heads, groups, shape.head_dim),
                                   heads_of(qkv, columns, heads, groups, shape.head_dim), k_weight,
                                   heads_of(rstd, heads + groups, heads, groups, 1));
  QkNormGradients result{dqkv, q.dweight, k.dweight};
  set_heads(result.dqkv, columns, 0, heads * shape.head_dim, q.dx);
  set_heads(result.dqkv, columns, heads * shape.head_dim, groups * shape.head_dim, k.dx);
  return result;
}

namespace {

// Where query, key and value of one head and token stand.
struct Rows {
  Rows(const Reals& qk, const Reals& qkv, const HeadShape& shape)
      : shape(shape),
        tokens(std::ssize(qkv) / shape.qkv_columns()),
        qk_columns(std::ssize(qk) / tokens) {}
  int64_t group(int64_t head) const { return head / (shape.heads / shape.query_groups); }
  int64_t query(int64_t t, int64_t head, int64_t columns) const {
    return t * columns + head * shape.head_dim;
  }
  int64_t key(int64_t t, int64_t head, int64_t columns) const {
    return t * columns + (shape.heads + group(head)) * shape.head_dim;
  }
  int64_t value(int64_t t, int64_t head, int64_t columns) const {
    return t * columns + (shape.heads + shape.query_groups + group(head)) * shape.head_dim;
  }
  HeadShape shape;
  int64_t tokens;
  int64_t qk_columns;
};

// softmax(q k^T / sqrt(d)) of query t over the keys from `first`, the start of its sequence, to t.
struct Probabilities {
  Reals p;
  double lse;
};
Probabilities probabilities(const Rows& rows, const Reals& qk, int64_t t, int64_t head,
                            int64_t first) {
  Reals scores;
  const double* q = &qk[rows.query(t, head, rows.qk_columns)];
  for (int64_t s = first; s <= t; ++s) {
    const double* k = &qk[rows.key(s, head, rows.qk_columns)];
    double dot = 0;
    for (int64_t i = 0; i < rows.shape.head_dim; ++i) dot += q[i] * k[i];
    scores.push_back(dot / std::sqrt(rows.shape.head_dim));
  }
  const double max = *std::max_element(scores.begin(), scores.end());
  double sum = 0;
  for (const double score : scores) sum += std::exp(score - max);
  const double lse = max + std::log(sum);
  for (double& score : scores) score = std::exp(score - lse);
  return {scores, lse};
}

}  // namespace

AttentionResult attention(const Reals& qk, const Reals& qkv, const HeadShape& shape) {
  const Rows rows(qk, qkv, shape);
  const int64_t d = shape.head_dim;
  AttentionResult result;
  for (int64_t t = 0; t < rows.tokens; ++t) {
    const int64_t first = t - t % shape.sequence;
    for (int64_t head = 0; head < shape.heads; ++head) {
      const auto [p, lse] = probabilities(rows, qk, t, head, first);
      for (int64_t i = 0; i < d; ++i) {
        double sum = 0;
        for (int64_t s = first; s <= t; ++s) {
          sum += p[s - first] * qkv[rows.value(s, head, shape.qkv_columns()) + i];
        }
        result.out.push_back(sum);
      }
      result.lse.push_back(lse);
    }
  }
  return result;
}

Reals attention_backward(const Reals& dout, const Reals& qk, const Reals& qkv,
                         const HeadShape& shape) {
  const Rows rows(qk, qkv, shape);
  const int64_t d = shape.head_dim, columns = shape.qkv_columns();
  Reals dqkv(qkv.size());
  for (int64_t t = 0; t < rows.tokens; ++t) {
    const int64_t first = t - t % shape.sequence;
    for (int64_t head = 0; head < shape.heads; ++head) {
      const Reals p = probabilities(rows, qk, t, head, first).p;
      const double* dy = &dout[rows.query(t, head, shape.heads * d)];
      Reals dp(p.size());
      double mean = 0;  // sum over s of p dp
      for (int64_t s = first; s <= t; ++s) {
        const double* v = &qkv[rows.value(s, head, columns)];
        double* dv = &dqkv[rows.value(s, head, columns)];
        for (int64_t i = 0; i < d; ++i) {
          dp[s - first] += dy[i] * v[i];
          dv[i] += dy[i] * p[s - first];
        }
        mean += p[s - first] * dp[s - first];
      }
      const double* q = &qk[rows.query(t, head, rows.qk_columns)];
      double* dq = &dqkv[rows.query(t, head, columns)];
      for (int64_t s = first; s <= t; ++s) {
        const double dscore = p[s - first] * (dp[s - first] - mean) / std::sqrt(d);
        const double* k = &qk[rows.key(s, head, rows.qk_columns)];
        double* dk = &dqkv[rows.key(s, head, columns)];
        for (int64_t i = 0; i < d; ++i) {
          dq[i] += dscore * k[i];
          dk[i] += dscore * q[i];
        }
      }
    }
  }
  return dqkv;
}

namespace {

// A function and its slope at the same argument.
struct ValueAndSlope {
  double value, slope;
};

ValueAndSlope silu(double z) {
  const double s = 1 / (1 + std::exp(-z));
  return {z * s, s * (1 + z * (1 - s))};
}

ValueAndSlope gelu_tanh(double u) {
  const double sqrt_2_over_pi = std::sqrt(2 / std::numbers::pi);
  const double z = sqrt_2_over_pi * (u + 0.044715 * u * u * u);
  const double dz = sqrt_2_over_pi * (1 + 3 * 0.044715 * u * u);
  const double tanh = std::tanh(z);
  return {u / (1 + std::exp(-2 * z)),  // (1 + tanh z) / 2 without cancellation
          0.5 * (1 + tanh) + 0.5 * u * (1 - tanh * tanh) * dz};
}

ValueAndSlope apply(Gate gate, double z) {
  switch (gate) {
    case Gate::silu:
      return silu(z);
    case Gate::gelu:
      return gelu_tanh(z);
  }
  return {};
}

}  // namespace

Reals glu(Gate gate, const Reals& gate_up, int64_t f) {
  Reals y;
  for (int64_t t = 0; t < std::ssize(gate_up) / (2 * f); ++t) {
    for (int64_t c = 0; c < f; ++c) {
      const int64_t at = t * 2 * f + c;
      y.push_back(apply(gate, gate_up[at]).value * gate_up[at + f]);
    }
  }
  return y;
}

Reals glu_backward(Gate gate, const Reals& dy, const Reals& gate_up, int64_t f) {
  Reals dgate_up(gate_up.size());
  for (int64_t t = 0; t < std::ssize(gate_up) / (2 * f); ++t) {
    for (int64_t c = 0; c < f; ++c) {
      const int64_t at = t * 2 * f + c;
      const ValueAndSlope function = apply(gate, gate_up[at]);
      dgate_up[at] = dy[t * f + c] * gate_up[at + f] * function.slope;
      dgate_up[at + f] = dy[t * f + c] * function.value;
    }
  }
  return dgate_up;
}

Reals gelu(const Reals& x, const Reals& bias) {
  Reals y;
  for (size_t i = 0; i < x.size(); ++i) y.push_back(gelu_tanh(x[i] + bias[i % bias.size()]).value);
  return y;
}

GeluGradients gelu_backward(const Reals& dy, const Reals& x, const Reals& bias) {
  GeluGradients result{{}, Reals(bias.size())};
  for (size_t i = 0; i < x.size(); ++i) {
    result.dx.push_back(dy[i] * gelu_tanh(x[i] + bias[i % bias.size()]).slope);
    result.dbias[i % bias.size()] += result.dx.back();
  }
  return result;
}

CrossEntropyResult cross_entropy(const Reals& logits, const Tokens& targets, double scale) {
  const int64_t vocab = std::ssize(logits) / std::ssize(targets);
  CrossEntropyResult result{Reals(targets.size()), Reals(logits.size())};
  for (int64_t t = 0; t < std::ssize(targets); ++t) {
    if (targets[t] < 0) continue;
    const double* row = &logits[t * vocab];
    const double max = *std::max_element(row, row + vocab);
    double sum = 0;
    for (int64_t c = 0; c < vocab; ++c) sum += std::exp(row[c] - max);
    result.losses[t] = std::log(sum) + max - row[targets[t]];
    for (int64_t c = 0; c < vocab; ++c) {
      result.dlogits[t * vocab + c] = scale * (std::exp(row[c] - max) / sum - (c == targets[t]));
    }
  }
  return result;
}

double squared_norm(const Reals& grad) {
  double sum = 0;
  for (const double g : grad) sum += g * g;
  return sum;
}

AdamWState adam_w(const AdamWState& before, const Reals& grad, const AdamWStep& step) {
  AdamWState after = before;
  for (size_t i = 0; i < grad.size(); ++i) {
    const double g = grad[i] * step.clip_factor;
    double& m = after.m[i];
    double& v = after.v[i];
    after.weight[i] -= step.lr * step.weight_decay * after.weight[i];
    m = step.beta1 * m + (1 - step.beta1) * g;
    v = step.beta2 * v + (1 - step.beta2) * g * g;
    after.weight[i] -= step.lr * (m / step.c1) / (std::sqrt(v / step.c2) + step.eps);
  }
  return after;
}

}  // namespace plimsoll::cpu::reference

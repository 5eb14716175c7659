// The forward of a model, op by op: shared by every program builder.
#pragma once

#include <unordered_map>
#include <vector>

#include "plimsoll/step/builder.h"

namespace plimsoll::step {

class ModelBuilder {
 public:
  ModelBuilder(Program& program, const model::ModelConfig& model, Precision precision);

  // Adds the weights the ops read, in inventory order. Under bf16 these are bf16 for matrices.
  std::vector<ParameterTensors> add_weights();

  // Adds the constant tables and the ops that fill them.
  void add_setup(int64_t sequence);

  // Appends the layers and the final norm; returns the normalised hidden states (T, hidden).
  TensorId add_forward(TensorId tokens, int64_t sequence);

  TensorId weight(const std::string& name) const;
  TensorId head_weight() const;
  Format activation_format() const { return format_; }

 private:
  struct Residual {  // the stream and what the next norm adds to it (-1: nothing yet)
    TensorId stream = -1;
    TensorId branch = -1;
  };
  TensorId add_norm(const std::string& name, Residual& residual);
  TensorId add_linear(const std::string& name, TensorId x, bool bias);
  TensorId add_attention(const std::string& prefix, TensorId x, int64_t sequence);
  TensorId add_mlp(const std::string& prefix, TensorId x);
  TensorId add_activation(const std::string& name, IsFfnActivation auto kind,
                          std::vector<Operand> inputs);
  TensorId activation(std::string name, Shape shape, Format format);
  void emit(OpKind kind, std::vector<Operand> inputs, std::vector<Operand> outputs);

  Program& program_;
  const model::ModelConfig& model_;
  Format format_;
  std::unordered_map<std::string, TensorId> weights_;
  TensorId rope_table_ = -1;
  int layer_ = -1;
  int64_t tokens_ = 0;
};

}  // namespace plimsoll::step

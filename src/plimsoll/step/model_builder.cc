#include "plimsoll/step/model_builder.h"

namespace plimsoll::step {

ModelBuilder::ModelBuilder(Program& program, const model::ModelConfig& model, Precision precision)
    : program_(program),
      model_(model),
      format_(precision == Precision::bf16 ? Format::bf16 : Format::f32) {}

std::vector<ParameterTensors> ModelBuilder::add_weights() {
  std::vector<ParameterTensors> all;
  for (model::Parameter& parameter : model::inventory(model_)) {
    const TensorId id = add_tensor(program_, {.name = parameter.name,
                                              .type = {{parameter.rows, parameter.columns},
                                                       parameter.matrix ? format_ : Format::f32},
                                              .role = Role::param,
                                              .layer = parameter.layer,
                                              .persistent = true});
    weights_[parameter.name] = id;
    all.push_back({.parameter = std::move(parameter), .compute = id});
  }
  return all;
}

void ModelBuilder::add_setup(int64_t sequence) {
  if (model_.positions != model::Positions::rope) return;
  rope_table_ = add_tensor(program_, {.name = "rope.table",
                                      .type = {{sequence, model_.head_dim}, Format::f32},
                                      .role = Role::workspace,
                                      .persistent = true});
  append(program_,
         {.kind = RopeTable{.rope = model_.rope, .head_dim = model_.head_dim, .sequence = sequence},
          .outputs = {{rope_table_}},
          .phase = Phase::setup});
}

TensorId ModelBuilder::weight(const std::string& name) const {
  const auto found = weights_.find(name);
  check(found != weights_.end(), fmt::format("the model has no weight {}", name));
  return found->second;
}

TensorId ModelBuilder::head_weight() const {
  return weight(model_.tied_head ? "embedding.tokens" : "head.weight");
}

TensorId ModelBuilder::activation(std::string name, Shape shape, Format format) {
  return add_tensor(program_, {.name = std::move(name),
                               .type = {shape, format},
                               .role = Role::activation,
                               .layer = layer_});
}

void ModelBuilder::emit(OpKind kind, std::vector<Operand> inputs, std::vector<Operand> outputs) {
  append(program_, {.kind = std::move(kind),
                    .inputs = std::move(inputs),
                    .outputs = std::move(outputs),
                    .phase = Phase::forward,
                    .layer = layer_});
}

// Adds the pending branch to the stream and normalises the sum.
TensorId ModelBuilder::add_norm(const std::string& name, Residual& residual) {
  const bool layer_norm = model_.norm == model::Norm::layer;
  const Shape shape = {tokens_, model_.hidden};
  const float eps = static_cast<float>(model_.norm_eps);

  std::vector<Operand> inputs = {{residual.stream}};
  std::vector<Operand> outputs;
  if (residual.branch >= 0) {
    inputs.push_back({residual.branch});
    residual = {.stream = activation(name + ".residual", shape, format_)};
    outputs.push_back({residual.stream});
  }
  const bool fused = !outputs.empty();
  const TensorId y = activation(name + ".out", shape, format_);
  outputs.push_back({y});
  outputs.push_back({activation(name + ".statistics", {tokens_, layer_norm ? 2 : 1}, Format::f32)});
  inputs.push_back({weight(name + ".weight")});
  if (layer_norm) inputs.push_back({weight(name + ".bias")});

  if (layer_norm && fused) emit(AddLayerNorm{.eps = eps}, inputs, outputs);
  if (layer_norm && !fused) emit(LayerNorm{.eps = eps}, inputs, outputs);
  if (!layer_norm && fused) emit(AddRmsNorm{.eps = eps}, inputs, outputs);
  if (!layer_norm && !fused) emit(RmsNorm{.eps = eps}, inputs, outputs);
  return y;
}

TensorId ModelBuilder::add_linear(const std::string& name, TensorId x, bool bias) {
  const TensorId w = weight(name + ".weight");
  const TensorId y =
      activation(name + ".out", {tokens_, program_.tensor(w).type.shape.rows}, format_);
  std::vector<Operand> inputs = {{x}, {w}};
  if (bias) inputs.push_back({weight(name + ".bias")});
  emit(MatMul{.product = Product::forward, .has_bias = bias, .output = format_}, inputs, {{y}});
  return y;
}

TensorId ModelBuilder::add_attention(const std::string& prefix, TensorId x, int64_t sequence) {
  const HeadShape shape = {.heads = model_.heads,
                           .query_groups = model_.query_groups,
                           .head_dim = model_.head_dim,
                           .sequence = sequence};
  const TensorId qkv = add_linear(prefix + ".qkv", x, *model_.qkv_bias);
  TensorId qk = qkv;
  if (model_.qk_norm) {
    qk = activation(prefix + ".qk_norm.out", {tokens_, shape.qk_columns()}, format_);
    const TensorId rstd = activation(prefix + ".qk_norm.statistics",
                                     {tokens_, shape.heads + shape.query_groups}, Format::f32);
    emit(QkNorm{.shape = shape, .eps = static_cast<float>(model_.norm_eps)},
         {{qkv}, {weight(prefix + ".q_norm.weight")}, {weight(prefix + ".k_norm.weight")}},
         {{qk}, {rstd}});
  }
  if (model_.positions == model::Positions::rope) {
    emit(Rope{.heads = shape.heads + shape.query_groups,
              .head_dim = shape.head_dim,
              .sequence = sequence},
         {{qk}, {rope_table_}}, {{qk}});
  }
  const TensorId out =
      activation(prefix + ".out", {tokens_, shape.heads * shape.head_dim}, format_);
  const TensorId lse = activation(prefix + ".lse", {tokens_, shape.heads}, Format::f32);
  emit(Attention{.shape = shape}, {{qk}, {qkv}}, {{out}, {lse}});
  return add_linear(prefix + ".output", out, *model_.output_bias);
}

TensorId ModelBuilder::add_activation(const std::string& name, IsFfnActivation auto kind,
                                      std::vector<Operand> inputs) {
  const TensorId y = activation(name + ".out", {tokens_, model_.ffn_hidden}, format_);
  emit(kind, std::move(inputs), {{y}});
  return y;
}

TensorId ModelBuilder::add_mlp(const std::string& prefix, TensorId x) {
  const bool bias = *model_.mlp_bias;
  const bool gated = model::is_gated(*model_.activation);
  // GELU adds the bias of its product.
  const TensorId inner =
      gated ? add_linear(prefix + ".gate_up", x, bias) : add_linear(prefix + ".up", x, false);
  TensorId act = -1;
  switch (*model_.activation) {
    case model::Activation::swiglu:
      act = add_activation(prefix + ".swiglu", Glu{.gate = Gate::silu}, {{inner}});
      break;
    case model::Activation::geglu:
      act = add_activation(prefix + ".geglu", Glu{.gate = Gate::gelu}, {{inner}});
      break;
    case model::Activation::gelu: {
      std::vector<Operand> inputs = {{inner}};
      if (bias) inputs.push_back({weight(prefix + ".up.bias")});
      act = add_activation(prefix + ".gelu", Gelu{.has_bias = bias}, std::move(inputs));
      break;
    }
  }
  return add_linear(prefix + ".down", act, bias);
}

TensorId ModelBuilder::add_forward(TensorId tokens, int64_t sequence) {
  tokens_ = program_.tensor(tokens).type.shape.rows;
  layer_ = -1;
  Residual residual = {.stream = activation("embedding.out", {tokens_, model_.hidden}, format_)};
  std::vector<Operand> inputs = {{tokens}, {weight("embedding.tokens")}};
  if (model_.positions == model::Positions::learned) {
    inputs.push_back({weight("embedding.positions")});
  }
  emit(Embedding{.sequence = sequence}, inputs, {{residual.stream}});

  for (layer_ = 0; layer_ < model_.layers; ++layer_) {
    const std::string prefix = fmt::format("layers.{}", layer_);
    const TensorId n1 = add_norm(prefix + ".attention_norm", residual);
    residual.branch = add_attention(prefix + ".attention", n1, sequence);
    const TensorId n2 = add_norm(prefix + ".mlp_norm", residual);
    residual.branch = add_mlp(prefix + ".mlp", n2);
  }
  layer_ = -1;
  return add_norm("final_norm", residual);
}

}  // namespace plimsoll::step

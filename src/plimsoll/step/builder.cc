#include "plimsoll/step/builder.h"

#include <algorithm>

#include "plimsoll/step/gradient.h"
#include "plimsoll/step/model_builder.h"

namespace plimsoll::step {

namespace {

TensorId add_input(Program& program, std::string name, TensorType type) {
  return add_tensor(
      program, {.name = std::move(name), .type = type, .role = Role::input, .persistent = true});
}

// Masters, gradients and moments of every parameter, and the map from weight to gradient.
std::unordered_map<TensorId, TensorId> add_training_state(Program& program,
                                                          std::vector<ParameterTensors>& parameters,
                                                          Moments moments) {
  std::unordered_map<TensorId, TensorId> gradients;
  for (ParameterTensors& p : parameters) {
    const auto add = [&](const char* suffix, Role role, Format format = Format::f32) {
      return add_tensor(program, {.name = p.parameter.name + suffix,
                                  .type = {{p.parameter.rows, p.parameter.columns}, format},
                                  .role = role,
                                  .layer = p.parameter.layer,
                                  .persistent = true});
    };
    const bool is_master = program.tensor(p.compute).type.format == Format::f32;
    p.master = is_master ? p.compute : add(".master", Role::optimizer);
    p.gradient = add(".gradient", Role::grad);
    const Format moment = moments == Moments::bf16 ? Format::bf16 : Format::f32;
    p.m = add(".m", Role::optimizer, moment);
    p.v = add(".v", Role::optimizer, moment);
    gradients[p.compute] = p.gradient;
  }
  return gradients;
}

// Head and loss, chunk of tokens after chunk: logits, loss and their gradient, then the head's two
// gradients, so that only one chunk of logits exists at a time. Returns the gradient of `hidden`.
TensorId add_head(Program& program, const ModelBuilder& builder, TrainingStep& step,
                  TensorId hidden, TensorId head_gradient, const StepConfig& config) {
  const Shape shape = program.tensor(hidden).type.shape;
  const Format format = builder.activation_format();
  const TensorId weight = builder.head_weight();
  const int64_t vocab = program.tensor(weight).type.shape.rows;
  const int64_t chunk = std::min(config.head_chunk, shape.rows);
  const auto scratch = [&](const char* name, Format scratch_format) {
    return add_tensor(
        program, {.name = name, .type = {{chunk, vocab}, scratch_format}, .role = Role::workspace});
  };
  const TensorId logits = scratch("head.logits", Format::f32);
  const TensorId dlogits = format == Format::f32 ? logits : scratch("head.logits.grad", format);
  const TensorId dhidden = add_tensor(
      program, {.name = "final_norm.out.grad", .type = {shape, format}, .role = Role::activation});
  const auto emit = [&](OpKind kind, Phase phase, std::vector<Operand> inputs,
                        std::vector<Operand> outputs) {
    append(program, {.kind = std::move(kind),
                     .inputs = std::move(inputs),
                     .outputs = std::move(outputs),
                     .phase = phase});
  };

  for (int64_t begin = 0; begin < shape.rows; begin += chunk) {
    const int64_t count = std::min(chunk, shape.rows - begin);
    const auto part = [&](TensorId id, int64_t from) { return rows(program, {id}, from, count); };
    const Operand x = part(hidden, begin), z = part(logits, 0), dz = part(dlogits, 0);
    emit(MatMul{.product = Product::forward, .output = Format::f32}, Phase::forward, {x, {weight}},
         {z});
    emit(CrossEntropy{.gradient = format}, Phase::forward,
         {z, part(step.targets, begin), {step.loss_scale}}, {part(step.losses, begin), dz});
    emit(MatMul{.product = Product::weight_gradient, .accumulate = true}, Phase::backward,
         {dz, x, {head_gradient}}, {{head_gradient}});
    emit(MatMul{.product = Product::input_gradient, .output = format}, Phase::backward,
         {dz, {weight}}, {part(dhidden, begin)});
  }
  emit(SumLosses{}, Phase::forward, {{step.losses}, {step.targets}, {step.loss}}, {{step.loss}});
  return dhidden;
}

void add_optimizer(Program& program, TrainingStep& step, const OptimizerConfig& config) {
  const int64_t count = static_cast<int64_t>(step.parameters.size());
  step.squares = add_tensor(program, {.name = "optimizer.squares",
                                      .type = {{1, count}, Format::f32},
                                      .role = Role::optimizer,
                                      .persistent = true});
  step.clip = add_tensor(program, {.name = "optimizer.clip",
                                   .type = {{1, 3}, Format::f32},
                                   .role = Role::optimizer,
                                   .persistent = true});
  const auto emit = [&](OpKind kind, int layer, std::vector<Operand> inputs,
                        std::vector<Operand> outputs) {
    append(program, {.kind = std::move(kind),
                     .inputs = std::move(inputs),
                     .outputs = std::move(outputs),
                     .phase = Phase::optimizer,
                     .layer = layer});
  };
  for (int64_t i = 0; i < count; ++i) {
    const ParameterTensors& p = step.parameters[static_cast<size_t>(i)];
    emit(SquaredNorm{.slot = i}, p.parameter.layer, {{p.gradient}, {step.squares}},
         {{step.squares}});
  }
  emit(ClipFactor{.max_norm = static_cast<float>(config.clip_norm)}, -1, {{step.squares}},
       {{step.clip}});
  for (const ParameterTensors& p : step.parameters) {
    const Format copy = program.tensor(p.compute).type.format;
    const double decay = p.parameter.matrix ? config.weight_decay : 0;
    std::vector<Operand> outputs = {{p.master}, {p.gradient}, {p.m}, {p.v}};
    if (p.compute != p.master) outputs.push_back({p.compute});
    emit(AdamW{.beta1 = static_cast<float>(config.beta1),
               .beta2 = static_cast<float>(config.beta2),
               .eps = static_cast<float>(config.eps),
               .weight_decay = static_cast<float>(decay),
               .copy = copy},
         p.parameter.layer, {{p.master}, {p.gradient}, {p.m}, {p.v}, {step.settings}, {step.clip}},
         outputs);
  }
}

}  // namespace

TrainingStep build_training_step(const model::ModelConfig& model, const StepConfig& config,
                                 const OptimizerConfig& optimizer) {
  TrainingStep step;
  Program& program = step.program;
  ModelBuilder builder(program, model, config.precision);
  step.parameters = builder.add_weights();
  const auto weight_gradients = add_training_state(program, step.parameters, optimizer.moments);

  const int64_t tokens = config.micro_batch * config.sequence_length;
  step.tokens = add_input(program, "tokens", {{tokens, 1}, Format::i32});
  step.targets = add_input(program, "targets", {{tokens, 1}, Format::i32});
  step.loss_scale = add_input(program, "loss_scale", {{1, 1}, Format::f32});
  step.loss = add_input(program, "loss", {{1, 4}, Format::i32});
  step.settings = add_input(program, "settings", {{1, 3}, Format::f32});
  step.losses = add_tensor(program, {.name = "losses",
                                     .type = {{tokens, 1}, Format::f32},
                                     .role = Role::input,
                                     .persistent = true});

  builder.add_setup(config.sequence_length);
  for (const ParameterTensors& p : step.parameters) {
    if (p.compute == p.master) continue;
    append(program, {.kind = Cast{.to = program.tensor(p.compute).type.format},
                     .inputs = {{p.master}},
                     .outputs = {{p.compute}},
                     .phase = Phase::setup,
                     .layer = p.parameter.layer});
  }
  const int forward_begin = static_cast<int>(program.ops.size());
  const TensorId hidden = builder.add_forward(step.tokens, config.sequence_length);
  const int forward_end = static_cast<int>(program.ops.size());

  const TensorId head_gradient = weight_gradients.at(builder.head_weight());
  const TensorId dhidden = add_head(program, builder, step, hidden, head_gradient, config);
  GradientBuilder gradients(program, weight_gradients);
  gradients.set_gradient(hidden, dhidden);
  differentiate_range(gradients, forward_begin, forward_end);
  mark_saved(program);

  add_optimizer(program, step, optimizer);
  return step;
}

Inference build_inference(const model::ModelConfig& model, Precision precision, int64_t tokens) {
  Inference inference;
  Program& program = inference.program;
  ModelBuilder builder(program, model, precision);
  inference.parameters = builder.add_weights();
  inference.tokens = add_input(program, "tokens", {{tokens, 1}, Format::i32});
  inference.logits = add_input(program, "logits", {{1, model.vocab}, Format::f32});
  builder.add_setup(tokens);
  inference.begin = static_cast<int>(program.ops.size());
  const TensorId hidden = builder.add_forward(inference.tokens, tokens);
  inference.body = static_cast<int>(program.ops.size());
  for (int64_t i = 0; i < tokens; ++i) {
    append(program, {.kind = MatMul{.product = Product::forward, .output = Format::f32},
                     .inputs = {rows(program, {hidden}, i, 1), {builder.head_weight()}},
                     .outputs = {{inference.logits}},
                     .phase = Phase::forward});
  }
  return inference;
}

}  // namespace plimsoll::step

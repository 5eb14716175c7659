// Builds the program of a training step, or of an inference, from a model and a configuration.
#pragma once

#include <vector>

#include "plimsoll/model/inventory.h"
#include "plimsoll/step/program.h"
#include "plimsoll/step/step_config.h"

namespace plimsoll::step {

// The tensors that belong to one parameter of the model.
struct ParameterTensors {
  model::Parameter parameter;
  TensorId compute = -1;  // what the ops read: bf16 for matrices under bf16, else the master itself
  TensorId master = -1;   // f32 weights the optimizer updates
  TensorId gradient = -1;  // f32, accumulated over the micro-steps
  TensorId m = -1;         // first moment, f32 or bf16
  TensorId v = -1;         // second moment, f32 or bf16
};

// Which operand of a linear layer's products a quantiser makes.
enum class OperandClass : uint8_t { input, weight, gradient };

// One quantised matrix of one linear layer (passes/precision.h).
struct QuantizerInfo {
  std::string name;  // "layers.3.mlp.down.gradient"
  OperandClass operand = OperandClass::input;
  int layer = -1;
  TensorId state = -1;  // delayed scaling: (1, history + 1) f32
};

// What a recipe adds to a step: quantiser i counts in row i of `statistics`.
struct Quantizers {
  TensorId control = -1;     // (1,8) i32, QuantizerControl
  TensorId statistics = -1;  // (quantisers,8) f32, QuantizerStatistics each
  std::vector<QuantizerInfo> list;
};

// A program and the tensors through which the outside talks to it.
//
// Phases: setup once the masters hold their values; forward and backward for every micro-step;
// optimizer once a step. Running only the forward ops evaluates: it leaves `losses` and touches
// neither gradients nor weights.
struct TrainingStep {
  Program program;
  std::vector<ParameterTensors> parameters;
  TensorId tokens = -1;      // (T,1) i32, T = micro_batch * sequence_length
  TensorId targets = -1;     // (T,1) i32; -1: counts for nothing
  TensorId losses = -1;      // (T,1) f32, nats a token
  TensorId loss_scale = -1;  // (1,1) f32: 1 / counted targets of the global batch
  TensorId loss = -1;        // (1,4) i32, LossTotal: over the micro-steps, until it is cleared
  TensorId settings = -1;  // (1,3) f32: learning rate, 1 - beta1^n, 1 - beta2^n of the n-th update
  TensorId squares = -1;   // (1, parameters) f32: squared norm of each gradient
  TensorId clip = -1;      // (1,3) f32: global gradient norm, factor, 1 if the weights changed
  TensorId skip = -1;      // (1,1) i32 with a recipe: 1 when it kept the weights from changing
  Quantizers quantizers;   // empty without a recipe
};

// `model` and `config` are resolved: no field is left at "0: derived".
TrainingStep build_training_step(const model::ModelConfig& model, const StepConfig& config,
                                 const OptimizerConfig& optimizer);

// A forward over one sequence. Ops [begin, body) compute the hidden states of all `tokens`; op
// body + i computes the logits of token i, so that a caller runs the body and the one it needs.
// The ops before `begin` are setup.
struct Inference {
  Program program;
  std::vector<ParameterTensors> parameters;  // compute only
  TensorId tokens = -1;                      // (tokens,1) i32
  TensorId logits = -1;                      // (1, vocab) f32
  int begin = 0;
  int body = 0;
};
Inference build_inference(const model::ModelConfig& model, Precision precision, int64_t tokens);

}  // namespace plimsoll::step

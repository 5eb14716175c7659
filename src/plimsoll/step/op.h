// One operation of a step program.
#pragma once

#include <string_view>
#include <variant>
#include <vector>

#include "plimsoll/step/ops/activation.h"
#include "plimsoll/step/ops/attention.h"
#include "plimsoll/step/ops/cast.h"
#include "plimsoll/step/ops/embedding.h"
#include "plimsoll/step/ops/linear.h"
#include "plimsoll/step/ops/loss.h"
#include "plimsoll/step/ops/norm.h"
#include "plimsoll/step/ops/optimizer.h"
#include "plimsoll/step/ops/quantize.h"
#include "plimsoll/step/ops/rope.h"

namespace plimsoll::step {

// Readers `std::visit` it. A new kind is a header with its rules and an entry here; the compiler
// then lists every place that must know it.
using OpKind =
    std::variant<RopeTable, Cast, Embedding, RmsNorm, AddRmsNorm, LayerNorm, AddLayerNorm, MatMul,
                 Rope, QkNorm, Attention, Glu, Gelu, CrossEntropy, EmbeddingBackward,
                 RmsNormBackward, LayerNormBackward, BiasGradient, QkNormBackward,
                 AttentionBackward, GluBackward, GeluBackward, SumLosses, SquaredNorm, StepGuard,
                 ClipFactor, AdamW, Quantize, QuantizedMatMul, UpdateScaling>;

enum class Phase : uint8_t {
  setup,      // once, before the first step
  forward,    // of every micro-step, and of every evaluation
  recompute,  // of every micro-step: forward ops run again for the backward
  backward,   // of every micro-step
  optimizer,  // once a step
};
std::string_view name(Phase phase);

// Ops of one stream run in program order, those of different streams side by side unless `after`
// orders them. All streams meet before the first op and after the last op of a run.
enum class Stream : uint8_t { compute, communication, copy };
constexpr int stream_count = 3;

// The micro-steps of a step in which an op runs. An evaluation is a step of one micro-step.
enum class When : uint8_t { every, first, last };

struct Op {
  OpKind kind;
  std::vector<Operand> inputs;
  std::vector<Operand> outputs;
  Phase phase = Phase::forward;
  int layer = -1;  // -1: outside the layers
  Stream stream = Stream::compute;
  When when = When::every;
  std::vector<int> after;   // ops before this one, on other streams, that it waits for
  TensorId workspace = -1;  // scratch of this op, -1 when it needs none
};

std::string_view kind_name(const Op& op);

}  // namespace plimsoll::step

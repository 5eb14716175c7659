// What shapes a training step, beside the model.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace plimsoll::step {

enum class Precision : uint8_t {
  fp32,  // everything in f32
  bf16,  // weights and activations in bf16; master weights, gradients, moments, statistics in f32
};
constexpr std::string_view name(Precision precision) {
  switch (precision) {
    case Precision::fp32:
      return "fp32";
    case Precision::bf16:
      return "bf16";
  }
  return "";
}

struct StepConfig {
  Precision precision = Precision::bf16;
  int64_t micro_batch = 1;      // sequences a micro-step
  int64_t global_batch = 0;     // sequences an optimizer step; 0: micro_batch
  int64_t sequence_length = 0;  // tokens a sequence; 0: 256
  int64_t head_chunk = 0;       // tokens whose logits exist at once; 0: chosen from the vocabulary
  int64_t ffn_chunk = 0;        // tokens whose inner FFN activations exist at once; 0: all
  // What of the forward is kept for the backward; docs/checkpointing.md lists the policies.
  std::string checkpointing = "none";
};

// In what AdamW's moments are stored.
enum class Moments : uint8_t { fp32, bf16 };
constexpr std::string_view name(Moments moments) {
  switch (moments) {
    case Moments::fp32:
      return "fp32";
    case Moments::bf16:
      return "bf16";
  }
  return "";
}

// Whether a moment with this beta can fall when it is rounded to bf16 every step: its 8 bits keep a
// value that changes by less than half of 2^-7, so it would stand still for ever, however small the
// gradients become.
constexpr bool decays_in_bf16(double beta) { return 1 - beta >= 0x1p-8; }

struct OptimizerConfig {
  double beta1 = 0.9;
  double beta2 = 0.95;
  double eps = 1e-8;
  double weight_decay = 0.1;  // on matrices only
  Moments moments = Moments::fp32;
  double clip_norm = 1.0;  // bound on the global gradient norm; 0: none
};

}  // namespace plimsoll::step

// What of a training step is kept on disk: the master weights and the optimizer's moments.
#pragma once

#include <vector>

#include "plimsoll/checkpoint/checkpoint.h"
#include "plimsoll/runtime/executor.h"
#include "plimsoll/step/builder.h"

namespace plimsoll::train {

inline constexpr const char* weights_file = "model.safetensors";
inline constexpr const char* optimizer_file = "optimizer.safetensors";
inline constexpr const char* quantizers_file = "quantizers.safetensors";

// What `extra` of a checkpoint says of the tokens: {"tokenizer": "bytes"} when the corpus is text,
// so that every token has a text; "ids" when other tools made them.
inline constexpr const char* tokenizer_key = "tokenizer";
inline constexpr const char* byte_tokenizer = "bytes";
inline constexpr const char* token_ids = "ids";

// The shards of a checkpoint: `model.safetensors` holds every parameter in f32 under its own name,
// `optimizer.safetensors` the moments as NAME.m and NAME.v. With a recipe, `quantizers.safetensors`
// holds the histories and scales of delayed scaling and the loss scale. They read and write the
// executor's tensors, which must outlive them.
std::vector<checkpoint::Shard> checkpoint_shards(const step::TrainingStep& step,
                                                 const runtime::Executor& executor);

// The size of a snapshot of those shards, known before there is an arena.
Bytes snapshot_bytes(const step::TrainingStep& step);

// A tensor of a program as a checkpoint names it; without an executor it has a size only.
checkpoint::NamedTensor named_tensor(const step::Program& program,
                                     const runtime::Executor* executor, std::string name,
                                     std::vector<int64_t> shape, step::TensorId id);

// The shape of a parameter in a checkpoint: vectors have one dimension.
std::vector<int64_t> shape_of(const model::Parameter& parameter);

// Moves every master weight to the next float above it.
void perturb_weights(const step::TrainingStep& step, const runtime::Executor& executor);

// Fills the master weights with their initial values.
void initialize_weights(const step::TrainingStep& step, const runtime::Executor& executor,
                        int64_t seed);

}  // namespace plimsoll::train

#include "plimsoll/train/training_state.h"

#include <functional>

#include "plimsoll/checkpoint/writer.h"
#include "plimsoll/train/initialize.h"

namespace plimsoll::train {

namespace {

using Address = std::function<std::span<std::byte>(step::TensorId)>;

std::vector<checkpoint::Shard> shards_at(const step::TrainingStep& step, const Address& address) {
  checkpoint::Shard weights = {.file = weights_file};
  checkpoint::Shard optimizer = {.file = optimizer_file};
  for (const step::ParameterTensors& p : step.parameters) {
    const model::Parameter& parameter = p.parameter;
    std::vector<int64_t> shape = {parameter.columns};
    if (parameter.matrix) shape.insert(shape.begin(), parameter.rows);
    const auto tensor = [&](const char* suffix, step::TensorId id) {
      return checkpoint::NamedTensor{parameter.name + suffix, shape,
                                     step.program.tensor(id).type.format, address(id)};
    };
    weights.tensors.push_back(tensor("", p.master));
    optimizer.tensors.push_back(tensor(".m", p.m));
    optimizer.tensors.push_back(tensor(".v", p.v));
  }
  std::vector<checkpoint::Shard> shards = {std::move(weights), std::move(optimizer)};
  if (step.quantizers.control < 0) return shards;
  // Weights are quantised again at the start; only what earlier steps decided is kept.
  checkpoint::Shard quantizers = {.file = quantizers_file};
  quantizers.tensors.push_back({"control", {8}, Format::i32, address(step.quantizers.control)});
  for (const step::QuantizerInfo& info : step.quantizers.list) {
    if (info.state < 0) continue;
    quantizers.tensors.push_back({info.name + ".amax_history",
                                  {step.program.tensor(info.state).type.shape.columns},
                                  Format::f32,
                                  address(info.state)});
  }
  shards.push_back(std::move(quantizers));
  return shards;
}

}  // namespace

std::vector<checkpoint::Shard> checkpoint_shards(const step::TrainingStep& step,
                                                 const runtime::Executor& executor) {
  return shards_at(step, [&](step::TensorId id) { return executor.view(id).bytes(); });
}

Bytes snapshot_bytes(const step::TrainingStep& step) {
  return checkpoint::snapshot_bytes(shards_at(step, [&](step::TensorId id) {
    // Only the length is read.
    return std::span<std::byte>(static_cast<std::byte*>(nullptr),
                                static_cast<size_t>(bytes(step.program.tensor(id)).count));
  }));
}

void initialize_weights(const step::TrainingStep& step, const runtime::Executor& executor,
                        int64_t seed) {
  for (const step::ParameterTensors& p : step.parameters) {
    initialize(p.parameter, seed, executor.view(p.master).span<float>());
  }
}

}  // namespace plimsoll::train

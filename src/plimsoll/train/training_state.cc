#include "plimsoll/train/training_state.h"

#include <algorithm>
#include <cmath>

#include "plimsoll/checkpoint/writer.h"
#include "plimsoll/train/initialize.h"

namespace plimsoll::train {

namespace {

// Elements of a weight that are on the host at once.
constexpr int64_t staged_elements = 1 << 18;

// Calls `change` with the elements of each piece of a f32 tensor and the index of the first.
template <class Change>
void for_pieces(int64_t elements, std::vector<float>& staging, const Change& change) {
  for (int64_t begin = 0; begin < elements; begin += staged_elements) {
    staging.resize(static_cast<size_t>(std::min(staged_elements, elements - begin)));
    change(std::span(staging), begin);
  }
}

std::vector<checkpoint::Shard> shards_of(const step::TrainingStep& step,
                                         const runtime::Executor* executor) {
  checkpoint::Shard weights = {.file = weights_file};
  checkpoint::Shard optimizer = {.file = optimizer_file};
  for (const step::ParameterTensors& p : step.parameters) {
    const model::Parameter& parameter = p.parameter;
    const auto tensor = [&](const char* suffix, step::TensorId id) {
      return named_tensor(step.program, executor, parameter.name + suffix, shape_of(parameter), id);
    };
    weights.tensors.push_back(tensor("", p.master));
    optimizer.tensors.push_back(tensor(".m", p.m));
    optimizer.tensors.push_back(tensor(".v", p.v));
  }
  std::vector<checkpoint::Shard> shards = {std::move(weights), std::move(optimizer)};
  if (step.quantizers.control < 0) return shards;
  // Weights are quantised again at the start; only what earlier steps decided is kept.
  checkpoint::Shard quantizers = {.file = quantizers_file};
  quantizers.tensors.push_back(
      named_tensor(step.program, executor, "control", {8}, step.quantizers.control));
  for (const step::QuantizerInfo& info : step.quantizers.list) {
    if (info.state < 0) continue;
    quantizers.tensors.push_back(named_tensor(step.program, executor, info.name + ".amax_history",
                                              {step.program.tensor(info.state).type.shape.columns},
                                              info.state));
  }
  shards.push_back(std::move(quantizers));
  return shards;
}

}  // namespace

std::vector<int64_t> shape_of(const model::Parameter& parameter) {
  if (!parameter.matrix) return {parameter.columns};
  return {parameter.rows, parameter.columns};
}

checkpoint::NamedTensor named_tensor(const step::Program& program,
                                     const runtime::Executor* executor, std::string name,
                                     std::vector<int64_t> shape, step::TensorId id) {
  checkpoint::NamedTensor tensor = {.name = std::move(name),
                                    .shape = std::move(shape),
                                    .format = program.tensor(id).type.format,
                                    .size = bytes(program.tensor(id))};
  if (!executor) return tensor;
  tensor.read = [=](int64_t offset, std::span<std::byte> to) {
    executor->read_bytes(id, to, offset);
  };
  tensor.write = [=](int64_t offset, std::span<const std::byte> from) {
    executor->write_bytes(id, from, offset);
  };
  return tensor;
}

std::vector<checkpoint::Shard> checkpoint_shards(const step::TrainingStep& step,
                                                 const runtime::Executor& executor) {
  return shards_of(step, &executor);
}

Bytes snapshot_bytes(const step::TrainingStep& step) {
  return checkpoint::snapshot_bytes(shards_of(step, nullptr));
}

void initialize_weights(const step::TrainingStep& step, const runtime::Executor& executor,
                        int64_t seed) {
  std::vector<float> staging;
  for (const step::ParameterTensors& p : step.parameters) {
    for_pieces(p.parameter.rows * p.parameter.columns, staging,
               [&](std::span<float> weights, int64_t begin) {
                 initialize(p.parameter, seed, weights, begin);
                 executor.write(p.master, weights, begin);
               });
  }
}

void perturb_weights(const step::TrainingStep& step, const runtime::Executor& executor) {
  std::vector<float> staging;
  for (const step::ParameterTensors& p : step.parameters) {
    for_pieces(p.parameter.rows * p.parameter.columns, staging,
               [&](std::span<float> weights, int64_t begin) {
                 executor.read(p.master, weights, begin);
                 for (float& weight : weights) weight = std::nextafter(weight, INFINITY);
                 executor.write(p.master, weights, begin);
               });
  }
}

}  // namespace plimsoll::train

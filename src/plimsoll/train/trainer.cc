#include "plimsoll/train/trainer.h"

#include <cmath>

#include "plimsoll/train/schedule.h"
#include "plimsoll/train/training_state.h"

namespace plimsoll::train {

using step::Phase;

Trainer::Trainer(const PlannedRun& run, const runtime::Backend& backend,
                 const data::Dataset& dataset)
    : run_(run),
      dataset_(dataset),
      arena_(run.memory.arena),
      executor_(run.step.program, run.memory, backend, arena_),
      loader_(dataset, static_cast<uint64_t>(run.config.train.seed)),
      validation_(dataset, run.config.train.eval_batches, run.config.step.micro_batch) {}

void Trainer::start_fresh() {
  initialize_weights(run_.step, executor_, run_.config.train.seed);
  start_from(0, 0);
}

void Trainer::start_from(int64_t step, int64_t samples) {
  executor_.run(Phase::setup);
  loader_ = data::Loader(dataset_, static_cast<uint64_t>(run_.config.train.seed), samples);
  steps_done_ = step;
}

double Trainer::sum_of_losses() const {
  double sum = 0;
  for (const float loss : executor_.view(run_.step.losses).span<float>()) sum += loss;
  return sum;
}

StepResult Trainer::step() {
  const Config& config = run_.config;
  const std::span<int32_t> tokens = executor_.view(run_.step.tokens).span<int32_t>();
  const std::span<int32_t> targets = executor_.view(run_.step.targets).span<int32_t>();
  StepResult result;
  const int64_t micro_steps = config.step.global_batch / config.step.micro_batch;
  for (int64_t i = 0; i < micro_steps; ++i) {
    loader_.next(tokens, targets);
    executor_.run_micro_step();
    result.loss += sum_of_losses();
  }
  result.loss /= static_cast<double>(config.step.global_batch * config.step.sequence_length);

  const int64_t number = steps_done_ + 1;
  result.lr = learning_rate(config.schedule, number, config.train.steps);
  const std::span<float> settings = executor_.view(run_.step.settings).span<float>();
  settings[0] = static_cast<float>(result.lr);
  settings[1] = static_cast<float>(1 - std::pow(config.optimizer.beta1, number));
  settings[2] = static_cast<float>(1 - std::pow(config.optimizer.beta2, number));
  executor_.run(Phase::optimizer);
  result.grad_norm = executor_.view(run_.step.clip).span<float>()[0];
  steps_done_ = number;
  return result;
}

double Trainer::evaluate() {
  const std::span<int32_t> tokens = executor_.view(run_.step.tokens).span<int32_t>();
  const std::span<int32_t> targets = executor_.view(run_.step.targets).span<int32_t>();
  double sum = 0;
  for (int64_t i = 0; i < validation_.size(); ++i) {
    validation_.read(i, tokens, targets);
    executor_.run(Phase::forward);
    sum += sum_of_losses();
  }
  return sum / static_cast<double>(validation_.size() * static_cast<int64_t>(tokens.size()));
}

std::string Trainer::first_non_finite_gradient() const {
  const std::span<float> squares = executor_.view(run_.step.squares).span<float>();
  for (size_t i = 0; i < squares.size(); ++i) {
    if (!std::isfinite(squares[i])) return run_.step.parameters[i].parameter.name;
  }
  return {};
}

}  // namespace plimsoll::train

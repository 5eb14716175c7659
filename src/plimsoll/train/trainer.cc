#include "plimsoll/train/trainer.h"

#include <algorithm>
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
      validation_(dataset, run.config.train.eval_sequences, run.config.step.micro_batch) {}

void Trainer::start_fresh() {
  if (QuantizerControl* quantizers = control()) {
    quantizers->loss_scale_log2 = static_cast<int32_t>(run_.config.recipe.loss_scale_log2);
  }
  initialize_weights(run_.step, executor_, run_.config.train.seed);
  if (run_.config.train.perturb_weights) {
    for (const step::ParameterTensors& p : run_.step.parameters) {
      for (float& w : executor_.view(p.master).span<float>()) w = std::nextafter(w, INFINITY);
    }
  }
  start_from(0, 0);
}

void Trainer::start_from(int64_t step, int64_t samples) {
  steps_done_ = step;
  begin_quantizers();
  executor_.run(Phase::setup);
  loader_ = data::Loader(dataset_, static_cast<uint64_t>(run_.config.train.seed), samples);
}

double Trainer::sum_of_losses() const {
  double sum = 0;
  for (const float loss : executor_.view(run_.step.losses).span<float>()) sum += loss;
  return sum;
}

StepResult Trainer::step() {
  const config::Config& config = run_.config;
  const std::span<int32_t> tokens = executor_.view(run_.step.tokens).span<int32_t>();
  const std::span<int32_t> targets = executor_.view(run_.step.targets).span<int32_t>();
  StepResult result;
  begin_quantizers();
  const int64_t micro_steps = config.step.global_batch / config.step.micro_batch;
  for (int64_t i = 0; i < micro_steps; ++i) {
    loader_.next(tokens, targets);
    if (QuantizerControl* quantizers = control()) {
      quantizers->micro_step = static_cast<uint32_t>(i);
    }
    executor_.run_micro_step({.first = i == 0, .last = i + 1 == micro_steps});
    result.loss += sum_of_losses();
  }
  result.loss /= static_cast<double>(config.step.global_batch * config.step.sequence_length);

  const int64_t number = steps_done_ + 1;
  result.lr = learning_rate(config.schedule, number, config.train.steps);
  const std::span<float> settings = executor_.view(run_.step.settings).span<float>();
  settings[0] = static_cast<float>(result.lr);
  settings[1] = static_cast<float>(1 - std::pow(config.optimizer.beta1, number));
  settings[2] = static_cast<float>(1 - std::pow(config.optimizer.beta2, number));
  steps_done_ = number;
  if (!first_non_finite_quantizer().empty()) return result;  // refused by the caller
  if (config.recipe.name == step::Recipe::fp16) {
    result.skipped = gradients_overflowed();
    count_overflow(result.skipped);
  }
  if (result.skipped) {
    for (const step::ParameterTensors& p : run_.step.parameters) {
      std::ranges::fill(executor_.view(p.gradient).span<float>(), 0.0f);
    }
    return result;
  }
  executor_.run(Phase::optimizer);
  result.grad_norm = executor_.view(run_.step.clip).span<float>()[0];
  return result;
}

double Trainer::evaluate() {
  const std::span<int32_t> tokens = executor_.view(run_.step.tokens).span<int32_t>();
  const std::span<int32_t> targets = executor_.view(run_.step.targets).span<int32_t>();
  const int64_t length = run_.config.step.sequence_length;
  // Sequence by sequence, whatever the micro-batch: the sum is always the same one.
  double sum = 0;
  if (QuantizerControl* quantizers = control()) quantizers->observe = quantizers->collect = 0;
  for (int64_t i = 0; i < validation_.size(); ++i) {
    const int64_t rows = validation_.read(i, tokens, targets);
    executor_.run(Phase::forward);
    const std::span<float> losses = executor_.view(run_.step.losses).span<float>();
    for (int64_t row = 0; row < rows; ++row) {
      double sequence = 0;
      for (int64_t t = 0; t < length; ++t) {
        sequence += losses[static_cast<size_t>(row * length + t)];
      }
      sum += sequence;
    }
  }
  return sum / static_cast<double>(validation_.sequences() * length);
}

QuantizerControl* Trainer::control() const {
  const step::TensorId id = run_.step.quantizers.control;
  return id < 0 ? nullptr : executor_.view(id).as<QuantizerControl>();
}

// Random bits depend on the seed, the step and the micro-step, so a resumed run draws the same.
void Trainer::begin_quantizers() {
  QuantizerControl* const quantizers = control();
  if (!quantizers) return;
  const auto seed = static_cast<uint64_t>(run_.config.train.seed);
  quantizers->seed_low = static_cast<uint32_t>(seed);
  quantizers->seed_high = static_cast<uint32_t>(seed >> 32);
  quantizers->step = static_cast<uint32_t>(steps_done_ + 1);
  quantizers->micro_step = 0;
  quantizers->observe = 1;
  const int64_t every = run_.config.recipe.statistics_every;
  quantizers->collect = every > 0 && (steps_done_ + 1) % every == 0;
  std::ranges::fill(executor_.view(run_.step.quantizers.statistics).span<float>(), 0.0f);
}

std::span<const QuantizerStatistics> Trainer::statistics() const {
  if (!control()) return {};
  const View view = executor_.view(run_.step.quantizers.statistics);
  return {view.as<const QuantizerStatistics>(), run_.step.quantizers.list.size()};
}

bool Trainer::statistics_complete() const {
  const int64_t every = run_.config.recipe.statistics_every;
  return control() && every > 0 && steps_done_ % every == 0;
}

double Trainer::loss_scale() const {
  const bool fp16 = run_.config.recipe.name == step::Recipe::fp16;
  return fp16 ? std::ldexp(1.0, control()->loss_scale_log2) : 1;
}

std::string Trainer::first_non_finite_quantizer() const {
  const std::span<const QuantizerStatistics> all = statistics();
  const bool fp16 = run_.config.recipe.name == step::Recipe::fp16;
  for (size_t i = 0; i < all.size(); ++i) {
    const step::QuantizerInfo& info = run_.step.quantizers.list[i];
    if (fp16 && info.operand == step::OperandClass::gradient) continue;
    if (all[i].not_finite > 0) return info.name;
  }
  return {};
}

bool Trainer::gradients_overflowed() const {
  for (const QuantizerStatistics& of : statistics()) {
    if (of.not_finite > 0) return true;
  }
  return false;
}

// Micikevicius et al. 2018, "Mixed Precision Training": halve on overflow, double after a while.
void Trainer::count_overflow(bool overflowed) {
  QuantizerControl& quantizers = *control();
  if (overflowed) {
    quantizers.loss_scale_log2 = std::max(quantizers.loss_scale_log2 - 1, 0);
    quantizers.steps_without_overflow = 0;
    return;
  }
  if (++quantizers.steps_without_overflow < run_.config.recipe.loss_scale_growth) return;
  quantizers.loss_scale_log2 = std::min(quantizers.loss_scale_log2 + 1, 126);
  quantizers.steps_without_overflow = 0;
}

std::string Trainer::first_non_finite_gradient() const {
  const std::span<float> squares = executor_.view(run_.step.squares).span<float>();
  for (size_t i = 0; i < squares.size(); ++i) {
    if (!std::isfinite(squares[i])) return run_.step.parameters[i].parameter.name;
  }
  return {};
}

}  // namespace plimsoll::train

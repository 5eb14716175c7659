#include "plimsoll/train/trainer.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "plimsoll/train/schedule.h"
#include "plimsoll/train/training_state.h"

namespace plimsoll::train {

using step::Phase;

Trainer::Trainer(const PlannedRun& run, const runtime::Backend& backend,
                 const data::Dataset& dataset)
    : run_(run),
      dataset_(dataset),
      executor_(run.step.program, run.memory, backend),
      loader_(dataset, static_cast<uint64_t>(run.config.train.seed)),
      validation_(dataset, run.config.train.eval_sequences, run.config.step.micro_batch),
      statistics_(run.step.quantizers.list.size()) {
  const step::StepConfig& step = run.config.step;
  tokens_.resize(static_cast<size_t>(step.global_batch * step.sequence_length));
  targets_.resize(tokens_.size());
}

void Trainer::start_fresh() {
  control_ = {.loss_scale_log2 = static_cast<int32_t>(run_.config.recipe.loss_scale_log2)};
  write_control();
  initialize_weights(run_.step, executor_, run_.config.train.seed);
  if (run_.config.train.perturb_weights) perturb_weights(run_.step, executor_);
  start_from(0, 0);
}

void Trainer::start_from(int64_t step, int64_t samples, std::optional<int64_t> updates) {
  steps_done_ = step;
  updates_done_ = updates.value_or(step);
  overflows_at_scale_one_ = 0;
  if (quantizes()) executor_.read(run_.step.quantizers.control, std::span(&control_, 1));
  begin_quantizers();
  executor_.run(Phase::setup);
  loader_ = data::Loader(dataset_, static_cast<uint64_t>(run_.config.train.seed), samples);
}

// The part of the global batch on the host that is micro-step `micro_step`.
Trainer::Batch Trainer::batch(int64_t micro_step) {
  const step::StepConfig& step = run_.config.step;
  const auto size = static_cast<size_t>(step.micro_batch * step.sequence_length);
  const size_t begin = static_cast<size_t>(micro_step) * size;
  return {std::span(tokens_).subspan(begin, size), std::span(targets_).subspan(begin, size)};
}

void Trainer::write(const Batch& batch) {
  executor_.write(run_.step.tokens, batch.tokens);
  executor_.write(run_.step.targets, batch.targets);
}

// Over everything that ran since the total was cleared.
double Trainer::mean_loss() const {
  step::LossTotal total;
  executor_.read_bytes(run_.step.loss, std::as_writable_bytes(std::span(&total, 1)));
  return total.targets == 0 ? 0 : total.sum / static_cast<double>(total.targets);
}

StepResult Trainer::step() {
  const config::Config& config = run_.config;
  const int64_t micro_steps = config.step.global_batch / config.step.micro_batch;
  // All of the batch first: its counted targets scale every gradient.
  for (int64_t i = 0; i < micro_steps; ++i) {
    const Batch part = batch(i);
    loader_.next(part.tokens, part.targets);
  }
  const auto counted = std::ranges::count_if(targets_, [](int32_t target) { return target >= 0; });
  const int64_t number = steps_done_ + 1;
  StepResult result;
  result.lr = learning_rate(config.schedule, number, config.train.steps);
  const auto update = static_cast<double>(updates_done_ + 1);
  executor_.write(run_.step.settings,
                  std::array{static_cast<float>(result.lr),
                             static_cast<float>(1 - std::pow(config.optimizer.beta1, update)),
                             static_cast<float>(1 - std::pow(config.optimizer.beta2, update))});
  executor_.write(run_.step.loss_scale,
                  std::array{counted == 0 ? 0.0f : 1.0f / static_cast<float>(counted)});
  executor_.fill(run_.step.loss, std::byte{0});
  begin_quantizers();

  for (int64_t i = 0; i < micro_steps; ++i) {
    write(batch(i));
    control_.micro_step = static_cast<uint32_t>(i);
    write_control();
    executor_.run_micro_step({.first = i == 0, .last = i + 1 == micro_steps});
  }
  executor_.run(Phase::optimizer);

  // From here on the host looks at what came of it.
  result.loss = mean_loss();
  steps_done_ = number;
  std::array<float, 3> clip;
  executor_.read(run_.step.clip, clip);
  const bool applied = clip[2] != 0;
  updates_done_ += applied;
  if (applied) result.grad_norm = clip[0];
  if (!quantizes()) return result;
  executor_.read_bytes(run_.step.quantizers.statistics,
                       std::as_writable_bytes(std::span(statistics_)));
  if (!fp16()) return result;
  const bool at_scale_one = control_.loss_scale_log2 == 0;
  executor_.read(run_.step.quantizers.control, std::span(&control_, 1));
  result.skipped = !applied && first_non_finite_quantizer().empty();
  overflows_at_scale_one_ = result.skipped && at_scale_one ? overflows_at_scale_one_ + 1 : 0;
  return result;
}

double Trainer::evaluate() {
  control_.observe = control_.collect = 0;
  write_control();
  executor_.fill(run_.step.loss, std::byte{0});
  for (int64_t i = 0; i < validation_.size(); ++i) {
    const Batch part = batch(0);
    const int64_t rows = validation_.read(i, part.tokens, part.targets);
    // Rows that repeat a sequence do not count: the sum is the same for any micro-batch.
    std::ranges::fill(
        part.targets.subspan(static_cast<size_t>(rows * run_.config.step.sequence_length)), -1);
    write(part);
    executor_.run(Phase::forward);
  }
  return validation_.size() == 0 ? std::nan("") : mean_loss();
}

void Trainer::write_control() {
  if (quantizes()) executor_.write(run_.step.quantizers.control, std::span(&control_, 1));
}

// Random bits depend on the seed, the step and the micro-step, so a resumed run draws the same.
void Trainer::begin_quantizers() {
  if (!quantizes()) return;
  const auto seed = static_cast<uint64_t>(run_.config.train.seed);
  const int64_t every = run_.config.recipe.statistics_every;
  control_.seed_low = static_cast<uint32_t>(seed);
  control_.seed_high = static_cast<uint32_t>(seed >> 32);
  control_.step = static_cast<uint32_t>(steps_done_ + 1);
  control_.micro_step = 0;
  control_.observe = 1;
  control_.collect = every > 0 && (steps_done_ + 1) % every == 0;
  write_control();
  executor_.fill(run_.step.quantizers.statistics, std::byte{0});
}

bool Trainer::statistics_complete() const {
  const int64_t every = run_.config.recipe.statistics_every;
  return quantizes() && every > 0 && steps_done_ % every == 0;
}

double Trainer::loss_scale() const {
  return fp16() ? std::ldexp(1.0, control_.loss_scale_log2) : 1;
}

std::string Trainer::first_non_finite_quantizer() const {
  for (size_t i = 0; i < statistics_.size(); ++i) {
    const step::QuantizerInfo& info = run_.step.quantizers.list[i];
    if (fp16() && info.operand == step::OperandClass::gradient) continue;
    if (statistics_[i].not_finite > 0) return info.name;
  }
  return {};
}

std::string Trainer::first_non_finite_gradient() const {
  std::vector<float> squares(run_.step.parameters.size());
  executor_.read(run_.step.squares, squares);
  for (size_t i = 0; i < squares.size(); ++i) {
    if (!std::isfinite(squares[i])) return run_.step.parameters[i].parameter.name;
  }
  return {};
}

}  // namespace plimsoll::train

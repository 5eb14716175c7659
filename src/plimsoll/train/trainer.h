// A planned run in motion: the arena, the program at its addresses, and the step loop's parts.
//
// trainer.h knows numbers, not files or terminals; run.h puts it into a run directory.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "plimsoll/data/loader.h"
#include "plimsoll/runtime/executor.h"
#include "plimsoll/train/planned_run.h"

namespace plimsoll::train {

struct StepResult {
  double loss = 0;  // mean over the global batch, nats a token
  double lr = 0;
  double grad_norm = 0;  // of the global gradient, before clipping
  bool skipped = false;  // fp16: a gradient overflowed, the weights were left as they are
};

class Trainer {
 public:
  // Allocates the arena of the plan and prepares every op. Nothing above 64 KiB is allocated after
  // this, until the object is gone. `run`, `backend` and `dataset` must outlive the trainer.
  Trainer(const PlannedRun& run, const runtime::Backend& backend, const data::Dataset& dataset);

  // Either draws the initial weights, or takes the loaded ones as they are; then makes everything
  // that follows from them. `updates` counts the steps that were not skipped; without it, all.
  void start_fresh();
  void start_from(int64_t step, int64_t samples, std::optional<int64_t> updates = {});

  // One optimizer step over a global batch.
  StepResult step();

  // Mean loss of train.eval_sequences held-out sequences, nats a token: the same ones, summed in the
  // same order, for any micro-batch. NaN when nothing is held out. Leaves weights and gradients as
  // they are.
  double evaluate();

  int64_t steps_done() const { return steps_done_; }
  int64_t updates_done() const { return updates_done_; }  // steps that were not skipped
  int64_t samples_consumed() const { return loader_.position(); }
  const runtime::Executor& executor() const { return executor_; }
  Bytes allocated() const { return executor_.allocated(); }

  // The first quantiser that met Inf or NaN in the last step; empty when none did. That step has
  // changed no weight. Overflow of fp16 gradients is not among it: it skips the step.
  std::string first_non_finite_quantizer() const;

  // fp16: how many steps in a row, up to the last, were skipped at a loss scale of 1: more will not
  // help.
  int64_t overflows_at_scale_one() const { return overflows_at_scale_one_; }

  // What the quantisers counted in the last step, in the order of TrainingStep::quantizers;
  // complete in the steps that recipe.statistics_every asks for. Empty without a recipe.
  std::span<const QuantizerStatistics> statistics() const { return statistics_; }
  bool statistics_complete() const;

  // fp16: the loss scale; 1 with other recipes.
  double loss_scale() const;

  // Of the last step: the first parameter whose gradient is not finite; empty when all are.
  std::string first_non_finite_gradient() const;

 private:
  struct Batch {
    std::span<int32_t> tokens, targets;
  };
  Batch batch(int64_t micro_step);
  void write(const Batch& batch);
  double mean_loss() const;
  bool quantizes() const { return run_.step.quantizers.control >= 0; }
  bool fp16() const { return run_.config.recipe.name == step::Recipe::fp16; }
  void begin_quantizers();
  void write_control();

  const PlannedRun& run_;
  const data::Dataset& dataset_;
  runtime::Executor executor_;
  data::Loader loader_;
  data::ValidationBatches validation_;
  std::vector<int32_t> tokens_, targets_;        // of a global batch
  QuantizerControl control_;                     // as the device has it
  std::vector<QuantizerStatistics> statistics_;  // of the last step
  int64_t steps_done_ = 0;
  int64_t updates_done_ = 0;
  int64_t overflows_at_scale_one_ = 0;
};

}  // namespace plimsoll::train

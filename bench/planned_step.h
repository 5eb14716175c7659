// A planned step in its arena, with weights, tokens and settings of its own, ready to be timed.
#pragma once

#include <array>
#include <chrono>
#include <functional>
#include <vector>

#include "plimsoll/runtime/executor.h"
#include "plimsoll/train/planned_run.h"
#include "plimsoll/train/training_state.h"

namespace plimsoll::bench {

inline double seconds_of(const std::function<void()>& action) {
  const auto begin = std::chrono::steady_clock::now();
  action();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// Stays where it is made: the executor refers to the plan.
class PlannedStep {
 public:
  PlannedStep(const config::Config& config, const runtime::Backend& backend)
      : run_(train::plan_run(config, backend)), executor_(run_.step.program, run_.memory, backend) {
    train::initialize_weights(run_.step, executor_, 1);
    if (const step::TensorId control = run_.step.quantizers.control; control >= 0) {
      const QuantizerControl start = {.step = 1, .loss_scale_log2 = 16};
      executor_.write(control, std::span(&start, 1));
    }
    executor_.run(step::Phase::setup);
    uint32_t next = 1;
    for (const step::TensorId id : {run_.step.tokens, run_.step.targets}) {
      std::vector<int32_t> tokens(
          static_cast<size_t>(run_.step.program.tensor(id).type.shape.elements()));
      for (int32_t& token : tokens) {
        next = next * 1664525u + 1013904223u;
        token = static_cast<int32_t>((next >> 8) % static_cast<uint32_t>(config.model.vocab));
      }
      executor_.write(id, tokens);
    }
    const auto batch = config.step.global_batch * config.step.sequence_length;
    executor_.write(run_.step.settings, std::array{1e-4f, 0.1f, 0.05f});
    executor_.write(run_.step.loss_scale, std::array{1.0f / static_cast<float>(batch)});
  }
  PlannedStep(const PlannedStep&) = delete;
  PlannedStep& operator=(const PlannedStep&) = delete;

  const train::PlannedRun& run() const { return run_; }
  const runtime::Executor& executor() const { return executor_; }

  // Seconds of one micro-step and the optimizer.
  double timed_step() const {
    return seconds_of([&] {
      executor_.run_micro_step();
      executor_.run(step::Phase::optimizer);
    });
  }

 private:
  const train::PlannedRun run_;
  const runtime::Executor executor_;
};

}  // namespace plimsoll::bench

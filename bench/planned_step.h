// A planned step in its arena, with weights, tokens and settings of its own, ready to be timed.
#pragma once

#include <chrono>
#include <functional>

#include "plimsoll/runtime/executor.h"
#include "plimsoll/train/initialize.h"
#include "plimsoll/train/planned_run.h"

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
      : run_(train::plan_run(config, backend)),
        arena_(run_.memory.arena),
        executor_(run_.step.program, run_.memory, backend, arena_) {
    for (const step::ParameterTensors& p : run_.step.parameters) {
      train::initialize(p.parameter, 1, executor_.view(p.master).span<float>());
    }
    if (const step::TensorId control = run_.step.quantizers.control; control >= 0) {
      *executor_.view(control).as<QuantizerControl>() = {.step = 1, .loss_scale_log2 = 16};
    }
    executor_.run(step::Phase::setup);
    uint32_t next = 1;
    for (const step::TensorId id : {run_.step.tokens, run_.step.targets}) {
      for (int32_t& token : executor_.view(id).span<int32_t>()) {
        next = next * 1664525u + 1013904223u;
        token = static_cast<int32_t>((next >> 8) % static_cast<uint32_t>(config.model.vocab));
      }
    }
    const std::span<float> settings = executor_.view(run_.step.settings).span<float>();
    settings[0] = 1e-4f, settings[1] = 0.1f, settings[2] = 0.05f;
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
  const runtime::Arena arena_;
  const runtime::Executor executor_;
};

}  // namespace plimsoll::bench

// A config planned and ready to run in a test, passes and all, with tokens and weights of its own.
#pragma once

#include <array>
#include <memory>

#include "plimsoll/runtime/executor.h"
#include "plimsoll/train/planned_run.h"
#include "plimsoll/train/training_state.h"
#include "tests/runtime/host_values.h"
#include "tests/runtime/test_backend.h"

namespace plimsoll::train {

struct PlannedUnderTest {
  std::unique_ptr<runtime::Backend> backend;
  PlannedRun run;
  std::unique_ptr<runtime::Executor> executor;

  explicit PlannedUnderTest(const config::Config& config, int threads = 2,
                            std::optional<cpu::Bf16Kernel> bf16 = {})
      : backend(runtime::make_test_backend(threads, bf16)),
        run(plan_run(resolve(config), *backend)),
        executor(std::make_unique<runtime::Executor>(run.step.program, run.memory, *backend)) {
    initialize_weights(run.step, *executor, 3);
    const step::StepConfig& step = run.config.step;
    executor->write(
        run.step.loss_scale,
        std::array{1.0f / static_cast<float>(step.global_batch * step.sequence_length)});
    if (quantizes()) control()[0] = {.seed_low = 7, .step = 1};
  }

  runtime::HostValues<float> floats(step::TensorId id) const {
    return {*executor, run.step.program, id};
  }
  bool quantizes() const { return run.step.quantizers.control >= 0; }
  runtime::HostValues<QuantizerControl> control() const {
    return {*executor, run.step.program, run.step.quantizers.control};
  }
  runtime::HostValues<QuantizerStatistics> statistics() const {
    return {*executor, run.step.program, run.step.quantizers.statistics};
  }

  void setup() const { executor->run(step::Phase::setup); }

  // Micro-step `number` on tokens that depend on it.
  void micro_step(int32_t number) const {
    for (const step::TensorId id : {run.step.tokens, run.step.targets}) {
      int32_t next = number + (id == run.step.tokens ? 1 : 2);
      runtime::HostValues<int32_t> tokens(*executor, run.step.program, id);
      for (int32_t& token : tokens) {
        token = next = (next * 31 + 7) % static_cast<int32_t>(run.config.model.vocab);
      }
    }
    if (quantizes()) control()->micro_step = static_cast<uint32_t>(number);
    executor->run_micro_step();
  }

  void optimizer_step(int64_t number) const {
    executor->write(run.step.settings,
                    std::array{1e-2f, static_cast<float>(1 - std::pow(0.9, number)),
                               static_cast<float>(1 - std::pow(0.95, number))});
    executor->run(step::Phase::optimizer);
    if (quantizes()) control()->step = static_cast<uint32_t>(number + 1);
  }

  // `count` optimizer steps of two micro-steps each.
  void steps(int count) const {
    for (int i = 1; i <= count; ++i) {
      micro_step(2 * i);
      micro_step(2 * i + 1);
      optimizer_step(i);
    }
  }
};

inline bool same_bits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

}  // namespace plimsoll::train

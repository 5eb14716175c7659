// A config planned and ready to run in a test, passes and all, with tokens and weights of its own.
#pragma once

#include <memory>

#include "plimsoll/runtime/cpu/cpu_backend.h"
#include "plimsoll/runtime/executor.h"
#include "plimsoll/train/initialize.h"
#include "plimsoll/train/planned_run.h"

namespace plimsoll::train {

struct PlannedUnderTest {
  std::unique_ptr<runtime::Backend> backend;
  PlannedRun run;
  std::unique_ptr<runtime::Arena> arena;
  std::unique_ptr<runtime::Executor> executor;

  explicit PlannedUnderTest(const config::Config& config, int threads = 2,
                            std::optional<cpu::Bf16Kernel> bf16 = {})
      : backend(cpu::make_cpu_backend(threads, bf16)),
        run(plan_run(config::resolve(config), *backend)),
        arena(std::make_unique<runtime::Arena>(run.memory.arena)),
        executor(
            std::make_unique<runtime::Executor>(run.step.program, run.memory, *backend, *arena)) {
    for (const step::ParameterTensors& p : run.step.parameters) {
      initialize(p.parameter, 3, floats(p.master));
    }
    if (QuantizerControl* quantizers = control()) *quantizers = {.seed_low = 7, .step = 1};
  }

  std::span<float> floats(step::TensorId id) const { return executor->view(id).span<float>(); }
  QuantizerControl* control() const {
    const step::TensorId id = run.step.quantizers.control;
    return id < 0 ? nullptr : executor->view(id).as<QuantizerControl>();
  }
  QuantizerStatistics* statistics() const {
    return executor->view(run.step.quantizers.statistics).as<QuantizerStatistics>();
  }

  void setup() const { executor->run(step::Phase::setup); }

  // Micro-step `number` on tokens that depend on it.
  void micro_step(int32_t number) const {
    for (const step::TensorId id : {run.step.tokens, run.step.targets}) {
      int32_t next = number + (id == run.step.tokens ? 1 : 2);
      for (int32_t& token : executor->view(id).span<int32_t>()) {
        token = next = (next * 31 + 7) % static_cast<int32_t>(run.config.model.vocab);
      }
    }
    if (QuantizerControl* quantizers = control()) {
      quantizers->micro_step = static_cast<uint32_t>(number);
    }
    executor->run_micro_step();
  }

  void optimizer_step(int64_t number) const {
    const std::span<float> settings = floats(run.step.settings);
    settings[0] = 1e-2f;
    settings[1] = static_cast<float>(1 - std::pow(0.9, number));
    settings[2] = static_cast<float>(1 - std::pow(0.95, number));
    executor->run(step::Phase::optimizer);
    if (QuantizerControl* quantizers = control()) {
      quantizers->step = static_cast<uint32_t>(number + 1);
    }
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

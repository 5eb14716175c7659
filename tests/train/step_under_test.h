// A training step ready to run in a test: program, plan, arena and executor together.
#pragma once

#include <memory>

#include "plimsoll/runtime/cpu/cpu_backend.h"
#include "plimsoll/runtime/executor.h"
#include "plimsoll/step/builder.h"

namespace plimsoll::train {

struct StepUnderTest {
  using Pass = std::function<step::Program(step::Program)>;

  std::unique_ptr<runtime::Backend> backend;
  step::TrainingStep step;
  step::MemoryPlan plan;
  std::unique_ptr<runtime::Arena> arena;
  std::unique_ptr<runtime::Executor> executor;

  StepUnderTest(const model::ModelConfig& model, const step::StepConfig& config,
                const step::OptimizerConfig& optimizer, int threads = 2, const Pass& pass = {})
      : backend(cpu::make_cpu_backend(threads)),
        step(step::build_training_step(model, config, optimizer)) {
    if (pass) step.program = pass(std::move(step.program));
    step.program = runtime::with_workspaces(std::move(step.program), *backend);
    plan = step::plan_memory(step.program);
    arena = std::make_unique<runtime::Arena>(plan.arena);
    executor = std::make_unique<runtime::Executor>(step.program, plan, *backend, *arena);
  }

  std::span<float> floats(step::TensorId id) const { return executor->view(id).span<float>(); }
  std::span<int32_t> ids(step::TensorId id) const { return executor->view(id).span<int32_t>(); }

  double mean_loss() const {
    double sum = 0;
    for (const float loss : floats(step.losses)) sum += loss;
    return sum / static_cast<double>(floats(step.losses).size());
  }
};

}  // namespace plimsoll::train

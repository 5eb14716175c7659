// A training step ready to run in a test: program, plan and executor together.
#pragma once

#include <array>
#include <memory>

#include "plimsoll/runtime/executor.h"
#include "plimsoll/step/builder.h"
#include "tests/runtime/host_values.h"
#include "tests/runtime/test_backend.h"

namespace plimsoll::train {

struct StepUnderTest {
  using Pass = std::function<step::Program(step::Program)>;

  std::unique_ptr<runtime::Backend> backend;
  step::TrainingStep step;
  step::MemoryPlan plan;
  std::unique_ptr<runtime::Executor> executor;

  StepUnderTest(const model::ModelConfig& model, const step::StepConfig& config,
                const step::OptimizerConfig& optimizer, int threads = 2, const Pass& pass = {})
      : backend(runtime::make_test_backend(threads)),
        step(step::build_training_step(model, config, optimizer)) {
    if (pass) step.program = pass(std::move(step.program));
    step.program = runtime::with_workspaces(std::move(step.program), *backend);
    plan = step::plan_memory(step.program);
    executor = std::make_unique<runtime::Executor>(step.program, plan, *backend);
    set_counted_targets(config.global_batch * config.sequence_length);
  }

  runtime::HostValues<float> floats(step::TensorId id) const {
    return {*executor, step.program, id};
  }
  runtime::HostValues<int32_t> ids(step::TensorId id) const {
    return {*executor, step.program, id};
  }

  // Of the global batch: all of them unless said otherwise.
  void set_counted_targets(int64_t count) const {
    executor->write(step.loss_scale, std::array{1.0f / static_cast<float>(count)});
  }

  double mean_loss() const {
    const auto losses = floats(step.losses);
    double sum = 0;
    for (const float loss : losses) sum += loss;
    return sum / static_cast<double>(losses.size());
  }
};

}  // namespace plimsoll::train

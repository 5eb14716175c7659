// Every combination of a model's features: the gradient is that of the loss.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>

#include "tests/train/random_step.h"

namespace plimsoll::train {
namespace {

double loss_of(const StepUnderTest& run) {
  run.executor->run(step::Phase::forward);
  return run.mean_loss();
}

// The slope of the loss along the gradient of `parameters`; without rounding it is the length of
// that gradient. Central differences at two distances, extrapolated to none.
double slope_along_gradient(const StepUnderTest& run,
                            std::span<const step::ParameterTensors> parameters, double length) {
  const auto move = [&](double distance) {
    for (const step::ParameterTensors& p : parameters) {
      auto weights = run.floats(p.master);
      const auto gradient = run.floats(p.gradient);
      for (size_t i = 0; i < weights.size(); ++i) {
        weights[i] += static_cast<float>(distance / length * gradient[i]);
      }
    }
  };
  const auto slope = [&](double distance) {
    move(distance);
    const double above = loss_of(run);
    move(-2 * distance);
    const double below = loss_of(run);
    move(distance);
    return (above - below) / (2 * distance);
  };
  constexpr double distance = 5e-3;
  return (4 * slope(distance / 2) - slope(distance)) / 3;
}

double length_of(const StepUnderTest& run, std::span<const step::ParameterTensors> parameters) {
  double squares = 0;
  for (const step::ParameterTensors& p : parameters) {
    for (const float g : run.floats(p.gradient)) squares += double{g} * g;
  }
  return std::sqrt(squares);
}

RC_GTEST_PROP(ModelFeatures, HaveTheGradientOfTheirLoss, ()) {
  // A norm over a few columns is nearly a step: differences say nothing about its slope.
  const model::ModelConfig model = random_model(16);
  const step::StepConfig config = {.precision = step::Precision::fp32,
                                   .micro_batch = 2,
                                   .global_batch = 2,
                                   .sequence_length = 8,
                                   .head_chunk = 16};
  const StepUnderTest run(model, config, {});
  initialize_weights(run.step, *run.executor, 3);
  run.executor->run(step::Phase::setup);
  for (const step::TensorId id : {run.step.tokens, run.step.targets}) {
    int32_t next = id;
    for (int32_t& token : run.ids(id)) token = next = (next * 31 + 7) % 67;
  }
  run.executor->run_micro_step();

  const std::span<const step::ParameterTensors> all = run.step.parameters;
  const size_t any = *rc::gen::inRange<size_t>(0, all.size());
  for (const auto parameters : {all, all.subspan(any, 1)}) {
    const double length = length_of(run, parameters);
    if (length < 5e-3) continue;  // lost in rounding; a key bias has none
    RC_LOG() << parameters.front().parameter.name << "\n";
    RC_ASSERT(std::abs(slope_along_gradient(run, parameters, length) / length - 1) < 0.03);
  }
}

}  // namespace
}  // namespace plimsoll::train

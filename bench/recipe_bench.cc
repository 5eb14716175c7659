// What does a recipe cost on the CPU, where nothing gets faster for it?
//
// The step of a model in bf16 and under each recipe, taking turns in one process: the ratio of the
// times, the least and the median, and how much of the recipe's step its quantisers take.
//
// usage: recipe_bench [rounds] [preset] [micro_batch] [sequence_length]
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>

#include "plimsoll/runtime/cpu/cpu_backend.h"
#include "plimsoll/runtime/cpu/machine.h"
#include "plimsoll/runtime/executor.h"
#include "plimsoll/train/initialize.h"
#include "plimsoll/train/planned_run.h"

namespace {

using namespace plimsoll;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// A planned step in its arena.
class Step {
 public:
  Step(const train::Config& config, const runtime::Backend& backend)
      : run_(train::plan_run(config, backend)),
        arena_(run_.memory.arena),
        executor_(run_.step.program, run_.memory, backend, arena_) {
    for (const step::ParameterTensors& p : run_.step.parameters) {
      train::initialize(p.parameter, 1, executor_.view(p.master).span<float>());
    }
    if (run_.step.quantizers.control >= 0) {
      auto* control = executor_.view(run_.step.quantizers.control).as<QuantizerControl>();
      *control = {.step = 1, .loss_scale_log2 = 16};
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

  double run() const {
    const auto begin = Clock::now();
    executor_.run_micro_step();
    executor_.run(step::Phase::optimizer);
    return seconds_since(begin);
  }

  double quantizer_seconds() const {
    double sum = 0;
    for (size_t i = 0; i < run_.step.program.ops.size(); ++i) {
      const step::Op& op = run_.step.program.ops[i];
      if (!std::holds_alternative<step::Quantize>(op.kind)) continue;
      if (op.phase == step::Phase::setup) continue;
      const auto begin = Clock::now();
      executor_.run(static_cast<int>(i), static_cast<int>(i) + 1);
      sum += seconds_since(begin);
    }
    return sum;
  }

  Bytes bytes() const { return run_.memory.arena; }

 private:
  const train::PlannedRun run_;
  const runtime::Arena arena_;
  const runtime::Executor executor_;
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 3;
  train::Config config;
  config.model = model::preset(argc > 2 ? argv[2] : "gpt2-124m");
  config.step.micro_batch = argc > 3 ? std::atoll(argv[3]) : 4;
  config.step.sequence_length = argc > 4 ? std::atoll(argv[4]) : 256;
  config.checkpoint.in_background = false;
  config.recipe.last_bf16 = 0;
  config.recipe.statistics_every = 0;
  config = train::resolve(config);
  const auto backend = cpu::make_cpu_backend(0);
  fmt::print("{}, {} threads; {}, {} x {} tokens, every layer quantised, {} rounds\n\n",
             cpu::processor_name(), cpu::core_count(), config.model.preset, config.step.micro_batch,
             config.step.sequence_length, rounds);
  fmt::print(
      "| recipe | step, s | bf16 beside it, s | ratio of medians | of bests | quantisers | arena "
      "|\n"
      "| --- | --- | --- | --- | --- | --- | --- |\n");
  const Step bf16(config, *backend);
  bf16.run();
  for (const auto recipe :
       {step::Recipe::fp16, step::Recipe::fp8_delayed, step::Recipe::fp8_current,
        step::Recipe::fp8_block, step::Recipe::mxfp8, step::Recipe::nvfp4}) {
    train::Config changed = config;
    changed.recipe.name = recipe;
    const Step quantized(train::resolve(changed), *backend);
    quantized.run();
    std::vector<double> plain, with;
    for (int round = 0; round < rounds; ++round) {
      plain.push_back(bf16.run());
      with.push_back(quantized.run());
    }
    const std::string name = step::describe(changed.recipe);
    fmt::print("| {} | {:.2f} | {:.2f} | {:.2f} | {:.2f} | {:.1f} % | {} |\n",
               name.substr(0, name.find(':')), median(with), median(plain),
               median(with) / median(plain),
               *std::ranges::min_element(with) / *std::ranges::min_element(plain),
               100 * quantized.quantizer_seconds() / median(with), to_text(quantized.bytes()));
    std::fflush(stdout);
  }
}

// What does a recipe cost on the CPU, where nothing gets faster for it?
//
// The step of a model in bf16 and under each recipe, taking turns in one process: the ratio of the
// times, the least and the median, and how much of the recipe's step its quantisers take.
//
// usage: recipe_bench [rounds] [preset] [micro_batch] [sequence_length]
#include <fmt/format.h>

#include <algorithm>

#include "bench/planned_step.h"
#include "plimsoll/runtime/cpu/cpu_backend.h"
#include "plimsoll/runtime/cpu/machine.h"

namespace {

using namespace plimsoll;
using bench::PlannedStep;

double quantizer_seconds(const PlannedStep& step) {
  const std::vector<step::Op>& ops = step.run().step.program.ops;
  double sum = 0;
  for (int i = 0; i < static_cast<int>(ops.size()); ++i) {
    const step::Op& op = ops[static_cast<size_t>(i)];
    if (!std::holds_alternative<step::Quantize>(op.kind) || op.phase == step::Phase::setup)
      continue;
    sum += bench::seconds_of([&] { step.executor().run(i, i + 1); });
  }
  return sum;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 3;
  config::Config config;
  config.model = model::preset(argc > 2 ? argv[2] : "gpt2-124m");
  config.step.micro_batch = argc > 3 ? std::atoll(argv[3]) : 4;
  config.step.sequence_length = argc > 4 ? std::atoll(argv[4]) : 256;
  config.checkpoint.in_background = config::InBackground::no;
  config.recipe.last_bf16 = 0;
  config.recipe.statistics_every = 0;
  config = config::resolve(config);
  const auto backend = cpu::make_cpu_backend(0);
  fmt::print("{}, {} threads; {}, {} x {} tokens, every layer quantised, {} rounds\n\n",
             cpu::processor_name(), cpu::core_count(), config.model.preset, config.step.micro_batch,
             config.step.sequence_length, rounds);
  fmt::print(
      "| recipe | step, s | bf16 beside it, s | ratio of medians | of bests | quantisers | arena "
      "|\n"
      "| --- | --- | --- | --- | --- | --- | --- |\n");
  const PlannedStep bf16(config, *backend);
  bf16.timed_step();
  for (const auto recipe :
       {step::Recipe::fp16, step::Recipe::fp8_delayed, step::Recipe::fp8_current,
        step::Recipe::fp8_block, step::Recipe::mxfp8, step::Recipe::nvfp4}) {
    config::Config changed = config;
    changed.recipe.name = recipe;
    const PlannedStep quantized(config::resolve(changed), *backend);
    quantized.timed_step();
    std::vector<double> plain, with;
    for (int round = 0; round < rounds; ++round) {
      plain.push_back(bf16.timed_step());
      with.push_back(quantized.timed_step());
    }
    const std::string name = step::describe(changed.recipe);
    fmt::print(
        "| {} | {:.2f} | {:.2f} | {:.2f} | {:.2f} | {:.1f} % | {} |\n",
        name.substr(0, name.find(':')), median(with), median(plain), median(with) / median(plain),
        *std::ranges::min_element(with) / *std::ranges::min_element(plain),
        100 * quantizer_seconds(quantized) / median(with), to_text(quantized.run().memory.arena));
    std::fflush(stdout);
  }
}

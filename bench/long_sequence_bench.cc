// Does a sequence of 131,072 tokens train in 3 GiB?
//
// One forward and backward of a 4-layer, hidden-256 Llama in bf16 over one sequence, with the FFN
// in chunks: the planned arena, the resident memory of the process before and after, the loss and
// the norm of the gradients. Attention is quadratic: 8192 tokens unless more are asked for, the
// full length takes half an hour on two cores.
//
// usage: long_sequence_bench [sequence_length] [checkpointing] [ffn_chunk] [threads]
#include <fmt/format.h>

#include <cmath>

#include "bench/planned_step.h"
#include "plimsoll/runtime/cpu/cpu_backend.h"
#include "plimsoll/runtime/cpu/machine.h"

namespace {

using namespace plimsoll;

config::Config config_of(int argc, char** argv) {
  config::Config config;
  config.model = {.family = model::Family::llama, .layers = 4, .hidden = 256, .heads = 4};
  config.step.sequence_length = argc > 1 ? std::atoll(argv[1]) : 8192;
  config.step.checkpointing = argc > 2 ? argv[2] : "none";
  config.step.ffn_chunk = argc > 3 ? std::atoll(argv[3]) : 1024;
  config.train.threads = argc > 4 ? std::atoi(argv[4]) : 0;
  config.checkpoint.in_background = config::InBackground::no;
  return config::resolve(config);
}

double micro_step_flops(const step::Program& program) {
  return flops(program, step::Phase::forward).count + flops(program, step::Phase::recompute).count +
         flops(program, step::Phase::backward).count;
}

}  // namespace

int main(int argc, char** argv) {
  const config::Config config = config_of(argc, argv);
  const auto backend = cpu::make_cpu_backend(config.train.threads);
  fmt::print("{}, {} threads; {} tokens, checkpointing {}, FFN chunk {}\n", cpu::processor_name(),
             config.train.threads == 0 ? cpu::core_count() : config.train.threads,
             config.step.sequence_length, config.step.checkpointing, config.step.ffn_chunk);
  const cpu::Resident before = cpu::resident_memory();
  const bench::PlannedStep step(config, *backend);
  const train::PlannedRun& run = step.run();
  const runtime::Executor& executor = step.executor();
  const double seconds = bench::seconds_of([&] { executor.run_micro_step(); });

  double loss = 0, squares = 0;
  const auto values_of = [&](step::TensorId id) {
    std::vector<float> values(
        static_cast<size_t>(run.step.program.tensor(id).type.shape.elements()));
    executor.read(id, values);
    return values;
  };
  for (const float value : values_of(run.step.losses)) loss += value;
  for (const step::ParameterTensors& p : run.step.parameters) {
    for (const float value : values_of(p.gradient)) squares += value * value;
  }
  const cpu::Resident after = cpu::resident_memory();
  fmt::print("arena {} B ({}), resident before it {}, at most {}\n", run.memory.arena.count,
             to_text(run.memory.arena), to_text(before.now), to_text(after.peak));
  fmt::print("loss {:.4f} nats, gradient norm {:.4g}\n",
             loss / static_cast<double>(config.step.sequence_length), std::sqrt(squares));
  fmt::print("{:.1f} s, {:.1f} GFLOP/s\n", seconds,
             micro_step_flops(run.step.program) / seconds / 1e9);
}

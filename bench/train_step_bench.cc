// How close is a training step to this machine's matrix products?
//
// GPT-2 124M, 4 x 64 tokens: the FLOP/s of whole steps (6 N tokens and attention, as planned)
// against the rate of oneDNN's own product of the same format, both measured in this process and
// interleaved. Then where the step's time goes, by op kind.
//
// AdamW and the gradient norm are measured against the time that their bytes need: at the rate of
// memcpy by all threads.
//
// usage: train_step_bench [micro_batch] [sequence_length] [preset] [kernel of bf16 products]
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <map>
#include <oneapi/dnnl/dnnl.hpp>
#include <optional>
#include <vector>

#include "plimsoll/planner/plan_report.h"
#include "plimsoll/runtime/cpu/cpu_backend.h"
#include "plimsoll/runtime/cpu/kernels/parallel.h"
#include "plimsoll/runtime/cpu/machine.h"
#include "plimsoll/runtime/executor.h"
#include "plimsoll/train/training_state.h"

namespace {

using namespace plimsoll;

double seconds(const std::function<void()>& action) {
  const auto begin = std::chrono::steady_clock::now();
  action();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

struct Spread {
  double minimum, median;
};
Spread spread(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return {values.front(), values[values.size() / 2]};
}

// oneDNN's product of 1024 x 1024 x 1024 in `format`; empty when oneDNN has none on this CPU.
class OneDnnProduct {
 public:
  static constexpr int64_t size = 1024;
  static constexpr double flops = 2.0 * size * size * size;

  explicit OneDnnProduct(Format format) {
    using dnnl::memory;
    const auto type = format == Format::bf16 ? memory::data_type::bf16 : memory::data_type::f32;
    const memory::desc ab({size, size}, type, memory::format_tag::ab);
    const memory::desc c({size, size}, memory::data_type::f32, memory::format_tag::ab);
    try {
      const dnnl::matmul::primitive_desc pd(dnnl::matmul::desc(ab, ab, c), engine_);
      name_ = pd.impl_info_str();
      product_ = dnnl::matmul(pd);
      arguments_ = {{DNNL_ARG_SRC, memory(ab, engine_)},
                    {DNNL_ARG_WEIGHTS, memory(ab, engine_)},
                    {DNNL_ARG_DST, memory(c, engine_)}};
    } catch (const dnnl::error&) {
      name_.clear();
    }
  }
  explicit operator bool() const { return !name_.empty(); }
  const std::string& name() const { return name_; }
  double run() {
    return seconds([&] {
      product_.execute(stream_, arguments_);
      stream_.wait();
    });
  }

 private:
  dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream_{engine_};
  dnnl::matmul product_;
  std::unordered_map<int, dnnl::memory> arguments_;
  std::string name_;
};

// Bytes read and written a second by memcpy, at best, on all threads.
double memory_rate() {
  static std::vector<std::byte> from(size_t{1} << 28, std::byte{1}), to(size_t{1} << 28);
  double least = 1e9;
  for (int i = 0; i < 5; ++i) {
    least = std::min(
        least, seconds([] {
          cpu::parallel_ranges(std::ssize(from), 1 << 20, [](int64_t begin, int64_t end) {
            std::memcpy(to.data() + begin, from.data() + begin, static_cast<size_t>(end - begin));
          });
        }));
  }
  return 2 * static_cast<double>(from.size()) / least;
}

// Bytes that an op reads and writes, each operand once.
double bytes_of_operands(const step::Program& program, const step::Op& op) {
  int64_t bytes = 0;
  for (const step::TensorType& type : types_of(program, op.inputs))
    bytes += step::bytes(type).count;
  for (const step::TensorType& type : types_of(program, op.outputs)) {
    bytes += step::bytes(type).count;
  }
  return static_cast<double>(bytes);
}

void bench(step::Precision precision, const model::ModelConfig& model, int64_t micro_batch,
           int64_t sequence, std::optional<cpu::Bf16Kernel> kernel) {
  const auto backend = cpu::make_cpu_backend(0, kernel);
  fmt::print("{}\n", backend->description());
  const step::StepConfig config = {.precision = precision,
                                   .micro_batch = micro_batch,
                                   .global_batch = micro_batch,
                                   .sequence_length = sequence,
                                   .head_chunk = 128};
  step::TrainingStep step = step::build_training_step(model, config, {});
  step.program = runtime::with_workspaces(std::move(step.program), *backend);
  const step::MemoryPlan plan = step::plan_memory(step.program);
  const runtime::Executor executor(step.program, plan, *backend);
  train::initialize_weights(step, executor, 1);
  executor.run(step::Phase::setup);
  for (const step::TensorId id : {step.tokens, step.targets}) {
    int32_t next = 0;
    std::vector<int32_t> tokens(static_cast<size_t>(micro_batch * sequence));
    for (int32_t& token : tokens) {
      token = next = (next * 1103 + 12345) % static_cast<int32_t>(model.vocab);
    }
    executor.write(id, tokens);
  }
  executor.write(step.settings, std::array{1e-4f, 0.1f, 0.05f});
  executor.write(step.loss_scale, std::array{1.0f / static_cast<float>(micro_batch * sequence)});

  const bool bf16 = precision == step::Precision::bf16;
  OneDnnProduct own(bf16 ? Format::bf16 : Format::f32);
  OneDnnProduct f32(Format::f32);
  OneDnnProduct& product = own ? own : f32;
  std::vector<double> steps, products;
  for (int i = 0; i < 9; ++i) {
    steps.push_back(seconds([&] {
      executor.run_micro_step();
      executor.run(step::Phase::optimizer);
    }));
    for (int j = 0; j < 8; ++j) products.push_back(product.run());
  }
  const double tokens = static_cast<double>(micro_batch * sequence);
  const double flops = planner::flops_per_token(step.program, config).total() * tokens;
  const Spread s = spread(steps), p = spread(products);
  fmt::print("{}: step min {:.1f} ms, median {:.1f} ms: {:.1f} tok/s; {:.1f} GFLOP/s\n",
             bf16 ? "bf16" : "fp32", s.minimum * 1e3, s.median * 1e3, tokens / s.median,
             flops / s.median / 1e9);
  fmt::print("  oneDNN {}{}: {:.1f} GFLOP/s at the median, {:.1f} at best\n", product.name(),
             own ? "" : " (f32: it has no bf16 product here)",
             OneDnnProduct::flops / p.median / 1e9, OneDnnProduct::flops / p.minimum / 1e9);
  fmt::print("  ratio: {:.2f} of medians, {:.2f} of bests\n",
             flops / s.median / (OneDnnProduct::flops / p.median),
             flops / s.minimum / (OneDnnProduct::flops / p.minimum));

  // The least of three times of each kind.
  std::map<std::string, double> by_kind, bytes;
  for (int round = 0; round < 3; ++round) {
    std::map<std::string, double> times;
    bytes.clear();
    for (size_t i = 0; i < step.program.ops.size(); ++i) {
      const int op = static_cast<int>(i);
      if (step.program.ops[i].phase == step::Phase::setup) continue;
      const std::string kind(kind_name(step.program.ops[i]));
      bytes[kind] += bytes_of_operands(step.program, step.program.ops[i]);
      times[kind] += seconds([&] { executor.run(op, op + 1); });
    }
    for (const auto& [kind, time] : times) {
      double& least = by_kind[kind];
      least = least == 0 ? time : std::min(least, time);
    }
  }
  const double rate = memory_rate();
  std::vector<std::pair<double, std::string>> sorted;
  double total = 0;
  for (const auto& [kind, time] : by_kind) {
    sorted.push_back({time, kind});
    total += time;
  }
  std::sort(sorted.rbegin(), sorted.rend());
  for (const auto& [time, kind] : sorted) {
    if (time > total * 0.005) {
      fmt::print("    {:<22}{:8.1f} ms {:5.1f} %, {:6.1f} ms for its bytes at {:.1f} GB/s\n", kind,
                 time * 1e3, 100 * time / total, bytes[kind] / rate * 1e3, rate / 1e9);
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  const int64_t micro_batch = argc > 1 ? std::atoll(argv[1]) : 4;
  const int64_t sequence = argc > 2 ? std::atoll(argv[2]) : 64;
  model::ModelConfig model = model::preset(argc > 3 ? argv[3] : "gpt2-124m");
  if (model.vocab == 0) model.vocab = 264;
  model = model::resolve(model);
  fmt::print("{}, {}, {} x {} tokens, {} threads\n", cpu::processor_name(),
             argc > 3 ? argv[3] : "gpt2-124m", micro_batch, sequence, cpu::core_count());
  // The kernel of bf16 products by its name, e.g. "AVX-512 BF16"; the fastest unless given.
  std::optional<cpu::Bf16Kernel> kernel;
  for (const cpu::Bf16Kernel one : cpu::bf16_kernels()) {
    if (argc > 4 && cpu::name(one) == argv[4]) kernel = one;
  }
  if (argc <= 4) bench(step::Precision::fp32, model, micro_batch, sequence, kernel);
  bench(step::Precision::bf16, model, micro_batch, sequence, kernel);
}

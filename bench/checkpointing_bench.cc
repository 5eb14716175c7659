// What does checkpointing buy, and what does it cost?
//
// One model whose step takes about a second. First: no checkpointing and full checkpointing at
// batch 1, then full checkpointing at the largest batch that needs no more than none did. Second:
// "layers:K" against the budget policy in the same number of bytes. Times are medians of rounds in
// which every row takes its turn; each is compared with what the planner predicts from the fixed
// rates that also make its choices.
//
// usage: checkpointing_bench [rounds] [sequence_length] [layers] [hidden]
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>

#include "plimsoll/runtime/cpu/cpu_backend.h"
#include "plimsoll/runtime/cpu/machine.h"
#include "plimsoll/runtime/executor.h"
#include "plimsoll/train/fit.h"
#include "plimsoll/train/initialize.h"
#include "plimsoll/train/planned_run.h"

namespace {

using namespace plimsoll;

struct Row {
  std::string label;
  std::unique_ptr<train::PlannedRun> planned;  // the executor refers to it
  std::unique_ptr<runtime::Arena> arena;
  std::unique_ptr<runtime::Executor> executor;
  std::vector<double> seconds;

  double tokens() const {
    const step::StepConfig& step = planned->config.step;
    return static_cast<double>(step.micro_batch * step.sequence_length);
  }
  double median() const {
    std::vector<double> sorted = seconds;
    std::sort(sorted.begin(), sorted.end());
    return sorted[sorted.size() / 2];
  }
  double minimum() const { return *std::min_element(seconds.begin(), seconds.end()); }
  double predicted() const {
    return cost::step_time(planned->step.program, cost::nominal_cpu(), 1).count;
  }
};

Row make_row(std::string label, const train::Config& config, const runtime::Backend& backend) {
  Row row = {.label = std::move(label),
             .planned = std::make_unique<train::PlannedRun>(train::plan_run(config, backend))};
  const train::PlannedRun& run = *row.planned;
  row.arena = std::make_unique<runtime::Arena>(run.memory.arena);
  row.executor =
      std::make_unique<runtime::Executor>(run.step.program, run.memory, backend, *row.arena);
  for (const step::ParameterTensors& p : run.step.parameters) {
    train::initialize(p.parameter, 1, row.executor->view(p.master).span<float>());
  }
  row.executor->run(step::Phase::setup);
  uint32_t next = 1;
  for (const step::TensorId id : {run.step.tokens, run.step.targets}) {
    for (int32_t& token : row.executor->view(id).span<int32_t>()) {
      next = next * 1664525u + 1013904223u;
      token = static_cast<int32_t>((next >> 8) % static_cast<uint32_t>(config.model.vocab));
    }
  }
  const std::span<float> settings = row.executor->view(run.step.settings).span<float>();
  settings[0] = 1e-4f, settings[1] = 0.1f, settings[2] = 0.05f;
  return row;
}

double timed_step(const Row& row) {
  const auto begin = std::chrono::steady_clock::now();
  row.executor->run_micro_step();
  row.executor->run(step::Phase::optimizer);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

void print(const Row& row, const Row& none) {
  const auto time_per_token = [](const Row& r, double seconds) { return seconds / r.tokens(); };
  const double measured =
      time_per_token(row, row.median()) / time_per_token(none, none.median()) - 1;
  const double predicted =
      time_per_token(row, row.predicted()) / time_per_token(none, none.predicted()) - 1;
  fmt::print("| {} | {} | {} | {} | {:.0f} | {:.0f} | {:+.1f} % | {:+.1f} % |\n", row.label,
             row.planned->config.step.micro_batch, to_text(row.planned->memory.arena),
             to_text(row.planned->memory.arena - row.planned->memory.persistent),
             row.tokens() / row.median(), row.tokens() / row.minimum(), 100 * measured,
             100 * predicted);
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 5;
  const auto backend = cpu::make_cpu_backend(0);
  train::Config config;
  config.model = {.family = model::Family::llama,
                  .layers = argc > 3 ? std::atoll(argv[3]) : 8,
                  .hidden = argc > 4 ? std::atoll(argv[4]) : 256,
                  .heads = 4};
  config.step.sequence_length = argc > 2 ? std::atoll(argv[2]) : 2048;
  config.checkpoint.in_background = false;
  config = train::resolve(config);
  const auto with = [&](const std::string& policy) {
    train::Config changed = config;
    changed.step.checkpointing = policy;
    return changed;
  };

  std::vector<Row> rows;
  rows.push_back(make_row("none", config, *backend));
  const step::MemoryPlan none = rows[0].planned->memory;
  rows.push_back(make_row("full", with("full"), *backend));
  train::Config batch = with("full");
  for (int64_t micro = 2;; ++micro) {
    train::Config larger = batch;
    larger.step.micro_batch = larger.step.global_batch = micro;
    if (train::plan_run(larger, *backend).memory.arena > none.arena) break;
    batch = larger;
  }
  rows.push_back(make_row("full, largest batch in the memory of none", batch, *backend));

  const double transient = static_cast<double>((none.arena - none.persistent).count);
  for (const int percent : {75, 50, 25}) {
    for (int64_t k = 1; k <= config.model.layers; ++k) {
      const std::string policy = fmt::format("layers:{}", k);
      const Bytes arena = train::plan_run(with(policy), *backend).memory.arena;
      const double share = static_cast<double>((arena - none.persistent).count) / transient;
      if (share > percent / 100.0 && k < config.model.layers) continue;
      rows.push_back(
          make_row(fmt::format("{} ({} % of none)", policy, percent), with(policy), *backend));
      rows.push_back(make_row(fmt::format("budget of the same bytes"),
                              with(fmt::format("budget:{}", arena.count)), *backend));
      break;
    }
  }

  for (const Row& row : rows) timed_step(row);  // touches every page
  for (int round = 0; round < rounds; ++round) {
    for (Row& row : rows) row.seconds.push_back(timed_step(row));
  }
  fmt::print(
      "{}, {} threads; llama, {} layers, hidden {}, {} tokens, bf16; medians of {} rounds\n\n",
      cpu::processor_name(), cpu::core_count(), config.model.layers, config.model.hidden,
      config.step.sequence_length, rounds);
  fmt::print(
      "| checkpointing | batch | arena | of it activations | tokens/s (median) | (best) | time per "
      "token, measured | predicted |\n| --- | --- | --- | --- | --- | --- | --- | --- |\n");
  for (const Row& row : rows) print(row, rows[0]);
}

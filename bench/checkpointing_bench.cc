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
#include <memory>

#include "bench/planned_step.h"
#include "plimsoll/runtime/cpu/cpu_backend.h"
#include "plimsoll/runtime/cpu/machine.h"

namespace {

using namespace plimsoll;

struct Row {
  std::string label;
  std::unique_ptr<bench::PlannedStep> step;
  std::vector<double> seconds;

  const train::PlannedRun& plan() const { return step->run(); }
  double tokens() const {
    const step::StepConfig& config = plan().config.step;
    return static_cast<double>(config.micro_batch * config.sequence_length);
  }
  double median() const {
    std::vector<double> sorted = seconds;
    std::sort(sorted.begin(), sorted.end());
    return sorted[sorted.size() / 2];
  }
  double minimum() const { return *std::min_element(seconds.begin(), seconds.end()); }
  double predicted() const {
    return cost::step_time(plan().step.program, cost::nominal_cpu(), 1).count;
  }
};

Row make_row(std::string label, const config::Config& config, const runtime::Backend& backend) {
  return {.label = std::move(label), .step = std::make_unique<bench::PlannedStep>(config, backend)};
}

void print(const Row& row, const Row& none) {
  const auto time_per_token = [](const Row& r, double seconds) { return seconds / r.tokens(); };
  const double measured =
      time_per_token(row, row.median()) / time_per_token(none, none.median()) - 1;
  const double predicted =
      time_per_token(row, row.predicted()) / time_per_token(none, none.predicted()) - 1;
  fmt::print("| {} | {} | {} | {} | {:.0f} | {:.0f} | {:+.1f} % | {:+.1f} % |\n", row.label,
             row.plan().config.step.micro_batch, to_text(row.plan().memory.arena),
             to_text(row.plan().memory.arena - row.plan().memory.persistent),
             row.tokens() / row.median(), row.tokens() / row.minimum(), 100 * measured,
             100 * predicted);
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 5;
  const auto backend = cpu::make_cpu_backend(0);
  config::Config config;
  config.model = {.family = model::Family::llama,
                  .layers = argc > 3 ? std::atoll(argv[3]) : 8,
                  .hidden = argc > 4 ? std::atoll(argv[4]) : 256,
                  .heads = 4};
  config.step.sequence_length = argc > 2 ? std::atoll(argv[2]) : 2048;
  config.checkpoint.in_background = config::InBackground::no;
  config = config::resolve(config);
  const auto with = [&](const std::string& policy) {
    config::Config changed = config;
    changed.step.checkpointing = policy;
    return changed;
  };

  std::vector<Row> rows;
  rows.push_back(make_row("none", config, *backend));
  const step::MemoryPlan none = rows[0].plan().memory;
  rows.push_back(make_row("full", with("full"), *backend));
  config::Config batch = with("full");
  for (int64_t micro = 2;; ++micro) {
    config::Config larger = batch;
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

  for (const Row& row : rows) row.step->timed_step();  // touches every page
  for (int round = 0; round < rounds; ++round) {
    for (Row& row : rows) row.seconds.push_back(row.step->timed_step());
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

#include "plimsoll/train/fit.h"

#include <algorithm>
#include <functional>

#include "plimsoll/train/planned_run.h"

namespace plimsoll::train {

namespace {

constexpr int64_t kLargestMicroBatch = 1 << 20;
constexpr int64_t kLongestSequence = int64_t{1} << 26;
constexpr int64_t kFfnChunk = 4096;

config::Config with_micro_batch(config::Config config, int64_t micro_batch) {
  const bool accumulates = config.step.global_batch != config.step.micro_batch;
  config.step.micro_batch = micro_batch;
  if (!accumulates) config.step.global_batch = micro_batch;
  return config;
}

config::Config with_sequence(config::Config config, int64_t sequence) {
  config.step.sequence_length = sequence;
  return config;
}

// Whether full checkpointing makes it fit: a budget that does may choose better, hardly ever more.
bool fits(config::Config config, Bytes limit, const runtime::Backend& backend) {
  config.step.checkpointing = "full";
  return plan_run(config, backend).memory.arena <= limit;
}

// The largest n in [1, most] with good(n), for a predicate that is true up to some n; 0: none.
int64_t largest(int64_t most, const std::function<bool(int64_t)>& good) {
  if (!good(1)) return 0;
  int64_t low = 1, high = 2;
  while (high <= most && good(high)) {
    low = high;
    high *= 2;
  }
  high = std::min(high, most + 1);
  while (high - low > 1) {
    const int64_t middle = (low + high) / 2;
    (good(middle) ? low : high) = middle;
  }
  return low;
}

int64_t largest_micro_batch(const config::Config& config, Bytes limit,
                            const runtime::Backend& backend) {
  const int64_t global = config.step.global_batch;
  if (global == config.step.micro_batch) {
    return largest(kLargestMicroBatch,
                   [&](int64_t n) { return fits(with_micro_batch(config, n), limit, backend); });
  }
  std::vector<int64_t> divisors;
  for (int64_t n = 1; n <= global; ++n) {
    if (global % n == 0) divisors.push_back(n);
  }
  const int64_t count = largest(static_cast<int64_t>(divisors.size()), [&](int64_t n) {
    return fits(with_micro_batch(config, divisors[static_cast<size_t>(n - 1)]), limit, backend);
  });
  return count == 0 ? 0 : divisors[static_cast<size_t>(count - 1)];
}

int64_t longest_sequence(const config::Config& config, Bytes limit,
                         const runtime::Backend& backend) {
  const bool learned = config.model.positions == model::Positions::learned;
  const int64_t most = learned ? config.model.max_positions : kLongestSequence;
  int64_t best = 0;
  for (const int64_t granule : {16, 128}) {
    const int64_t bound = granule == 16 ? std::min<int64_t>(most, 1024) : most;
    const int64_t count = largest(bound / granule, [&](int64_t n) {
      return fits(with_sequence(config, n * granule), limit, backend);
    });
    best = std::max(best, count * granule);
    if (best < 1008) break;
  }
  return best;
}

// The config with the longest sequence, the FFN whole or in chunks.
config::Config with_longest_sequence(const config::Config& config, Bytes limit,
                                     const runtime::Backend& backend) {
  config::Config whole = with_sequence(config, longest_sequence(config, limit, backend));
  if (config.step.ffn_chunk != 0) return whole;
  config::Config chunked = config;
  chunked.step.ffn_chunk = kFfnChunk;
  chunked = with_sequence(chunked, longest_sequence(chunked, limit, backend));
  return chunked.step.sequence_length > whole.step.sequence_length ? chunked : whole;
}

FitRow row_of(config::Config config, Bytes limit, const runtime::Backend& backend) {
  config.step.checkpointing = fmt::format("budget:{}", limit.count);
  const PlannedRun run = plan_run(config, backend);
  const step::StepConfig& step = config.step;
  const planner::TokenFlops flops = planner::flops_per_token(run.step.program, step);
  const double seconds =
      cost::step_time(run.step.program, cost::nominal_cpu(), step.global_batch / step.micro_batch)
          .count;
  return {
      .micro_batch = step.micro_batch,
      .sequence_length = step.sequence_length,
      .ffn_chunk = step.ffn_chunk,
      .arena = run.memory.arena,
      .recompute_share = flops.recompute / (flops.total() - flops.recompute),
      .tokens_per_second = static_cast<double>(step.global_batch * step.sequence_length) / seconds};
}

Error nothing_fits(config::Config config, Bytes limit, const runtime::Backend& backend) {
  config.step.checkpointing = "full";
  return Error(Exit::does_not_fit,
               fmt::format("Nothing fits in {}: the smallest step needs {}.", to_text(limit),
                           to_text(plan_run(config, backend).memory.arena)),
               "Use a smaller model or more memory; step.precision = \"bf16\" and\n"
               "checkpoint.in_background = false lower it too.");
}

}  // namespace

Fit fit(const config::Config& resolved, Bytes limit, FitGoal goal,
        const runtime::Backend& backend) {
  Fit result = {.limit = limit, .rates = cost::nominal_cpu().source};
  const auto add = [&](const config::Config& config) {
    result.rows.push_back(row_of(config, limit, backend));
  };
  config::Config best = resolved;
  if (goal == FitGoal::micro_batch) {
    const int64_t most = largest_micro_batch(resolved, limit, backend);
    if (most == 0) throw nothing_fits(with_micro_batch(resolved, 1), limit, backend);
    best = with_micro_batch(resolved, most);
    add(best);
    for (int64_t micro = most / 2; micro >= 1 && result.rows.size() < 5; micro /= 2) {
      if (best.step.global_batch == most || best.step.global_batch % micro == 0) {
        add(with_micro_batch(best, micro));
      }
    }
  } else {
    const config::Config start = goal == FitGoal::both ? with_micro_batch(resolved, 1) : resolved;
    best = with_longest_sequence(start, limit, backend);
    if (best.step.sequence_length == 0) {
      throw nothing_fits(with_sequence(start, 16), limit, backend);
    }
    if (goal == FitGoal::both) {
      best = with_micro_batch(best, largest_micro_batch(best, limit, backend));
    }
    add(best);
    for (int64_t length = best.step.sequence_length / 2 / 16 * 16;
         length >= std::max<int64_t>(16, resolved.step.sequence_length / 2) &&
         result.rows.size() < 5;
         length = length / 2 / 16 * 16) {
      config::Config shorter = with_sequence(best, length);
      if (goal == FitGoal::both) {
        shorter = with_micro_batch(shorter, largest_micro_batch(shorter, limit, backend));
      }
      add(shorter);
    }
  }
  const auto set = [&](const char* key, int64_t value) {
    result.settings.push_back(fmt::format("step.{}={}", key, value));
  };
  set("micro_batch", best.step.micro_batch);
  set("global_batch", best.step.global_batch);
  set("sequence_length", best.step.sequence_length);
  set("head_chunk", best.step.head_chunk);  // as sized here: left out, it would be derived anew
  if (best.step.ffn_chunk != 0) set("ffn_chunk", best.step.ffn_chunk);
  result.settings.push_back(fmt::format("step.checkpointing=\"budget:{}\"", limit.count));
  return result;
}

std::string fit_text(const Fit& fit) {
  std::string text =
      fmt::format("within {} ({} B), with the checkpointing that is fastest there\n\n",
                  to_text(fit.limit), fit.limit.count);
  text += fmt::format("{:>12}{:>12}{:>12}{:>12}{:>14}\n", "micro-batch", "sequence", "arena",
                      "recompute", "predicted");
  for (const FitRow& row : fit.rows) {
    text += fmt::format("{:>12}{:>12}{:>12}{:>10.1f} %{:>8.4g} tok/s{}\n", row.micro_batch,
                        row.sequence_length, to_text(row.arena), 100 * row.recompute_share,
                        row.tokens_per_second, &row == &fit.rows.front() ? "  <- largest" : "");
  }
  const auto fastest = std::max_element(
      fit.rows.begin(), fit.rows.end(),
      [](const FitRow& a, const FitRow& b) { return a.tokens_per_second < b.tokens_per_second; });
  const bool other = fastest->tokens_per_second > 1.01 * fit.rows.front().tokens_per_second;
  if (other) {
    text += fmt::format(
        "\nOf these, micro-batch {} at {} tokens is predicted fastest: it recomputes less.\n",
        fastest->micro_batch, fastest->sequence_length);
  }
  text += fmt::format("\nuse it   {}\ntimes    {}\n",
                      fmt::format("--set {}", fmt::join(fit.settings, " --set ")), fit.rates);
  return text;
}

nlohmann::json fit_json(const Fit& fit) {
  nlohmann::json rows = nlohmann::json::array();
  for (const FitRow& row : fit.rows) {
    rows.push_back({{"micro_batch", row.micro_batch},
                    {"sequence_length", row.sequence_length},
                    {"ffn_chunk", row.ffn_chunk},
                    {"arena_bytes", row.arena.count},
                    {"recompute_share", row.recompute_share},
                    {"predicted_tokens_per_second", row.tokens_per_second}});
  }
  return {{"limit_bytes", fit.limit.count},
          {"fits", rows},
          {"settings", fit.settings},
          {"times", fit.rates}};
}

}  // namespace plimsoll::train

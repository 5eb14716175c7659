#include "plimsoll/planner/fit.h"

#include <algorithm>
#include <functional>

#include "plimsoll/base/divisors.h"

namespace plimsoll::planner {

namespace {

constexpr int64_t largest_micro = 1 << 20;
constexpr int64_t longest_tokens = 1 << 24;  // what step.sequence_length may be

int64_t round_up_to(int64_t granule, int64_t n) { return (n + granule - 1) / granule * granule; }

// The head in at most 1024 chunks, so that the program does not grow with the tokens.
Request with_head_chunk(Request request) {
  step::StepConfig& step = request.spec.step;
  const int64_t tokens = step.micro_batch * step.sequence_length;
  step.head_chunk = std::max(step.head_chunk, round_up_to(64, tokens / 1024));
  return request;
}

Request with_micro_batch(Request request, int64_t micro_batch) {
  step::StepConfig& step = request.spec.step;
  const bool accumulates = step.global_batch != step.micro_batch;
  step.micro_batch = micro_batch;
  if (!accumulates) step.global_batch = micro_batch;
  return with_head_chunk(std::move(request));
}

Request with_sequence(Request request, int64_t sequence) {
  request.spec.step.sequence_length = sequence;
  return with_head_chunk(std::move(request));
}

// With the FFN in chunks of 4096 tokens, but at most 16 of them.
Request with_chunked_sequence(Request request, int64_t sequence) {
  request = with_sequence(std::move(request), sequence);
  const int64_t tokens = request.spec.step.micro_batch * sequence;
  request.spec.step.ffn_chunk = std::max<int64_t>(4096, round_up_to(4096, tokens / 16));
  return request;
}

// Whether full recomputation makes it fit: a budget that does may choose better, hardly ever more.
bool fits(Request request, Bytes limit, const Target& target) {
  request.spec.step.checkpointing = "full";
  try {
    return arena_of(request, target) <= limit;
  } catch (const Error& error) {
    if (error.code() == Exit::bug) throw;
    return false;  // more than anything holds
  }
}

// The largest n in [1, most] with good(n), for a predicate that is true up to some n; 0: none.
// `known`: one that is good, 0 when none is known.
int64_t largest(int64_t most, const std::function<bool(int64_t)>& good, int64_t known = 0) {
  if (known == 0 && !good(1)) return 0;
  int64_t low = std::max<int64_t>(1, known), high = 2 * low;
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

int64_t largest_micro_batch(const Request& request, Bytes limit, const Target& target) {
  const int64_t global = request.spec.step.global_batch;
  if (global == request.spec.step.micro_batch) {
    return largest(largest_micro,
                   [&](int64_t n) { return fits(with_micro_batch(request, n), limit, target); });
  }
  const std::vector<int64_t> divisors = divisors_of(global);
  const int64_t count = largest(static_cast<int64_t>(divisors.size()), [&](int64_t n) {
    return fits(with_micro_batch(request, divisors[static_cast<size_t>(n - 1)]), limit, target);
  });
  return count == 0 ? 0 : divisors[static_cast<size_t>(count - 1)];
}

using WithSequence = Request (*)(Request, int64_t);

// `known`: a length that fits, 0 when none is known.
int64_t longest_sequence(const Request& request, WithSequence with, int64_t known, Bytes limit,
                         const Target& target) {
  const bool learned = request.spec.model.positions == model::Positions::learned;
  const int64_t most = learned ? request.spec.model.max_positions : longest_tokens;
  int64_t best = 0;
  for (const int64_t granule : {16, 128}) {
    const int64_t bound = granule == 16 ? std::min<int64_t>(most, 1024) : most;
    const int64_t count = largest(
        bound / granule, [&](int64_t n) { return fits(with(request, n * granule), limit, target); },
        std::min(bound, std::max(best, known)) / granule);
    best = std::max(best, count * granule);
    if (best < 1008) break;
  }
  return best;
}

// The request with the longest sequence, the FFN whole or in chunks.
Request with_longest_sequence(const Request& request, Bytes limit, const Target& target) {
  const int64_t whole = longest_sequence(request, with_sequence, 0, limit, target);
  if (request.spec.step.ffn_chunk != 0) return with_sequence(request, whole);
  const int64_t chunked = longest_sequence(request, with_chunked_sequence, whole, limit, target);
  return chunked > whole ? with_chunked_sequence(request, chunked) : with_sequence(request, whole);
}

FitRow row_of(Request request, Bytes limit, const Target& target) {
  request.spec.step.checkpointing = fmt::format("budget:{}", limit.count);
  const PlannedRun run = plan_run(request, target);
  const step::StepConfig& step = request.spec.step;
  const TokenFlops flops = flops_per_token(run.step.program, step);
  return {.micro_batch = step.micro_batch,
          .sequence_length = step.sequence_length,
          .ffn_chunk = step.ffn_chunk,
          .arena = run.memory.arena,
          .recompute_share = flops.recompute / (flops.total() - flops.recompute),
          .tokens_per_second = 1 / run.time_per_token.count};
}

Error nothing_fits(Request request, Bytes limit, const Target& target) {
  request.spec.step.checkpointing = "full";
  return Error(Exit::does_not_fit,
               fmt::format("Nothing fits in {}: the smallest step needs {}.", to_text(limit),
                           to_text(plan_run(request, target).memory.arena)),
               "Use a smaller model or more memory; step.precision = \"bf16\" lowers it too.");
}

}  // namespace

Fit fit(const Request& resolved, Bytes limit, FitGoal goal, const Target& machine) {
  Target target = machine;
  target.capacity = {limit, {}, "--fit"};
  Fit result = {.limit = limit, .rates = target.profile.source};
  const auto add = [&](const Request& request) {
    result.rows.push_back(row_of(request, limit, target));
  };
  Request best = resolved;
  if (goal == FitGoal::micro_batch) {
    const int64_t most = largest_micro_batch(resolved, limit, target);
    if (most == 0) throw nothing_fits(with_micro_batch(resolved, 1), limit, target);
    best = with_micro_batch(resolved, most);
    add(best);
    for (int64_t micro = most / 2; micro >= 1 && result.rows.size() < 5; micro /= 2) {
      if (best.spec.step.global_batch == most || best.spec.step.global_batch % micro == 0) {
        add(with_micro_batch(best, micro));
      }
    }
  } else {
    const Request start = goal == FitGoal::both ? with_micro_batch(resolved, 1) : resolved;
    best = with_longest_sequence(start, limit, target);
    if (best.spec.step.sequence_length == 0) {
      throw nothing_fits(with_sequence(start, 16), limit, target);
    }
    if (goal == FitGoal::both) {
      best = with_micro_batch(best, largest_micro_batch(best, limit, target));
    }
    add(best);
    for (int64_t length = best.spec.step.sequence_length / 2 / 16 * 16;
         length >= std::max<int64_t>(16, resolved.spec.step.sequence_length / 2) &&
         result.rows.size() < 5;
         length = length / 2 / 16 * 16) {
      Request shorter = with_sequence(best, length);
      if (goal == FitGoal::both) {
        shorter = with_micro_batch(shorter, largest_micro_batch(shorter, limit, target));
      }
      add(shorter);
    }
  }
  const auto set = [&](const char* key, int64_t value) {
    result.settings.push_back(fmt::format("step.{}={}", key, value));
  };
  set("micro_batch", best.spec.step.micro_batch);
  set("global_batch", best.spec.step.global_batch);
  set("sequence_length", best.spec.step.sequence_length);
  // As sized here: left out, it would be derived anew.
  set("head_chunk", best.spec.step.head_chunk);
  if (best.spec.step.ffn_chunk != 0) set("ffn_chunk", best.spec.step.ffn_chunk);
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

}  // namespace plimsoll::planner

#include <set>

#include "plimsoll/planner/plan_run.h"

namespace plimsoll::planner {

namespace {

// Smaller micro-batches that divide the global batch: the largest, about half, and the smallest.
std::set<int64_t> smaller_micro_batches(const step::StepConfig& step) {
  std::set<int64_t> all;
  for (const int64_t most : {step.micro_batch - 1, step.micro_batch / 2, int64_t{1}}) {
    // The largest divisor that is at most `most`, through the divisors below the root.
    int64_t best = 0;
    for (int64_t d = 1; d * d <= step.global_batch; ++d) {
      if (step.global_batch % d != 0) continue;
      if (d <= most) best = std::max(best, d);
      if (step.global_batch / d <= most) best = std::max(best, step.global_batch / d);
    }
    if (best >= 1 && best < step.micro_batch) all.insert(best);
  }
  return all;
}

}  // namespace

std::vector<WhatIf> what_ifs(const PlannedRun& run, const Target& target) {
  std::vector<WhatIf> all;
  const auto consider = [&](std::string setting, const auto& change) {
    Request request = run.request;
    change(request);
    try {
      const PlannedRun changed = plan_run(request, target);
      all.push_back({std::move(setting), changed.memory.arena,
                     changed.time_per_token.count / run.time_per_token.count});
    } catch (const Error& error) {
      // The change makes no step: its policy names what is gone, or there would be too many ops.
      if (error.code() == Exit::bug) throw;
    }
  };
  const step::TrainingSpec& spec = run.request.spec;
  const step::StepConfig& step = spec.step;
  for (const int64_t micro : smaller_micro_batches(step)) {
    consider(fmt::format("step.micro_batch = {}", micro),
             [&](Request& r) { r.spec.step.micro_batch = micro; });
  }
  if (step.sequence_length > 128) {
    const int64_t half = step.sequence_length / 2;
    consider(fmt::format("step.sequence_length = {}", half),
             [&](Request& r) { r.spec.step.sequence_length = half; });
  }
  if (step.checkpointing != "full") {
    consider("step.checkpointing = \"full\"",
             [](Request& r) { r.spec.step.checkpointing = "full"; });
  }
  if (step.precision == step::Precision::fp32) {
    consider("step.precision = \"bf16\"",
             [](Request& r) { r.spec.step.precision = step::Precision::bf16; });
  }
  if (step.head_chunk > 64) {
    consider("step.head_chunk = 64", [](Request& r) { r.spec.step.head_chunk = 64; });
  }
  if (const int64_t tokens = step.micro_batch * step.sequence_length;
      tokens > 2048 && step.ffn_chunk == 0) {
    // Whole blocks of 1024, and not so many that the program grows out of hand.
    const int64_t chunk = (tokens + 64 * 1024 - 1) / (64 * 1024) * 1024;
    consider(fmt::format("step.ffn_chunk = {}", chunk),
             [&](Request& r) { r.spec.step.ffn_chunk = chunk; });
  }
  if (spec.recipe.name != step::Recipe::none && spec.recipe.cache_weights) {
    if (spec.recipe.bf16_weights) {
      consider("recipe.bf16_weights = false",
               [](Request& r) { r.spec.recipe.bf16_weights = false; });
    }
    consider("recipe.cache_weights = false", [](Request& r) {
      r.spec.recipe.cache_weights = false;
      r.spec.recipe.bf16_weights = true;
    });
  }
  if (spec.optimizer.moments == step::Moments::fp32 &&
      step::decays_in_bf16(spec.optimizer.beta1) && step::decays_in_bf16(spec.optimizer.beta2)) {
    consider("optimizer.moments = \"bf16\"",
             [](Request& r) { r.spec.optimizer.moments = step::Moments::bf16; });
  }
  if (run.request.snapshot == Snapshot::yes && run.snapshot >= 0) {
    consider("checkpoint.in_background = false",
             [](Request& r) { r.snapshot = Snapshot::no; });
  }
  return all;
}

}  // namespace plimsoll::planner

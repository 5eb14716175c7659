#include "plimsoll/compare/comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>

#include "plimsoll/base/error.h"
#include "plimsoll/compare/verdict.h"
#include "plimsoll/report/run_page.h"
#include "plimsoll/step/recipe.h"

namespace plimsoll::compare {

namespace {

constexpr double kSpike = 0.2;  // nats over the mean of the steps before
constexpr int64_t kSpikeReach = 2;
constexpr size_t kFewestBefore = 5;  // losses that make a mean to spike over
constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

struct RecipeRuns {
  std::string recipe;
  std::map<int64_t, const RunCurve*> by_seed;
};

// In the order of the first run of each.
std::vector<RecipeRuns> grouped(std::span<const RunCurve> runs) {
  std::vector<RecipeRuns> groups;
  for (const RunCurve& run : runs) {
    auto group = std::ranges::find(groups, run.recipe, &RecipeRuns::recipe);
    if (group == groups.end()) group = groups.insert(groups.end(), {run.recipe, {}});
    if (!group->by_seed.emplace(run.seed, &run).second) {
      throw Error(Exit::usage,
                  fmt::format("There are two runs of {} with seed {}.", run.recipe, run.seed),
                  "Leave one of them out.");
    }
  }
  return groups;
}

const RecipeRuns* find_group(const std::vector<RecipeRuns>& groups, std::string_view recipe) {
  const auto found = std::ranges::find(groups, recipe, &RecipeRuns::recipe);
  return found == groups.end() ? nullptr : &*found;
}

struct Finish {  // what a complete run has
  int64_t steps = 0;
  int64_t last_validation = 0;  // step
  // First step whose validation counts for the final loss.
  int64_t first_counted() const { return std::min(steps * 9 / 10 + 1, last_validation); }
};

Finish finish_of(std::span<const RunCurve> runs) {
  Finish finish;
  for (const RunCurve& run : runs) {
    finish.steps = std::max(finish.steps, static_cast<int64_t>(run.loss.size()));
    if (run.validation.empty()) continue;
    finish.last_validation = std::max(finish.last_validation, run.validation.back().first);
  }
  return finish;
}

// Why `run` is not complete; empty when it is.
std::string what_is_missing(const RunCurve& run, const Finish& finish) {
  if (!run.failure.empty()) {
    const std::string sentence = run.failure.substr(0, run.failure.find('\n'));
    return sentence.ends_with('.') ? sentence.substr(0, sentence.size() - 1) : sentence;
  }
  const auto steps = static_cast<int64_t>(run.loss.size());
  if (steps < finish.steps) return fmt::format("ended after {} of {} steps", steps, finish.steps);
  if (run.validation.empty() || run.validation.back().first < finish.last_validation) {
    return fmt::format("no validation loss at step {}", finish.last_validation);
  }
  for (const auto& [step, loss] : run.validation) {
    if (step >= finish.first_counted() && !std::isfinite(loss)) {
      return fmt::format("the validation loss at step {} is not finite", step);
    }
  }
  return {};
}

double mean_of(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double deviation_of(const std::vector<double>& values) {
  if (values.size() < 2) return values.empty() ? kUnknown : 0;
  const double mean = mean_of(values);
  double sum = 0;
  for (const double value : values) sum += (value - mean) * (value - mean);
  return std::sqrt(sum / static_cast<double>(values.size() - 1));
}

double median_of(std::vector<double> values) {
  if (values.empty()) return kUnknown;
  std::ranges::sort(values);
  return (values[(values.size() - 1) / 2] + values[values.size() / 2]) / 2;
}

// Final losses of two complete runs, over the validations of both.
SeedGap seed_gap(const RunCurve& run, const RunCurve& reference, const Finish& finish) {
  std::vector<double> loss, reference_loss;
  for (const auto& [step, value] : run.validation) {
    if (step < finish.first_counted()) continue;
    const auto other =
        std::ranges::find(reference.validation, step, &std::pair<int64_t, double>::first);
    if (other == reference.validation.end()) continue;
    loss.push_back(value);
    reference_loss.push_back(other->second);
  }
  return {.seed = run.seed, .reference = mean_of(reference_loss), .loss = mean_of(loss)};
}

// Loss of each step over the mean of up to `window` before it; NaN where they are too few.
std::vector<double> excess(const std::vector<double>& loss, int64_t window) {
  std::vector<double> out(loss.size(), kUnknown);
  std::vector<double> before;
  for (size_t i = 0; i < loss.size(); ++i) {
    before.clear();
    for (size_t j = i - std::min(i, static_cast<size_t>(window)); j < i; ++j) {
      if (std::isfinite(loss[j])) before.push_back(loss[j]);
    }
    if (before.size() >= kFewestBefore) out[i] = loss[i] - mean_of(before);
  }
  return out;
}

// Steps where the loss jumps and bf16's does not: half a spike of bf16 excuses one, so that a batch
// of hard text, which lifts both, is not counted when it lifts one of them just over the limit.
void find_spikes(const RunCurve& run, const RunCurve& reference, int64_t window,
                 std::vector<LossSpike>& spikes) {
  const std::vector<double> own = excess(run.loss, window);
  const std::vector<double> other = excess(reference.loss, window);
  for (int64_t i = 0; i < static_cast<int64_t>(own.size()); ++i) {
    const double above = own[static_cast<size_t>(i)];
    if (!(above > kSpike)) continue;
    const int64_t begin = std::max<int64_t>(0, i - kSpikeReach);
    const int64_t end = std::min<int64_t>(static_cast<int64_t>(other.size()), i + kSpikeReach + 1);
    const bool excused = begin < end && std::any_of(other.begin() + begin, other.begin() + end,
                                                    [](double e) { return e > kSpike / 2; });
    if (!excused) spikes.push_back({.seed = run.seed, .step = i + 1, .above = above});
  }
}

// What the training losses and gradient norms of a pair say.
void compare_training(const RunCurve& run, const RunCurve& reference, const Comparison& comparison,
                      PairedStatistics& paired, std::vector<double>& norm_ratios) {
  const auto after_warmup = static_cast<size_t>(comparison.settings.warmup_steps);
  const std::vector<double> difference = smoothed_difference(run, reference, comparison.smoothing);
  // Only means over whole windows: those over fewer steps, at either end, are noisier.
  const auto half = static_cast<size_t>(comparison.smoothing / 2);
  for (size_t i = std::max(after_warmup, half); i + half < difference.size(); ++i) {
    // Written so that the first finite value replaces NaN.
    if (!std::isfinite(difference[i]) ||
        std::abs(difference[i]) <= std::abs(paired.largest_difference)) {
      continue;
    }
    paired.largest_difference = difference[i];
    paired.largest_difference_step = static_cast<int64_t>(i) + 1;
  }
  const size_t norms = std::min(run.grad_norm.size(), reference.grad_norm.size());
  for (size_t i = after_warmup; i < norms; ++i) {
    const double ratio = run.grad_norm[i] / reference.grad_norm[i];
    if (std::isfinite(ratio)) norm_ratios.push_back(ratio);
  }
  find_spikes(run, reference, comparison.smoothing, paired.spikes);
}

int64_t skipped_steps(const RunCurve& run) {
  int64_t skipped = 0;
  for (size_t i = 0; i < run.loss.size(); ++i) {
    const double norm = i < run.grad_norm.size() ? run.grad_norm[i] : 0;
    skipped += std::isnan(run.loss[i]) || std::isnan(norm);
  }
  return skipped;
}

void summarize(PairedStatistics& paired) {
  std::vector<double> gaps, sizes, losses, references;
  for (const SeedGap& seed : paired.seeds) {
    gaps.push_back(seed.gap());
    sizes.push_back(std::abs(seed.gap()));
    losses.push_back(seed.loss);
    references.push_back(seed.reference);
  }
  paired.mean = mean_of(gaps);
  paired.sd = deviation_of(gaps);
  paired.mean_absolute = mean_of(sizes);
  paired.mean_loss = mean_of(losses);
  paired.reference_mean = mean_of(references);
  if (gaps.size() < 2) return;
  const auto n = static_cast<double>(gaps.size());
  const double half =
      student_t_95(static_cast<int64_t>(gaps.size()) - 1) * paired.sd / std::sqrt(n);
  paired.interval = Interval{paired.mean - half, paired.mean + half};
}

PairedStatistics paired_with(const RecipeRuns& references, const RecipeRuns& group,
                             const Finish& finish, const Comparison& comparison) {
  PairedStatistics paired = {.runs = static_cast<int64_t>(group.by_seed.size()),
                             .largest_difference = kUnknown};
  std::vector<double> norm_ratios;
  for (const auto& [seed, reference] : references.by_seed) {
    if (group.by_seed.contains(seed)) continue;
    paired.left_out.push_back(fmt::format("seed {}: no run of {}", seed, group.recipe));
  }
  for (const auto& [seed, run] : group.by_seed) {
    paired.skipped_steps += skipped_steps(*run);
    const auto reference = references.by_seed.find(seed);
    if (reference == references.by_seed.end()) {
      paired.left_out.push_back(fmt::format("seed {}: no run of bf16", seed));
      continue;
    }
    compare_training(*run, *reference->second, comparison, paired, norm_ratios);
    const std::string missing = what_is_missing(*run, finish);
    if (!what_is_missing(*reference->second, finish).empty()) {
      paired.left_out.push_back(
          fmt::format("seed {}: {} not complete", seed,
                      missing.empty() ? "bf16 is" : "neither it nor bf16 is"));
    } else if (!missing.empty()) {
      paired.failures.push_back(fmt::format("seed {}: {}", seed, missing));
    } else {
      paired.seeds.push_back(seed_gap(*run, *reference->second, finish));
    }
  }
  paired.grad_norm_ratio = median_of(std::move(norm_ratios));
  summarize(paired);
  return paired;
}

void describe_reference(const RecipeRuns& references, const Finish& finish,
                        Comparison& comparison) {
  std::vector<double> losses;
  for (const auto& [seed, run] : references.by_seed) {
    const std::string missing = what_is_missing(*run, finish);
    if (missing.empty()) {
      comparison.seeds.push_back(seed);
      losses.push_back(seed_gap(*run, *run, finish).reference);
    } else {
      comparison.notes.push_back(
          fmt::format("bf16, seed {}: {}; the seed is left out", seed, missing));
    }
  }
  comparison.reference_mean = mean_of(losses);
  comparison.reference_sd = deviation_of(losses);
}

void measure_noise(const RecipeRuns* control, const RecipeRuns& references, const Finish& finish,
                   Comparison& comparison) {
  comparison.noise_floor = kUnknown;
  if (control == nullptr) {
    comparison.notes.push_back(
        fmt::format("without runs of {} the noise floor is not known", control_recipe));
    return;
  }
  comparison.control = paired_with(references, *control, finish, comparison);
  const PairedStatistics& paired = *comparison.control;
  for (const auto* list : {&paired.failures, &paired.left_out}) {
    for (const std::string& seed : *list) {
      comparison.notes.push_back(fmt::format("{}, {}", control_recipe, seed));
    }
  }
  if (paired.mean_absolute == 0) {
    comparison.notes.push_back(
        fmt::format("{} equals bf16 exactly, so its weights were not moved: the noise floor is not "
                    "known",
                    control_recipe));
    return;
  }
  comparison.noise_floor = paired.interval ? paired.sd : paired.mean_absolute;
}

}  // namespace

bool costs_loss(std::string_view recipe) {
  const auto known = step::recipe_called(recipe);
  return known && step::traits(*known).costs_loss;
}

Comparison compare(std::span<const RunCurve> runs, const ComparisonSettings& settings) {
  const std::vector<RecipeRuns> groups = grouped(runs);
  const RecipeRuns* references = find_group(groups, reference_recipe);
  if (references == nullptr) {
    throw Error(Exit::usage, "There is no run in bf16 to compare with.",
                "Add runs in bf16 with the same seeds.");
  }
  const Finish finish = finish_of(runs);
  Comparison comparison = {.settings = settings,
                           .steps = finish.steps,
                           .smoothing = std::max<int64_t>(5, finish.steps / 50)};
  describe_reference(*references, finish, comparison);
  measure_noise(find_group(groups, control_recipe), *references, finish, comparison);
  for (const RecipeRuns& group : groups) {
    if (group.recipe == reference_recipe || group.recipe == control_recipe) continue;
    RecipeComparison one = {.recipe = group.recipe,
                            .paired = paired_with(*references, group, finish, comparison)};
    judge(one, comparison);
    comparison.recipes.push_back(std::move(one));
  }
  return comparison;
}

double student_t_95(int64_t freedom) {
  // NIST/SEMATECH e-Handbook of Statistical Methods, 1.3.6.7.2.
  constexpr std::array<double, 30> quantiles = {
      6.314, 2.920, 2.353, 2.132, 2.015, 1.943, 1.895, 1.860, 1.833, 1.812,
      1.796, 1.782, 1.771, 1.761, 1.753, 1.746, 1.740, 1.734, 1.729, 1.725,
      1.721, 1.717, 1.714, 1.711, 1.708, 1.706, 1.703, 1.701, 1.699, 1.697};
  constexpr double normal = 1.645;
  check(freedom >= 1, "Student's t has at least one degree of freedom");
  return freedom <= std::ssize(quantiles) ? quantiles[static_cast<size_t>(freedom - 1)] : normal;
}

std::vector<double> smoothed_difference(const RunCurve& run, const RunCurve& reference,
                                        int64_t window) {
  std::vector<double> difference(std::min(run.loss.size(), reference.loss.size()));
  for (size_t i = 0; i < difference.size(); ++i) difference[i] = run.loss[i] - reference.loss[i];
  return report::smoothed(difference, static_cast<size_t>(window));
}

}  // namespace plimsoll::compare

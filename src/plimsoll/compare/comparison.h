// Statistics of `plimsoll compare`: does training under a recipe reach the loss of bf16?
//
// Runs are paired: a recipe and bf16 with the same seed have the same initial weights and the same
// order of data, so that their difference is free of both. Seeds give the differences a spread, and
// bf16 from weights one ulp away (the control) says how far rounding alone moves a run.
//
// Equivalence is shown by two one-sided t-tests (Schuirmann 1987): the 90 % interval of the mean
// difference must lie inside +-margin. A difference that merely is not significant shows nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace plimsoll::compare {

inline constexpr std::string_view reference_recipe = "bf16";
inline constexpr std::string_view control_recipe = "bf16+1ulp";

struct RunCurve {
  std::string recipe;  // reference_recipe, control_recipe, or what is compared: "mxfp8", "nvfp4"
  int64_t seed = 0;
  std::vector<double> loss, grad_norm;  // one entry a step from step 1 on; NaN where skipped
  std::vector<std::pair<int64_t, double>> validation;  // step, nats a token; steps ascend
  std::string failure;                                 // why it stopped; empty: it did not
};

struct ComparisonSettings {
  int64_t warmup_steps = 0;
  double margin = 0.010;  // nats; recipes of 8 and 16 bits
  // nats; the gap of recipes that cost loss (4 bits) must lie between the two. At or below the
  // lower one, quantisation does not look active: 4 bits cost some loss. The upper one is 1.3 times
  // 0.08, the highest gap that small models (30M to 200M parameters, up to 100 tokens a parameter)
  // show in the published runs of Quartet II.
  double nvfp4_lowest = 0;
  double nvfp4_highest = 1.3 * 0.08;
};

// Whether the recipe of this name costs some loss as published (step/recipe.h).
bool costs_loss(std::string_view recipe);

struct Interval {
  double low = 0;
  double high = 0;
};

struct SeedGap {
  int64_t seed = 0;
  double reference = 0;  // final loss of bf16, nats
  double loss = 0;       // final loss under the recipe
  double gap() const { return loss - reference; }
};

struct LossSpike {
  int64_t seed = 0;
  int64_t step = 0;
  double above = 0;  // nats over the mean of the steps before
};

// One recipe against bf16. What is not known is NaN.
struct PairedStatistics {
  int64_t runs = 0;            // of the recipe, complete or not
  std::vector<SeedGap> seeds;  // the pairs of which both runs are complete
  double reference_mean = 0, mean_loss = 0;
  double mean = 0;                   // of the gaps, nats
  double sd = 0;                     // of the gaps, with n - 1; 0 for one pair
  double mean_absolute = 0;          // of the gaps
  std::optional<Interval> interval;  // 90 %, of the mean gap; from two pairs on
  // The smoothed training loss minus bf16's, where the two were farthest apart after the warm-up;
  // of all pairs, incomplete ones too, as are the norms and the spikes.
  double largest_difference = 0;
  int64_t largest_difference_step = 0;
  double grad_norm_ratio = 0;  // median over the steps after the warm-up of all pairs
  std::vector<LossSpike> spikes;
  int64_t skipped_steps = 0;  // without a loss or a gradient norm
  // "seed 3: ended after 80 of 100 steps": runs of the recipe that are not complete though bf16's
  // of the same seed is.
  std::vector<std::string> failures;
  std::vector<std::string> left_out;  // "seed 4: bf16 is not complete": pairs that are not

  double percent() const { return 100 * mean / reference_mean; }
};

enum class Verdict {
  equivalent,          // the interval lies inside +-margin
  within_noise,        // the interval does not, but rounding alone may make such a mean
  gap,                 // else: the interval excludes 0 and is not inside +-margin
  small_positive_gap,  // nvfp4: the interval lies between nvfp4_lowest and nvfp4_highest
  too_large,           // the interval lies wholly above what the recipe may cost
  inactive,            // nothing suggests that anything was quantised
  inconclusive,        // more seeds are needed
  failed,              // a run of the recipe is not complete
};

std::string_view name(Verdict verdict);  // "small positive gap"
bool is_good(Verdict verdict);           // equivalent or small_positive_gap

struct RecipeComparison {
  std::string recipe;
  PairedStatistics paired;
  double difference_limit = 0;  // of paired.largest_difference: 3 noise floors and the margin
  Verdict verdict = Verdict::inconclusive;
  std::string reason;                 // one sentence with the numbers, without a full stop
  std::vector<std::string> warnings;  // what else looks wrong on the way to the final loss
};

struct Comparison {
  ComparisonSettings settings;
  int64_t steps = 0;           // of the longest run
  int64_t smoothing = 0;       // steps in the mean that smooths training losses
  std::vector<int64_t> seeds;  // of the complete bf16 runs
  double reference_mean = 0;   // final loss of bf16 over them, nats
  double reference_sd = 0;     // from seed to seed; 0 for one
  std::optional<PairedStatistics> control;
  double noise_floor = 0;  // sd of the control's gaps (their size for one seed); NaN without
  std::vector<RecipeComparison> recipes;  // in the order of their first runs
  std::vector<std::string> notes;         // about the comparison as a whole
};

// The final loss of a run is the mean of its validation losses in the last 10 % of the steps, at
// least the last one, over the validations that both runs of a pair have. A run is complete when it
// has no failure, as many steps and as late a validation as any other, and a finite final loss.
// Raises Exit::usage without a bf16 run, and for two runs of the same recipe and seed.
Comparison compare(std::span<const RunCurve> runs, const ComparisonSettings& settings);

// The 95 % quantile of Student's t with `freedom` >= 1 degrees of freedom: half a 90 % interval.
// Above 30 degrees the normal distribution's.
double student_t_95(int64_t freedom);

// Loss of `run` minus that of `reference`, a step, smoothed over `window` steps; as long as the
// shorter of the two. NaN only where no step nearby has both losses.
std::vector<double> smoothed_difference(const RunCurve& run, const RunCurve& reference,
                                        int64_t window);

}  // namespace plimsoll::compare

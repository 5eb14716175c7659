#include "plimsoll/compare/comparison.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <random>
#include <string>
#include <vector>

#include "plimsoll/base/error.h"
#include "plimsoll/compare/report.h"

namespace plimsoll::compare {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr int64_t steps = 100;

// A run whose training and validation losses are bf16's of its seed plus `gap` everywhere.
RunCurve run_of(const std::string& recipe, int64_t seed, double gap) {
  const double loss = 3 + 0.1 * static_cast<double>(seed) + gap;
  RunCurve run = {.recipe = recipe, .seed = seed};
  run.loss.assign(steps, loss);
  run.grad_norm.assign(steps, 1.0);
  for (int64_t step = 25; step <= steps; step += 25) run.validation.push_back({step, loss});
  return run;
}

void add(std::vector<RunCurve>& runs, const std::string& recipe, const std::vector<double>& gaps) {
  for (size_t i = 0; i < gaps.size(); ++i) {
    runs.push_back(run_of(recipe, static_cast<int64_t>(i), gaps[i]));
  }
}

// bf16 and a control of noise floor 0.0018257 in four seeds.
std::vector<RunCurve> references() {
  std::vector<RunCurve> runs;
  add(runs, "bf16", {0, 0, 0, 0});
  add(runs, "bf16+1ulp", {0.001, -0.001, 0.002, -0.002});
  return runs;
}

std::vector<RunCurve> with_gaps(const std::string& recipe, const std::vector<double>& gaps) {
  std::vector<RunCurve> runs = references();
  add(runs, recipe, gaps);
  return runs;
}

const ComparisonSettings settings = {.warmup_steps = 10};

RecipeComparison only_recipe(const std::vector<RunCurve>& runs,
                             const ComparisonSettings& with = settings) {
  const Comparison comparison = compare(runs, with);
  EXPECT_EQ(comparison.recipes.size(), 1u);
  return comparison.recipes.at(0);
}

RecipeComparison judged(const std::string& recipe, const std::vector<double>& gaps) {
  return only_recipe(with_gaps(recipe, gaps));
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// Whether one of the warnings holds `part`.
bool warns(const RecipeComparison& one, const std::string& part) {
  return std::ranges::any_of(one.warnings,
                             [&](const std::string& warning) { return contains(warning, part); });
}

TEST(Comparison, ComputesMeanSpreadAndIntervalOfThePairedGaps) {
  const RecipeComparison one = judged("mxfp8", {0.001, 0.002, 0.003, 0.006});
  ASSERT_EQ(one.paired.seeds.size(), 4u);
  EXPECT_NEAR(one.paired.mean, 0.003, 1e-12);
  EXPECT_NEAR(one.paired.sd, std::sqrt(14e-6 / 3), 1e-12);
  ASSERT_TRUE(one.paired.interval);
  EXPECT_NEAR(one.paired.interval->low, 0.003 - 2.353 * std::sqrt(14e-6 / 3) / 2, 1e-12);
  EXPECT_NEAR(one.paired.interval->high, 0.003 + 2.353 * std::sqrt(14e-6 / 3) / 2, 1e-12);
  EXPECT_NEAR(one.paired.reference_mean, 3.15, 1e-12);
  EXPECT_NEAR(one.paired.percent(), 0.3 / 3.15, 1e-9);
}

TEST(Comparison, TakesTheNoiseFloorFromTheControl) {
  const Comparison comparison = compare(with_gaps("mxfp8", {0, 0.001, 0, 0}), settings);
  EXPECT_NEAR(comparison.noise_floor, std::sqrt(10e-6 / 3), 1e-12);
  EXPECT_NEAR(comparison.control->mean_absolute, 0.0015, 1e-12);
  EXPECT_NEAR(comparison.recipes[0].difference_limit, 3 * std::sqrt(10e-6 / 3) + 0.010, 1e-12);
  EXPECT_NEAR(comparison.reference_sd, 0.1 * std::sqrt(5.0 / 3), 1e-12);
}

TEST(Comparison, AveragesTheValidationsOfTheLastTenthThatBothRunsHave) {
  std::vector<RunCurve> runs = {run_of("bf16", 0, 0), run_of("mxfp8", 0, 0)};
  runs[0].validation = {{90, 9}, {91, 3.0}, {95, 3.2}, {98, 7}, {100, 3.1}};
  runs[1].validation = {{90, 5}, {91, 3.3}, {95, 3.2}, {100, 3.4}};
  const RecipeComparison one = only_recipe(runs);
  EXPECT_NEAR(one.paired.reference_mean, 3.1, 1e-12);
  EXPECT_NEAR(one.paired.mean_loss, 3.3, 1e-12);
}

TEST(Comparison, UsesTheLastValidationWhereTheLastTenthHasNone) {
  std::vector<RunCurve> runs = {run_of("bf16", 0, 0), run_of("mxfp8", 0, 0)};
  runs[0].validation = {{40, 9}, {80, 3.0}};
  runs[1].validation = {{40, 5}, {80, 3.5}};
  EXPECT_NEAR(only_recipe(runs).paired.mean, 0.5, 1e-12);
}

TEST(Comparison, PairsBySeedWhateverTheOrderOfTheRuns) {
  std::vector<RunCurve> runs = with_gaps("mxfp8", {0.001, 0.002, 0.003, 0.006});
  const std::string before = comparison_json(compare(runs, settings)).dump();
  std::ranges::reverse(runs);
  EXPECT_EQ(comparison_json(compare(runs, settings)).dump(), before);
}

// 4 bit recipes have limits of their own, other recipes the margin.
TEST(Verdicts, FollowTheInterval) {
  struct Case {
    std::string recipe;
    std::vector<double> gaps;
    Verdict verdict;
    std::string reason;
  };
  const std::vector<Case> cases = {
      {"mxfp8", {0.001, 0.002, 0.003, 0.006}, Verdict::equivalent, "+0.0005 to +0.0055 nats, lies"},
      {"mxfp8", {0.012, -0.010, 0.009, -0.007}, Verdict::within_noise, "noise floor of 0.0018"},
      {"mxfp8", {0.019, -0.003, 0.016, 0.000}, Verdict::inconclusive, "holds 0"},
      {"mxfp8", {0.008, 0.010, 0.012, 0.010}, Verdict::gap, "not inside +-0.010"},
      {"mxfp8", {-0.008, -0.010, -0.012, -0.010}, Verdict::gap, "excludes 0"},
      {"mxfp8", {0.018, 0.020, 0.022, 0.020}, Verdict::too_large, "wholly above the margin"},
      {"mxfp8", {0, 0, 0, 0}, Verdict::inactive, "not active"},
      {"nvfp4", {0.05, 0.06, 0.07, 0.06}, Verdict::small_positive_gap, "between 0.000 and 0.104"},
      {"nvfp4", {0.20, 0.21, 0.22, 0.21}, Verdict::too_large, "above 0.104"},
      {"nvfp4", {-0.010, -0.012, -0.009, -0.011}, Verdict::inactive, "nowhere above 0.000"},
      {"nvfp4", {0, 0, 0, 0}, Verdict::inactive, "not active"},
      {"nvfp4", {-0.01, 0.02, 0.03, 0.00}, Verdict::inconclusive, "not wholly between"},
      {"nvfp4", {0.05, 0.10, 0.15, 0.10}, Verdict::inconclusive, "not wholly between"},
  };
  for (const Case& c : cases) {
    const RecipeComparison one = judged(c.recipe, c.gaps);
    EXPECT_EQ(name(one.verdict), name(c.verdict)) << one.reason;
    EXPECT_TRUE(contains(one.reason, c.reason)) << one.reason;
  }
}

TEST(Verdicts, SuspectAGapOf4BitsThatIsNotAboveTheLowestExpected) {
  const RecipeComparison one =
      only_recipe(with_gaps("nvfp4", {0.005, 0.006, 0.007, 0.006}), {.nvfp4_lowest = 0.010});
  EXPECT_EQ(one.verdict, Verdict::inactive) << one.reason;
}

TEST(Verdicts, SayHowManySeedsWouldDecide) {
  // 1.645 * 0.011106 / sqrt(n) falls below 0.010 - 0.008 at n = 84.
  const RecipeComparison one = judged("mxfp8", {0.019, -0.003, 0.016, 0.000});
  EXPECT_TRUE(contains(one.reason, "about 84 seeds with this spread would decide")) << one.reason;
}

TEST(Verdicts, NeedTwoSeedsForMoreThanAGuess) {
  std::vector<RunCurve> runs = {run_of("bf16", 0, 0), run_of("bf16+1ulp", 0, -0.002),
                                run_of("mxfp8", 0, 0.003)};
  RecipeComparison one = only_recipe(runs);
  EXPECT_FALSE(one.paired.interval);
  EXPECT_EQ(one.verdict, Verdict::within_noise) << one.reason;
  EXPECT_NEAR(compare(runs, settings).noise_floor, 0.002, 1e-12);

  runs[2] = run_of("mxfp8", 0, 0.005);
  EXPECT_EQ(only_recipe(runs).verdict, Verdict::inconclusive);
  runs[2] = run_of("nvfp4", 0, 0.003);
  EXPECT_EQ(only_recipe(runs).verdict, Verdict::inconclusive);
  runs[2] = run_of("mxfp8", 0, 0);
  EXPECT_EQ(only_recipe(runs).verdict, Verdict::inactive);
}

TEST(Verdicts, PassATrueGapAsLargeAsTheMarginInOneOfTwentyComparisons) {
  std::mt19937_64 random(2026);
  std::normal_distribution<double> gap(0.010, 0.002);
  int passed = 0;
  constexpr int trials = 4000;
  for (int trial = 0; trial < trials; ++trial) {
    std::vector<RunCurve> runs;
    for (int64_t seed = 0; seed < 4; ++seed) {
      runs.push_back({.recipe = "bf16", .seed = seed, .loss = {3}, .validation = {{1, 3}}});
      runs.push_back(
          {.recipe = "mxfp8", .seed = seed, .loss = {3}, .validation = {{1, 3 + gap(random)}}});
    }
    passed += compare(runs, {}).recipes[0].verdict == Verdict::equivalent;
  }
  EXPECT_NEAR(static_cast<double>(passed) / trials, 0.05, 0.012);
}

TEST(Failures, AreRunsThatStopEndEarlyOrEndWithoutALoss) {
  const auto failed = [](const auto& damage, const std::string& reason) {
    std::vector<RunCurve> runs = with_gaps("mxfp8", {0.001, 0.002, 0.003, 0.006});
    damage(runs.back());
    const RecipeComparison one = only_recipe(runs);
    EXPECT_EQ(name(one.verdict), name(Verdict::failed));
    EXPECT_EQ(one.reason, "1 of 4 runs failed; seed 3: " + reason);
    EXPECT_EQ(one.paired.seeds.size(), 3u);
    EXPECT_NEAR(one.paired.mean, 0.002, 1e-12);
  };
  failed([](RunCurve& run) { run.failure = "The loss is nan.\nLower the rate."; },
         "The loss is nan");
  failed([](RunCurve& run) { run.loss.resize(80); }, "ended after 80 of 100 steps");
  failed([](RunCurve& run) { run.validation.back().second = nan; },
         "the validation loss at step 100 is not finite");
  failed([](RunCurve& run) { run.validation.pop_back(); }, "no validation loss at step 100");
  failed([](RunCurve& run) { run = {.recipe = run.recipe, .seed = run.seed}; },
         "ended after 0 of 100 steps");
}

TEST(Failures, OfBf16LeaveTheirSeedOut) {
  std::vector<RunCurve> runs = with_gaps("mxfp8", {0.001, 0.002, 0.003, 0.006});
  runs[3].failure = "The loss is nan.";
  const Comparison comparison = compare(runs, settings);
  const RecipeComparison& one = comparison.recipes[0];
  EXPECT_EQ(one.verdict, Verdict::equivalent) << one.reason;
  EXPECT_EQ(one.paired.seeds.size(), 3u);
  EXPECT_TRUE(warns(one, "seed 3: bf16 is not complete"));
  EXPECT_EQ(comparison.seeds, (std::vector<int64_t>{0, 1, 2}));
  EXPECT_EQ(comparison.notes.at(0), "bf16, seed 3: The loss is nan; the seed is left out");
}

TEST(Failures, OfAllBf16RunsDecideNothing) {
  std::vector<RunCurve> runs = {run_of("bf16", 0, 0), run_of("mxfp8", 0, 0.001)};
  runs[0].failure = "The loss is nan.";
  EXPECT_EQ(only_recipe(runs).verdict, Verdict::inconclusive);
  EXPECT_FALSE(comparison_html(compare(runs, settings), runs, "").empty());
}

TEST(Comparison, LeavesOutSeedsWithoutAPartnerAndSaysSo) {
  std::vector<RunCurve> runs = with_gaps("mxfp8", {0.001, 0.002});
  runs.push_back(run_of("mxfp8", 9, 5.0));
  const RecipeComparison one = only_recipe(runs);
  EXPECT_EQ(one.paired.seeds.size(), 2u);
  EXPECT_NEAR(one.paired.mean, 0.0015, 1e-12);
  EXPECT_TRUE(warns(one, "seed 9: no run of bf16"));
  EXPECT_TRUE(warns(one, "seed 2: no run of mxfp8"));
}

TEST(Comparison, DoesWithoutAControl) {
  std::vector<RunCurve> runs;
  add(runs, "bf16", {0, 0, 0, 0});
  add(runs, "mxfp8", {0.012, -0.010, 0.009, -0.007});
  const Comparison comparison = compare(runs, settings);
  EXPECT_TRUE(std::isnan(comparison.noise_floor));
  EXPECT_EQ(comparison.recipes[0].verdict, Verdict::inconclusive);  // no noise to be within
  EXPECT_TRUE(comparison.recipes[0].warnings.empty());
  EXPECT_TRUE(contains(comparison.notes.at(0), "without runs of bf16+1ulp"));
}

TEST(Comparison, DoesNotTakeAControlThatNeverMovedForAQuietOne) {
  std::vector<RunCurve> runs;
  add(runs, "bf16", {0, 0});
  add(runs, "bf16+1ulp", {0, 0});
  const Comparison comparison = compare(runs, settings);
  EXPECT_TRUE(std::isnan(comparison.noise_floor));
  EXPECT_TRUE(contains(comparison.notes.at(0), "equals bf16 exactly"));
}

TEST(Comparison, RefusesRunsThatCannotBePaired) {
  const auto refused = [](const std::vector<RunCurve>& runs) {
    try {
      compare(runs, settings);
    } catch (const Error& error) {
      return error.code() == Exit::usage;
    }
    return false;
  };
  EXPECT_TRUE(refused({}));
  EXPECT_TRUE(refused({run_of("mxfp8", 0, 0)}));
  EXPECT_TRUE(refused({run_of("bf16", 0, 0), run_of("bf16", 0, 0)}));
}

TEST(TrainingLosses, MayNotStrayFromBf16AfterTheWarmup) {
  std::vector<RunCurve> runs = with_gaps("mxfp8", {0.001, 0.002, 0.003, 0.006});
  for (size_t i = 0; i < 7; ++i) runs.back().loss[i] += 9;  // steps 1 to 7: within the warm-up
  EXPECT_TRUE(only_recipe(runs).warnings.empty());

  for (size_t i = 49; i < 54; ++i) runs.back().loss[i] -= 0.1;  // steps 50 to 54
  const RecipeComparison one = only_recipe(runs);
  EXPECT_NEAR(one.paired.largest_difference, 0.006 - 0.1, 1e-9);
  EXPECT_EQ(one.paired.largest_difference_step, 52);
  EXPECT_TRUE(warns(one, "-0.0940 nats from bf16's at step 52"));
  EXPECT_EQ(one.verdict, Verdict::equivalent);
}

TEST(TrainingLosses, SpikeOnlyWhereBf16DoesNot) {
  std::vector<RunCurve> runs = {run_of("bf16", 0, 0), run_of("mxfp8", 0, 0.001)};
  runs[1].loss[39] += 0.5;
  runs[1].loss[59] += 0.5;
  runs[0].loss[61] += 0.3;  // two steps later
  runs[1].loss[79] += 0.19;
  const RecipeComparison one = only_recipe(runs);
  ASSERT_EQ(one.paired.spikes.size(), 1u);
  EXPECT_EQ(one.paired.spikes[0].step, 40);
  EXPECT_NEAR(one.paired.spikes[0].above, 0.5, 1e-9);
  EXPECT_TRUE(warns(one, "spikes in 1 step where bf16's does not, most by 0.50 nats at step 40"));
}

TEST(TrainingLosses, ThatAreMissingAreSkippedSteps) {
  std::vector<RunCurve> runs = with_gaps("fp16", {0.001, 0.002, 0.003, 0.006});
  runs.back().loss[20] = nan;
  runs.back().grad_norm[20] = nan;
  runs.back().grad_norm[30] = nan;
  const RecipeComparison one = only_recipe(runs);
  EXPECT_EQ(one.paired.skipped_steps, 2);
  EXPECT_EQ(one.verdict, Verdict::equivalent);
  EXPECT_NEAR(one.paired.largest_difference, 0.006, 1e-9);
}

TEST(GradientNorms, MayDifferBy2PercentAndOf4BitsBy10) {
  const auto with_ratio = [](const std::string& recipe, double ratio) {
    std::vector<RunCurve> runs = with_gaps(recipe, {0.05, 0.06, 0.07, 0.06});
    for (RunCurve& run : runs) {
      if (run.recipe == recipe) run.grad_norm.assign(steps, ratio);
      run.grad_norm[50] = 1e9;  // a median does not mind
    }
    return only_recipe(runs);
  };
  EXPECT_NEAR(with_ratio("mxfp8", 1.05).paired.grad_norm_ratio, 1.05, 1e-12);
  EXPECT_TRUE(warns(with_ratio("mxfp8", 1.05), "1.050 times bf16's"));
  EXPECT_FALSE(warns(with_ratio("mxfp8", 1.01), "gradient norm"));
  EXPECT_FALSE(warns(with_ratio("nvfp4", 1.05), "gradient norm"));
  EXPECT_TRUE(warns(with_ratio("nvfp4", 0.85), "0.850 times bf16's"));
}

TEST(StudentT, HasItsQuantiles) {
  for (int64_t freedom = 1; freedom <= 30; ++freedom) {
    // The density integrated from 0 to the quantile by Simpson's rule gives 0.45.
    const auto v = static_cast<double>(freedom);
    const double scale =
        std::exp(std::lgamma((v + 1) / 2) - std::lgamma(v / 2)) / std::sqrt(v * std::numbers::pi);
    constexpr int parts = 400;
    const double h = student_t_95(freedom) / parts;
    double sum = 0;
    for (int i = 0; i <= parts; ++i) {
      const double weight = i == 0 || i == parts ? 1 : i % 2 == 1 ? 4 : 2;
      sum += weight * std::pow(1 + h * i * h * i / v, -(v + 1) / 2);
    }
    EXPECT_NEAR(scale * sum * h / 3, 0.45, 1e-4) << freedom << " degrees";
  }
  EXPECT_EQ(student_t_95(31), 1.645);
  EXPECT_THROW(student_t_95(0), Error);
}

std::vector<RunCurve> every_kind_of_run() {
  std::vector<RunCurve> runs = references();
  add(runs, "fp16", {0, 0, 0, 0});
  add(runs, "fp8_current", {0.001, 0.002, 0.003, 0.006});
  add(runs, "fp8_block", {0.008, 0.010, 0.012, 0.010});
  add(runs, "mxfp8", {0.003});
  add(runs, "nvfp4", {0.05, 0.06, 0.07, 0.06});
  runs.back().failure = "The loss is nan.";
  return runs;
}

TEST(ComparisonOutput, SaysTheSameInTextJsonAndPage) {
  const std::vector<RunCurve> runs = every_kind_of_run();
  const Comparison comparison = compare(runs, settings);
  const std::string text = comparison_text(comparison, "3M parameters");
  const std::string html = comparison_html(comparison, runs, "3M parameters");
  const nlohmann::ordered_json json = comparison_json(comparison);
  for (const std::string* out : {&text, &html}) {
    EXPECT_TRUE(contains(*out, "3M parameters"));
    EXPECT_TRUE(contains(*out, fmt::format("{:.4f}", json["bf16"]["loss"].get<double>())));
    EXPECT_TRUE(contains(*out, fmt::format("{:.4f}", json["noise_floor_nats"].get<double>())));
    EXPECT_EQ(json["recipes"].size(), 5u);
    for (const auto& one : json["recipes"]) {
      std::string verdict = one["verdict"];
      std::ranges::replace(verdict, '_', ' ');
      for (const std::string& part :
           {one["recipe"].get<std::string>(), verdict,
            fmt::format("{:+.4f}", one["gap_nats"].get<double>()),
            fmt::format("{:+.2f}", one["gap_percent"].get<double>()),
            fmt::format("{:.4f}", one["loss"].get<double>()),
            fmt::format("{:.3f}", one["grad_norm_ratio"].get<double>())}) {
        EXPECT_TRUE(contains(*out, part)) << "missing: " << part;
      }
      if (one["interval_90_nats"].is_null()) continue;
      const double low = one["interval_90_nats"][0], high = one["interval_90_nats"][1];
      EXPECT_TRUE(contains(*out, fmt::format("{:+.4f} to {:+.4f}", low, high)));
    }
  }
}

TEST(ComparisonOutput, HasNullForWhatIsNotKnown) {
  const std::vector<RunCurve> runs = {run_of("bf16", 0, 0), run_of("mxfp8", 1, 0)};
  const Comparison comparison = compare(runs, settings);
  const nlohmann::ordered_json json =
      nlohmann::ordered_json::parse(comparison_json(comparison).dump());
  EXPECT_TRUE(json["recipes"][0]["gap_nats"].is_null());
  EXPECT_TRUE(json["recipes"][0]["interval_90_nats"].is_null());
  EXPECT_TRUE(json["noise_floor_nats"].is_null());
  EXPECT_TRUE(json["control"].is_null());
  const std::string text = comparison_text(comparison, "");
  EXPECT_FALSE(contains(text, "nan")) << text;
  EXPECT_FALSE(contains(comparison_html(comparison, runs, ""), ">nan<"));
}

TEST(ComparisonOutput, IsAPageThatNeedsNothingFromOutside) {
  const std::vector<RunCurve> runs = every_kind_of_run();
  const Comparison comparison = compare(runs, settings);
  std::string html = comparison_html(comparison, runs, "</p><script>&\"");
  for (const char* part : {"Training loss minus bf16", "Validation loss", "bf16 + 1 ulp",
                           "What the test means", "&plusmn;0.010"}) {
    EXPECT_TRUE(contains(html, part)) << "missing: " << part;
  }
  const std::string name_space = "http://www.w3.org/2000/svg";
  for (size_t at = html.find(name_space); at != std::string::npos; at = html.find(name_space)) {
    html.erase(at, name_space.size());
  }
  for (const char* outside : {"http", "src=", "href=", "url(", "@import", "<script"}) {
    EXPECT_FALSE(contains(html, outside)) << outside;
  }
  EXPECT_TRUE(contains(comparison_svg(comparison, runs), "Training loss minus bf16"));
}

TEST(Comparison, ExpectsALossOfTheRecipesWhoseTableRowSaysSo) {
  EXPECT_TRUE(costs_loss("nvfp4"));
  for (const char* recipe : {"bf16", "bf16_ulp", "fp16", "fp8_delayed", "mxfp8", "nvfp4x", ""}) {
    EXPECT_FALSE(costs_loss(recipe)) << recipe;
  }
}

}  // namespace
}  // namespace plimsoll::compare

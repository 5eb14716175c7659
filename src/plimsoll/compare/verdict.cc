#include "plimsoll/compare/verdict.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "plimsoll/base/error.h"
#include "plimsoll/compare/words.h"

namespace plimsoll::compare {

namespace {

constexpr double kNormTolerance = 0.02;   // of the median ratio of gradient norms
constexpr double kNormTolerance4 = 0.10;  // the same of nvfp4


// How many seeds would bring half an interval below `room` if the spread stayed; 0: very many.
int64_t seeds_needed(double sd, double room) {
  constexpr int64_t most = 200;
  if (!(room > 0)) return 0;
  for (int64_t n = 2; n <= most; ++n) {
    if (student_t_95(n - 1) * sd / std::sqrt(static_cast<double>(n)) < room) return n;
  }
  return 0;
}

std::string seeds_advice(const PairedStatistics& paired, double room) {
  const int64_t needed = seeds_needed(paired.sd, room);
  if (needed <= static_cast<int64_t>(paired.seeds.size())) return {};
  return fmt::format("; about {} seeds with this spread would decide", needed);
}

struct Judgement {
  Verdict verdict = Verdict::inconclusive;
  std::string reason;
};

// A sentence that begins with the interval.
std::string about_interval(const PairedStatistics& paired, std::string_view rest) {
  return fmt::format("the 90 % interval of the gap, {} nats, {}", interval_text(*paired.interval),
                     rest);
}

Judgement judge_4_bits(const PairedStatistics& paired, const ComparisonSettings& settings) {
  const Interval interval = *paired.interval;
  const double lowest = settings.nvfp4_lowest, highest = settings.nvfp4_highest;
  const std::string range = fmt::format("{} and {} nats", limit_text(lowest), limit_text(highest));
  if (interval.high <= lowest) {
    return {Verdict::inactive,
            about_interval(paired, fmt::format("is nowhere above {}; 4 bits cost some loss, so "
                                               "nothing suggests that anything was quantised",
                                               limit_text(lowest)))};
  }
  if (interval.low > highest) {
    return {
        Verdict::too_large,
        about_interval(paired, fmt::format("lies wholly above {}, the most that 4 bits may cost",
                                           limit_text(highest)))};
  }
  if (interval.low > lowest && interval.high <= highest) {
    return {Verdict::small_positive_gap,
            about_interval(paired, fmt::format("lies between {}, as expected of 4 bits", range))};
  }
  const double room = std::min(paired.mean - lowest, highest - paired.mean);
  return {Verdict::inconclusive,
          about_interval(paired, fmt::format("is not wholly between {}, as is expected of 4 bits{}",
                                             range, seeds_advice(paired, room)))};
}

Judgement judge_8_bits(const PairedStatistics& paired, const ComparisonSettings& settings,
                       double noise_floor) {
  const Interval interval = *paired.interval;
  const std::string margin = limit_text(settings.margin);
  if (-settings.margin < interval.low && interval.high < settings.margin) {
    return {Verdict::equivalent, about_interval(paired, fmt::format("lies inside +-{}", margin))};
  }
  if (interval.low > settings.margin) {
    return {Verdict::too_large,
            about_interval(paired, fmt::format("lies wholly above the margin of {}", margin))};
  }
  const std::string advice = seeds_advice(paired, settings.margin - std::abs(paired.mean));
  // Two standard errors of the mean if rounding alone made the gaps.
  const double noise = 2 * noise_floor / std::sqrt(static_cast<double>(paired.seeds.size()));
  if (std::abs(paired.mean) <= noise) {
    return {Verdict::within_noise,
            about_interval(paired,
                           fmt::format("reaches beyond +-{}, but the mean, {}, is within +-{:.4f}, "
                                       "what a noise floor of {:.4f} does to the mean of {}{}",
                                       margin, signed_nats(paired.mean), noise, noise_floor,
                                       paired.seeds.size(), advice))};
  }
  if (interval.low > 0 || interval.high < 0) {
    return {Verdict::gap,
            about_interval(paired, fmt::format("excludes 0 and is not inside +-{}", margin))};
  }
  return {Verdict::inconclusive,
          about_interval(paired, fmt::format("holds 0 and reaches beyond +-{}{}", margin, advice))};
}

// One seed has no interval.
Judgement judge_one_seed(const PairedStatistics& paired, bool four_bits, double noise_floor) {
  if (!four_bits && std::abs(paired.mean) <= 2 * noise_floor) {
    return {
        Verdict::within_noise,
        fmt::format("the gap of the one seed, {} nats, is within twice the noise floor of {:.4f}; "
                    "an interval needs two or more",
                    signed_nats(paired.mean), noise_floor)};
  }
  return {Verdict::inconclusive,
          fmt::format("the gap of the one seed is {} nats; an interval needs two or more",
                      signed_nats(paired.mean))};
}

Judgement judgement_of(const std::string& recipe, const PairedStatistics& paired,
                       const ComparisonSettings& settings, double noise_floor) {
  if (!paired.failures.empty()) {
    return {Verdict::failed, fmt::format("{} of {} runs failed; {}", paired.failures.size(),
                                         paired.runs, fmt::join(paired.failures, "; "))};
  }
  if (paired.seeds.empty()) {
    return {Verdict::inconclusive, "no seed has a complete run of both the recipe and bf16"};
  }
  if (std::ranges::all_of(paired.seeds, [](const SeedGap& s) { return s.gap() == 0; })) {
    return {
        Verdict::inactive,
        "the final losses equal bf16's exactly, in every seed: the quantisation was not active"};
  }
  if (!paired.interval) return judge_one_seed(paired, costs_loss(recipe), noise_floor);
  return costs_loss(recipe) ? judge_4_bits(paired, settings)
                            : judge_8_bits(paired, settings, noise_floor);
}

std::string spike_warning(const std::vector<LossSpike>& spikes) {
  const LossSpike& worst = *std::ranges::max_element(spikes, {}, &LossSpike::above);
  return fmt::format(
      "the loss spikes in {} step{} where bf16's does not, most by {:.2f} nats at "
      "step {} of seed {}",
      spikes.size(), spikes.size() == 1 ? "" : "s", worst.above, worst.step, worst.seed);
}

std::vector<std::string> warnings_about(const RecipeComparison& one, const Comparison& comparison) {
  const PairedStatistics& paired = one.paired;
  std::vector<std::string> warnings;
  if (std::abs(paired.largest_difference) > one.difference_limit) {
    std::string warning = fmt::format(
        "the smoothed training loss was {} nats from bf16's at step {}, beyond three noise floors "
        "and the margin, {:.4f}",
        signed_nats(paired.largest_difference), paired.largest_difference_step,
        one.difference_limit);
    if (comparison.control) {
      warning += fmt::format("; the control came as far as {}",
                             signed_nats(comparison.control->largest_difference));
    }
    warnings.push_back(std::move(warning));
  }
  if (!paired.spikes.empty()) warnings.push_back(spike_warning(paired.spikes));
  const double tolerance = costs_loss(one.recipe) ? kNormTolerance4 : kNormTolerance;
  if (std::abs(paired.grad_norm_ratio - 1) > tolerance) {
    warnings.push_back(
        fmt::format("the gradient norm is {:.3f} times bf16's (median over the steps after the "
                    "warm-up); within {:.0f} % is expected",
                    paired.grad_norm_ratio, 100 * tolerance));
  }
  for (const std::string& pair : paired.left_out) warnings.push_back("left out: " + pair);
  return warnings;
}

}  // namespace

void judge(RecipeComparison& one, const Comparison& comparison) {
  const ComparisonSettings& settings = comparison.settings;
  one.difference_limit = 3 * comparison.noise_floor +
                         (costs_loss(one.recipe) ? settings.nvfp4_highest : settings.margin);
  Judgement judgement = judgement_of(one.recipe, one.paired, settings, comparison.noise_floor);
  one.verdict = judgement.verdict;
  one.reason = std::move(judgement.reason);
  one.warnings = warnings_about(one, comparison);
}

std::string_view name(Verdict verdict) {
  switch (verdict) {
    case Verdict::equivalent:
      return "equivalent";
    case Verdict::within_noise:
      return "within noise";
    case Verdict::gap:
      return "gap";
    case Verdict::small_positive_gap:
      return "small positive gap";
    case Verdict::too_large:
      return "too large";
    case Verdict::inactive:
      return "inactive";
    case Verdict::inconclusive:
      return "inconclusive";
    case Verdict::failed:
      return "failed";
  }
  check(false, "a verdict has a name");
  return {};
}

bool is_good(Verdict verdict) {
  return verdict == Verdict::equivalent || verdict == Verdict::small_positive_gap;
}

}  // namespace plimsoll::compare

#include "plimsoll/compare/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "plimsoll/compare/words.h"

namespace plimsoll::compare {

using nlohmann::ordered_json;

namespace {

// JSON has no NaN.
ordered_json known_or_null(double value) {
  return std::isfinite(value) ? ordered_json(value) : ordered_json(nullptr);
}

ordered_json paired_json(const PairedStatistics& paired) {
  ordered_json seeds = ordered_json::array();
  for (const SeedGap& seed : paired.seeds) {
    seeds.push_back({{"seed", seed.seed},
                     {"bf16_loss", seed.reference},
                     {"loss", seed.loss},
                     {"gap_nats", seed.gap()}});
  }
  ordered_json spikes = ordered_json::array();
  for (const LossSpike& spike : paired.spikes) {
    spikes.push_back({{"seed", spike.seed}, {"step", spike.step}, {"above_nats", spike.above}});
  }
  ordered_json interval = nullptr;
  if (paired.interval) interval = {paired.interval->low, paired.interval->high};
  ordered_json farthest_step = nullptr;
  if (std::isfinite(paired.largest_difference)) farthest_step = paired.largest_difference_step;
  return {{"runs", paired.runs},
          {"bf16_loss", known_or_null(paired.reference_mean)},
          {"loss", known_or_null(paired.mean_loss)},
          {"gap_nats", known_or_null(paired.mean)},
          {"gap_percent", known_or_null(paired.percent())},
          {"gap_sd_nats", known_or_null(paired.sd)},
          {"gap_mean_absolute_nats", known_or_null(paired.mean_absolute)},
          {"interval_90_nats", std::move(interval)},
          {"seeds", std::move(seeds)},
          {"largest_train_difference_nats", known_or_null(paired.largest_difference)},
          {"largest_train_difference_step", std::move(farthest_step)},
          {"grad_norm_ratio", known_or_null(paired.grad_norm_ratio)},
          {"spikes", std::move(spikes)},
          {"skipped_steps", paired.skipped_steps},
          {"failures", paired.failures},
          {"left_out", paired.left_out}};
}

}  // namespace

std::string comparison_text(const Comparison& comparison, std::string_view setup) {
  std::string text = fmt::format("{}\n\n", setup);
  const auto fact = [&](std::string_view label, const std::string& value) {
    text += fmt::format("{:<14}{}\n", label, value);
  };
  fact("bf16", reference_sentence(comparison));
  fact("noise floor", noise_sentence(comparison));
  fact("margin", margin_sentence(comparison.settings));
  for (const std::string& note : comparison.notes) fact("note", note);

  size_t width = 6;
  for (const RecipeComparison& one : comparison.recipes) {
    width = std::max(width, one.recipe.size());
  }
  text += fmt::format("\n{:<{}}  seeds    loss  gap, nats   gap, %  {:<20}  verdict\n", "recipe",
                      width, "90 % interval");
  for (const RecipeComparison& one : comparison.recipes) {
    const PairedStatistics& paired = one.paired;
    text += fmt::format("{:<{}}  {:>5}  {:>6}  {:>9}  {:>7}  {:<20}  {}\n", one.recipe, width,
                        paired.seeds.size(), known_loss(paired.mean_loss), known_gap(paired.mean),
                        known_percent(paired.percent()), known_interval(paired), name(one.verdict));
  }
  for (const RecipeComparison& one : comparison.recipes) {
    text += fmt::format("\n{}: {}\n  {}\n  {}\n", one.recipe, name(one.verdict), one.reason,
                        along_the_way(one));
    for (const std::string& warning : one.warnings) {
      text += fmt::format("  warning: {}\n", warning);
    }
  }
  return text;
}

ordered_json comparison_json(const Comparison& comparison) {
  const ComparisonSettings& settings = comparison.settings;
  ordered_json recipes = ordered_json::array();
  for (const RecipeComparison& one : comparison.recipes) {
    std::string verdict(name(one.verdict));
    std::ranges::replace(verdict, ' ', '_');
    ordered_json entry = {{"recipe", one.recipe},
                          {"verdict", verdict},
                          {"reason", one.reason},
                          {"warnings", one.warnings},
                          {"train_difference_limit_nats", known_or_null(one.difference_limit)}};
    entry.update(paired_json(one.paired));
    recipes.push_back(std::move(entry));
  }
  return {
      {"steps", comparison.steps},
      {"warmup_steps", settings.warmup_steps},
      {"smoothing_steps", comparison.smoothing},
      {"margin_nats", settings.margin},
      {"nvfp4_range_nats", {settings.nvfp4_lowest, settings.nvfp4_highest}},
      {"bf16",
       {{"seeds", comparison.seeds},
        {"loss", known_or_null(comparison.reference_mean)},
        {"sd_between_seeds_nats", known_or_null(comparison.reference_sd)}}},
      {"noise_floor_nats", known_or_null(comparison.noise_floor)},
      {"control", comparison.control ? paired_json(*comparison.control) : ordered_json(nullptr)},
      {"recipes", std::move(recipes)},
      {"notes", comparison.notes}};
}

}  // namespace plimsoll::compare

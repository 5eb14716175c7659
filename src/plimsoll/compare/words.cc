#include "plimsoll/compare/words.h"

#include <fmt/format.h>

#include <cmath>

namespace plimsoll::compare {

namespace {

std::string plural(size_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

}  // namespace

std::string signed_nats(double nats) {
  const bool tiny = nats != 0 && std::abs(nats) < 0.00005;
  return tiny ? fmt::format("{:+.1e}", nats) : fmt::format("{:+.4f}", nats);
}

std::string limit_text(double nats) {
  const std::string three = fmt::format("{:.3f}", nats);
  const std::string exact = fmt::format("{:.4g}", nats);
  return three.size() >= exact.size() ? three : exact;
}

std::string interval_text(const Interval& interval) {
  return fmt::format("{} to {}", signed_nats(interval.low), signed_nats(interval.high));
}

std::string known_loss(double nats) {
  return std::isfinite(nats) ? fmt::format("{:.4f}", nats) : "none";
}

std::string known_percent(double percent) {
  return std::isfinite(percent) ? fmt::format("{:+.2f}", percent) : "none";
}

std::string known_gap(double nats) { return std::isfinite(nats) ? signed_nats(nats) : "none"; }

std::string known_interval(const PairedStatistics& paired) {
  return paired.interval ? interval_text(*paired.interval) : "none";
}

std::string along_the_way(const RecipeComparison& one) {
  const PairedStatistics& paired = one.paired;
  std::string text;
  if (std::isfinite(paired.largest_difference)) {
    text = fmt::format("training loss farthest from bf16's by {} (step {}{})",
                       signed_nats(paired.largest_difference), paired.largest_difference_step,
                       std::isfinite(one.difference_limit)
                           ? fmt::format(", limit {:.4f}", one.difference_limit)
                           : "");
  }
  const auto add = [&](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  if (std::isfinite(paired.grad_norm_ratio)) {
    add(fmt::format("gradient norm {:.3f} times bf16's", paired.grad_norm_ratio));
  }
  add(paired.spikes.empty() ? "no loss spikes" : plural(paired.spikes.size(), "loss spike"));
  if (paired.skipped_steps > 0) {
    add(plural(static_cast<size_t>(paired.skipped_steps), "step") + " skipped");
  }
  return text;
}

std::string reference_sentence(const Comparison& comparison) {
  if (comparison.seeds.empty()) return "no complete run";
  std::string text = fmt::format("{:.4f} nats a token at the end", comparison.reference_mean);
  if (comparison.seeds.size() > 1) {
    text += fmt::format(", mean of {} seeds, sd from seed to seed {:.4f}", comparison.seeds.size(),
                        comparison.reference_sd);
  }
  return text;
}

std::string noise_sentence(const Comparison& comparison) {
  if (!std::isfinite(comparison.noise_floor)) return "not known";
  const size_t seeds = comparison.control->seeds.size();
  if (seeds == 1) {
    return fmt::format("{:.4f} nats, the gap of bf16 from weights one ulp away (1 seed)",
                       comparison.noise_floor);
  }
  return fmt::format(
      "{:.4f} nats, sd of the gaps of bf16 from weights one ulp away ({} seeds; mean |gap| {:.4f})",
      comparison.noise_floor, seeds, comparison.control->mean_absolute);
}

std::string margin_sentence(const ComparisonSettings& settings) {
  return fmt::format("+-{} nats; for nvfp4 the gap must lie between {} and {}",
                     limit_text(settings.margin), limit_text(settings.nvfp4_lowest),
                     limit_text(settings.nvfp4_highest));
}

}  // namespace plimsoll::compare

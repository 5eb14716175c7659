// comparison.html and comparison.svg.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "plimsoll/compare/report.h"
#include "plimsoll/compare/words.h"
#include "plimsoll/report/page.h"
#include "plimsoll/report/svg.h"

namespace plimsoll::compare {

namespace {

// The runs of `recipe` and of bf16 that the curves are means over: all seeds whose bf16 run is
// complete, failed runs too, so that a curve ends where the first of them stopped. Runs that did
// not survive the warm-up would leave no curve at all and are not among them.
struct CurvePairs {
  std::vector<const RunCurve*> runs, references;
};

CurvePairs pairs_of(const Comparison& comparison, std::span<const RunCurve> runs,
                    std::string_view recipe) {
  CurvePairs pairs;
  for (const RunCurve& run : runs) {
    if (run.recipe != recipe || std::ssize(run.loss) <= comparison.settings.warmup_steps ||
        std::ranges::find(comparison.seeds, run.seed) == comparison.seeds.end()) {
      continue;
    }
    const auto reference = std::ranges::find_if(runs, [&](const RunCurve& other) {
      return other.recipe == reference_recipe && other.seed == run.seed;
    });
    pairs.runs.push_back(&run);
    pairs.references.push_back(&*reference);
  }
  return pairs;
}

// Mean of the finite values at each place, as long as the shortest.
std::vector<double> mean_curve(const std::vector<std::vector<double>>& curves) {
  size_t length = curves.empty() ? 0 : std::numeric_limits<size_t>::max();
  for (const auto& curve : curves) length = std::min(length, curve.size());
  std::vector<double> mean(length);
  for (size_t i = 0; i < length; ++i) {
    double sum = 0;
    int64_t count = 0;
    for (const auto& curve : curves) {
      if (!std::isfinite(curve[i])) continue;
      sum += curve[i];
      ++count;
    }
    mean[i] = count > 0 ? sum / static_cast<double>(count) : std::nan("");
  }
  return mean;
}

report::Series after_warmup(const Comparison& comparison, std::string label,
                            const std::vector<double>& curve) {
  report::Series series = {.label = std::move(label)};
  for (size_t i = static_cast<size_t>(comparison.settings.warmup_steps); i < curve.size(); ++i) {
    series.x.push_back(static_cast<double>(i + 1));
    series.y.push_back(curve[i]);
  }
  return series;
}

std::vector<std::vector<double>> difference_curves(const Comparison& comparison,
                                                   std::span<const RunCurve> runs,
                                                   std::string_view recipe) {
  const CurvePairs pairs = pairs_of(comparison, runs, recipe);
  std::vector<std::vector<double>> curves;
  for (size_t i = 0; i < pairs.runs.size(); ++i) {
    curves.push_back(
        smoothed_difference(*pairs.runs[i], *pairs.references[i], comparison.smoothing));
  }
  return curves;
}

report::LineChart gap_chart(const Comparison& comparison, std::span<const RunCurve> runs) {
  report::LineChart chart;
  chart.title = "Training loss minus bf16's";
  chart.x_label = "step";
  chart.y_label = fmt::format("nats per token after the warm-up, mean over {} steps and all seeds",
                              comparison.smoothing);
  chart.width = 940;
  chart.height = 340;
  // bf16 is the zero line; behind it, in a light tone of its colour, how far it is from itself.
  std::string label = "bf16 + 1 ulp";
  for (const auto& curve : difference_curves(comparison, runs, control_recipe)) {
    chart.series.push_back(after_warmup(comparison, std::move(label), curve));
    chart.series.back().faint = true;
    label.clear();  // one label for all of them
  }
  const std::vector<double> zero(static_cast<size_t>(comparison.steps), 0.0);
  chart.series.push_back(after_warmup(comparison, "bf16", zero));
  for (const RecipeComparison& one : comparison.recipes) {
    chart.series.push_back(after_warmup(
        comparison, one.recipe, mean_curve(difference_curves(comparison, runs, one.recipe))));
  }
  return chart;
}

// Mean over the runs at the steps after the warm-up that all of them validated at.
report::Series validation_curve(const Comparison& comparison, std::span<const RunCurve> all,
                                std::string_view recipe) {
  report::Series series = {.label = std::string(recipe)};
  const std::vector<const RunCurve*> runs = pairs_of(comparison, all, recipe).runs;
  if (runs.empty()) return series;
  for (const auto& point : runs.front()->validation) {
    if (point.first <= comparison.settings.warmup_steps) continue;
    double sum = 0;
    size_t count = 0;
    for (const RunCurve* run : runs) {
      const auto same =
          std::ranges::find(run->validation, point.first, &std::pair<int64_t, double>::first);
      if (same == run->validation.end()) continue;
      sum += same->second;
      ++count;
    }
    if (count != runs.size()) continue;
    series.x.push_back(static_cast<double>(point.first));
    series.y.push_back(sum / static_cast<double>(count));
  }
  return series;
}

report::LineChart validation_chart(const Comparison& comparison, std::span<const RunCurve> runs) {
  report::LineChart chart;
  chart.title = "Validation loss";
  chart.x_label = "step";
  chart.y_label = "nats per token after the warm-up, mean over seeds";
  chart.width = 940;
  chart.height = 340;
  chart.series.push_back(validation_curve(comparison, runs, reference_recipe));
  for (const RecipeComparison& one : comparison.recipes) {
    chart.series.push_back(validation_curve(comparison, runs, one.recipe));
  }
  return chart;
}

constexpr std::string_view kComparisonStyle = R"(
.card { overflow-x: auto; }
.card p { margin: 0 0 8px; max-width: 820px; }
.card p:last-child, .card ul { margin-bottom: 0; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 4px 20px; margin: 0; }
dl + ul { margin-top: 10px; }
dd { margin: 0; }
ul { margin: 0; padding-left: 18px; }
table { width: 100%; }
td, th { padding: 4px 16px 4px 0; white-space: nowrap; }
tr.head td { border-top: 1px solid #eceff2; padding-top: 9px; }
tr.why td { white-space: normal; color: #57606a; padding-bottom: 9px; }
.recipe { font-weight: 600; }
.verdict { font-weight: 600; }
.good { color: #1a7f37; } .open { color: #8a5a00; } .bad { color: #b42318; }
.range { position: relative; width: 150px; height: 16px; background: #f3f5f7; }
.range div { position: absolute; top: 0; bottom: 0; }
.range .margin { background: #cfe3d6; }
.range .zero { width: 1px; background: #8c959f; }
.range .interval { top: 6px; bottom: 6px; min-width: 2px; background: #1f2328; }
.range .mean { top: 3px; bottom: 3px; width: 3px; margin-left: -1px; background: #1f2328; }
)";

// Escaped, with the sign that plain text lacks, beginning with a capital.
std::string html_text(std::string_view text) {
  std::string out = report::xml_escape(text);
  if (!out.empty() && out[0] >= 'a' && out[0] <= 'z') out[0] += 'A' - 'a';
  for (size_t at = out.find("+-"); at != std::string::npos; at = out.find("+-", at)) {
    out.replace(at, 2, "&plusmn;");
  }
  return out;
}

std::string_view css_class(Verdict verdict) {
  if (is_good(verdict)) return "good";
  return verdict == Verdict::within_noise || verdict == Verdict::gap ||
                 verdict == Verdict::inconclusive
             ? "open"
             : "bad";
}

// What a recipe's gap may be, for the green of its range.
Interval allowed(const RecipeComparison& one, const ComparisonSettings& settings) {
  if (costs_loss(one.recipe)) return {settings.nvfp4_lowest, settings.nvfp4_highest};
  return {-settings.margin, settings.margin};
}

// All ranges of the table on one scale.
Interval range_scale(const Comparison& comparison) {
  Interval scale = {-comparison.settings.margin, comparison.settings.margin};
  const auto cover = [&](double value) {
    if (!std::isfinite(value)) return;
    scale.low = std::min(scale.low, value);
    scale.high = std::max(scale.high, value);
  };
  for (const RecipeComparison& one : comparison.recipes) {
    const Interval green = allowed(one, comparison.settings);
    // A gap far beyond what is allowed runs off the scale instead of flattening the others.
    const double most = 4 * green.high;
    cover(green.high);
    cover(std::clamp(one.paired.mean, -most, most));
    if (one.paired.interval) {
      cover(std::clamp(one.paired.interval->low, -most, most));
      cover(std::clamp(one.paired.interval->high, -most, most));
    }
  }
  const double room = 0.04 * (scale.high - scale.low);
  return {scale.low - room, scale.high + room};
}

// The interval and the mean as a bar, over what is allowed.
std::string range_bar(const RecipeComparison& one, const Comparison& comparison,
                      const Interval& scale) {
  const auto percent = [&](double nats) {
    return std::clamp(100 * (nats - scale.low) / (scale.high - scale.low), 0.0, 100.0);
  };
  std::string out;
  const auto part = [&](std::string_view kind, const Interval& of) {
    out += fmt::format("<div class=\"{}\" style=\"left:{:.2f}%;right:{:.2f}%\"></div>", kind,
                       percent(of.low), 100 - percent(of.high));
  };
  const auto mark = [&](std::string_view kind, double at) {
    out += fmt::format("<div class=\"{}\" style=\"left:{:.2f}%\"></div>", kind, percent(at));
  };
  part("margin", allowed(one, comparison.settings));
  mark("zero", 0);
  if (one.paired.interval) part("interval", *one.paired.interval);
  if (std::isfinite(one.paired.mean)) mark("mean", one.paired.mean);
  return fmt::format("<div class=\"range\">{}</div>", out);
}

std::string bullet_list(const std::vector<std::string>& sentences) {
  if (sentences.empty()) return {};
  std::string items;
  for (const std::string& sentence : sentences) {
    items += fmt::format("<li>{}</li>\n", html_text(sentence));
  }
  return fmt::format("<ul>\n{}</ul>\n", items);
}

std::string recipe_rows(const RecipeComparison& one, size_t color, const Comparison& comparison,
                        const Interval& scale) {
  const PairedStatistics& paired = one.paired;
  return fmt::format(
      "<tr class=\"head\"><td class=\"recipe\"><span class=\"swatch\" style=\"background:{}\">"
      "</span>{}</td><td class=\"number\">{}</td><td class=\"number\">{}</td>"
      "<td class=\"number\">{}</td><td class=\"number\">{}</td><td>{}</td><td>{}</td>"
      "<td class=\"verdict {}\">{}</td></tr>\n"
      "<tr class=\"why\"><td></td><td colspan=\"7\">{}.<br>\n{}.{}</td></tr>\n",
      report::chart_color(color), report::xml_escape(one.recipe), paired.seeds.size(),
      known_loss(paired.mean_loss), known_gap(paired.mean), known_percent(paired.percent()),
      known_interval(paired), range_bar(one, comparison, scale), css_class(one.verdict),
      name(one.verdict), html_text(one.reason), html_text(along_the_way(one)),
      bullet_list(one.warnings));
}

std::string verdict_table(const Comparison& comparison) {
  std::string rows =
      "<tr><th>recipe</th><th class=\"number\">seeds</th><th class=\"number\">final loss</th>"
      "<th class=\"number\">gap, nats</th><th class=\"number\">gap, %</th><th>90 % interval</th>"
      "<th>allowed: green</th><th>verdict</th></tr>\n";
  rows += fmt::format(
      "<tr class=\"head\"><td class=\"recipe\"><span class=\"swatch\" style=\"background:{}\">"
      "</span>bf16</td><td class=\"number\">{}</td><td class=\"number\">{}</td>"
      "<td colspan=\"5\"></td></tr>\n",
      report::chart_color(0), comparison.seeds.size(), known_loss(comparison.reference_mean));
  const Interval scale = range_scale(comparison);
  for (size_t i = 0; i < comparison.recipes.size(); ++i) {
    rows += recipe_rows(comparison.recipes[i], i + 1, comparison, scale);
  }
  return fmt::format("<table>\n{}</table>\n", rows);
}

std::string explanation(const Comparison& comparison) {
  return fmt::format(
      "<p>Each run has a partner in bf16 that started from the same weights and read the same "
      "data in the same order; the gap between the two comes from the number formats alone, and "
      "from rounding errors that grow over many steps. The noise floor says how much such errors "
      "make: bf16 started again from weights one unit in the last place away (1 ulp; the pale "
      "lines of the first chart, one a seed) ended that far from itself.</p>\n"
      "<p>A recipe is equivalent when the interval that holds its mean gap with 90 % confidence "
      "lies wholly inside {}; a recipe whose true gap is larger would pass in at most 1 of 20 "
      "comparisons. That a gap is not significant would prove nothing: with few seeds hardly any "
      "is.</p>\n"
      "<p>4 bits are known to cost some loss, so nvfp4 has to show a small gap: none at all would "
      "mean that nothing was quantised. A short run of a small model says nothing about trouble "
      "that begins after hundreds of billions of tokens.</p>\n",
      html_text(fmt::format("+-{} nats", limit_text(comparison.settings.margin))));
}

}  // namespace

std::string comparison_html(const Comparison& comparison, std::span<const RunCurve> runs,
                            std::string_view setup) {
  const std::string facts = fmt::format(
      "<dl><dt>bf16</dt><dd>{}</dd><dt>noise "
      "floor</dt><dd>{}</dd><dt>margin</dt><dd>{}</dd></dl>\n",
      html_text(reference_sentence(comparison)), html_text(noise_sentence(comparison)),
      html_text(margin_sentence(comparison.settings)));
  const std::string head = fmt::format(
      "<h1>Recipes against bf16</h1>\n<p class=\"subtitle\">{}</p>\n", report::xml_escape(setup));
  return report::html_page(
      "Recipes against bf16", kComparisonStyle,
      head +
          report::section("Verdicts", report::card(verdict_table(comparison)) +
                                          report::card(facts + bullet_list(comparison.notes))) +
          report::section("Curves",
                          report::card(comparison_svg(comparison, runs)) +
                              report::card(report::to_svg(validation_chart(comparison, runs)))) +
          report::section("What the test means", report::card(explanation(comparison))));
}

std::string comparison_svg(const Comparison& comparison, std::span<const RunCurve> runs) {
  return report::to_svg(gap_chart(comparison, runs));
}

}  // namespace plimsoll::compare

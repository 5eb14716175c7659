#include "plimsoll/report/run_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>

#include "plimsoll/report/page.h"

namespace plimsoll::report {

namespace {

constexpr std::string_view style = R"(
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(150px, 1fr)); gap: 14px;
  margin-top: 20px; }
.tiles .card { margin: 0; }
.tiles .value { font-size: 22px; font-weight: 600; font-variant-numeric: tabular-nums; }
.tiles .label, td.quiet { color: #57606a; }
dl { display: grid; grid-template-columns: repeat(auto-fill, minmax(400px, 1fr)); gap: 0 36px;
  margin: 0; }
dl div { display: flex; justify-content: space-between; gap: 20px; padding: 5px 0;
  border-bottom: 1px solid #eceff2; }
dt { white-space: nowrap; }
dd { margin: 0; text-align: right; font-variant-numeric: tabular-nums; overflow-wrap: anywhere; }
.small { display: grid; grid-template-columns: repeat(auto-fit, minmax(280px, 1fr)); gap: 14px; }
.small .card { margin: 0; padding: 8px; }
.small .card > svg { max-width: 380px; }
.bar { display: flex; height: 26px; border-radius: 4px; overflow: hidden; margin-bottom: 10px; }
.bar div { border-right: 1px solid #fff; }
.bar div:last-child { border-right: 0; }
td, th { padding: 3px 20px 3px 0; }
tr.total td { border-top: 1px solid #d8dee4; font-weight: 600; }
pre { margin: 0; font: 12.5px/1.5 ui-monospace, SFMono-Regular, Menlo, Consolas, monospace;
  overflow-x: auto; }
)";

std::string tiles(const std::vector<Fact>& highlights) {
  std::string out;
  for (const Fact& fact : highlights) {
    out += card(fmt::format("<div class=\"value\">{}</div><div class=\"label\">{}</div>",
                            xml_escape(fact.value), xml_escape(fact.label)));
  }
  return out.empty() ? out : fmt::format("<div class=\"tiles\">\n{}</div>\n", out);
}

std::string fact_list(const std::vector<Fact>& facts) {
  std::string out;
  for (const Fact& fact : facts) {
    out += fmt::format("<div><dt>{}</dt><dd>{}</dd></div>\n", xml_escape(fact.label),
                       xml_escape(fact.value));
  }
  return out.empty() ? out : card(fmt::format("<dl>\n{}</dl>\n", out));
}

// The values, and over a light tone of them their running mean where there are enough for one.
std::vector<Series> curve(const std::string& label, const std::vector<double>& x,
                          const std::vector<double>& y) {
  constexpr size_t enough = 40;
  if (y.size() < enough) return {{.label = label, .x = x, .y = y}};
  const size_t window = std::clamp<size_t>(y.size() / 40, 3, 401);
  return {{.x = x, .y = y, .faint = true}, {.label = label, .x = x, .y = smoothed(y, window)}};
}

std::string small_chart(const std::string& title, const std::vector<double>& x,
                        const std::vector<double>& y, bool smooth) {
  if (y.empty()) return {};
  LineChart chart;
  chart.title = title;
  chart.x_label = "step";
  chart.width = 300;
  chart.height = 210;
  chart.series = smooth ? curve("", x, y) : std::vector<Series>{{.x = x, .y = y}};
  return card(to_svg(chart));
}

std::string curves(const ReportInput& input) {
  const StepSeries& steps = input.steps;
  const std::string small =
      small_chart("Learning rate", steps.step, steps.lr, false) +
      small_chart("Gradient norm", steps.step, steps.grad_norm, true) +
      small_chart("Tokens per second", steps.step, steps.tokens_per_second, true);
  return card(to_svg(loss_chart(input))) + fmt::format("<div class=\"small\">\n{}</div>\n", small);
}

std::string role_bar(const std::vector<RoleBytes>& roles) {
  Bytes total;
  for (const RoleBytes& role : roles) total += role.bytes;
  if (total.count <= 0) return {};
  std::string segments, rows;
  for (size_t i = 0; i < roles.size(); ++i) {
    if (roles[i].bytes.count <= 0) continue;
    const double share =
        100 * static_cast<double>(roles[i].bytes.count) / static_cast<double>(total.count);
    const std::string color = area_color(i);
    segments += fmt::format("<div style=\"width:{:.3f}%;background:{}\" title=\"{} {}\"></div>",
                            share, color, xml_escape(roles[i].role), to_text(roles[i].bytes));
    rows += fmt::format(
        "<tr><td><span class=\"swatch\" style=\"background:{}\"></span>{}</td>"
        "<td class=\"number\">{}</td><td class=\"number quiet\">{:.1f}%</td></tr>\n",
        color, xml_escape(roles[i].role), to_text(roles[i].bytes), share);
  }
  return card(
      fmt::format("<div class=\"bar\">{}</div>\n<table>\n<tr><th>at the peak</th>"
                  "<th class=\"number\">bytes</th><th class=\"number\">share</th></tr>\n"
                  "{}<tr class=\"total\"><td>total</td><td class=\"number\">{}</td>"
                  "<td></td></tr>\n</table>\n",
                  segments, rows, to_text(total)));
}

std::string memory(const ReportInput& input) {
  std::string out = role_bar(input.at_peak);
  if (!input.memory_timeline.layers.empty()) {
    StackedChart timeline = input.memory_timeline;
    timeline.width = 940;
    out += card(to_svg(timeline));
  }
  return out;
}

}  // namespace

LineChart loss_chart(const ReportInput& input) {
  LineChart chart;
  chart.title = "Loss";
  chart.x_label = "step";
  chart.y_label = "nats per token";
  chart.width = 940;
  chart.height = 380;
  chart.series = curve("train", input.steps.step, input.steps.loss);
  Series validation = {.label = "validation", .x = {}, .y = {}, .points = true};
  for (const ValidationPoint& point : input.validation) {
    validation.x.push_back(point.step);
    validation.y.push_back(point.loss);
  }
  if (!validation.x.empty()) chart.series.push_back(std::move(validation));
  return chart;
}

std::string report_html(const ReportInput& input) {
  std::string body = fmt::format("<h1>{}</h1>\n", xml_escape(input.title));
  if (!input.subtitle.empty()) {
    body += fmt::format("<p class=\"subtitle\">{}</p>\n", xml_escape(input.subtitle));
  }
  body += tiles(input.highlights);
  body += section("The run", fact_list(input.facts));
  body += section("Training", curves(input));
  body += section("Memory", memory(input));
  if (!input.config.empty()) {
    body += section("Configuration (run.toml)",
                    card(fmt::format("<pre>{}</pre>", xml_escape(input.config))));
  }
  return html_page(input.title, style, body);
}

std::vector<double> smoothed(const std::vector<double>& values, size_t window) {
  // Summed anew for each value: running sums would carry the rounding of one huge loss to the end.
  const size_t half = window / 2;
  std::vector<double> out(values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    const size_t after = std::min({half, i, values.size() - 1 - i});
    const size_t before = std::max(after, std::min(i, half / 2));
    double sum = 0;
    size_t count = 0;
    for (size_t j = i - before; j <= i + after; ++j) {
      if (!std::isfinite(values[j])) continue;
      sum += values[j];
      ++count;
    }
    out[i] =
        count > 0 ? sum / static_cast<double>(count) : std::numeric_limits<double>::quiet_NaN();
  }
  return out;
}

}  // namespace plimsoll::report

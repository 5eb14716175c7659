#include "plimsoll/report/svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>

#include "plimsoll/base/units.h"
#include "plimsoll/report/svg_canvas.h"

namespace plimsoll::report {

namespace {

constexpr int legend_row_height = 20;
constexpr double label_spacing = 16;
constexpr const char* warning = "#b35900";

// A colour for text: the same hue, dark enough to read on white.
std::string darkened(const std::string& color) {
  const auto channel = [&](size_t at) { return std::stoi(color.substr(at, 2), nullptr, 16); };
  const std::array<int, 3> rgb = {channel(1), channel(3), channel(5)};
  const double luminance = 0.3 * rgb[0] + 0.59 * rgb[1] + 0.11 * rgb[2];
  const double factor = std::min(1.0, 105 / luminance);
  return fmt::format("#{:02x}{:02x}{:02x}", static_cast<int>(rgb[0] * factor),
                     static_cast<int>(rgb[1] * factor), static_cast<int>(rgb[2] * factor));
}

struct LegendEntry {
  std::string label;
  std::string color;
  bool point = false;
};

// Rows of swatches and labels from `top` down; returns where they end.
double draw_legend(Canvas& canvas, const std::vector<LegendEntry>& entries, double top, int width) {
  double x = margin;
  double y = top;
  for (const LegendEntry& entry : entries) {
    const std::string label = fitted(entry.label, {}, width - 2 * margin - 24);
    const double needed = 24 + text_width(label, {}) + 12;
    if (x > margin && x + needed > width) {
      x = margin;
      y += legend_row_height;
    }
    if (entry.point) {
      canvas.circle(x + 9, y + 9, 3.5, entry.color);
    } else {
      canvas.rectangle(x, y + 7, 18, 4, entry.color, "rx=\"2\"");
    }
    canvas.text(x + 24, y + 13, label, {.color = dark_text});
    x += needed;
  }
  return entries.empty() ? top : y + legend_row_height;
}

struct Line {  // a series made ready to draw
  const Series* series = nullptr;
  std::string color;
};

// A faint series takes the colour of the next one.
std::vector<Line> with_colors(const std::vector<Series>& series) {
  std::vector<Line> lines;
  size_t color = 0;
  for (const Series& one : series) {
    lines.push_back({&one, chart_color(color)});
    if (!one.faint) ++color;
  }
  return lines;
}

bool drawable(const LineChart& chart, double x, double y) {
  return std::isfinite(x) && std::isfinite(y) && (!chart.log_x || x > 0);
}

size_t size_of(const Series& series) { return std::min(series.x.size(), series.y.size()); }

struct Data {  // what the axes must hold
  std::vector<double> x, y;
  std::vector<double> counted;  // the values of y that a note counts
  size_t not_finite = 0;
  bool whole_x = true;
};

Data gather(const LineChart& chart) {
  Data data;
  bool mean = false;  // of the faint series before it
  for (const Series& series : chart.series) {
    for (size_t i = 0; i < size_of(series); ++i) {
      if (!drawable(chart, series.x[i], series.y[i])) {
        data.not_finite += !mean && !std::isfinite(series.y[i]);
        continue;
      }
      if (!mean) data.counted.push_back(series.y[i]);
      data.x.push_back(series.x[i]);
      data.y.push_back(series.y[i]);
      data.whole_x = data.whole_x && series.x[i] == std::round(series.x[i]);
    }
    mean = series.faint;
  }
  return data;
}

Range x_range(const Data& data, bool log) {
  Range range = full_range(data.x);
  if (log) {
    if (data.x.empty()) return {1, 10};
    if (range.low <= 0 || range.high / range.low < 1.01) return {range.high / 3, range.high * 3};
    return range;
  }
  if (range.low > 0 && range.low <= 0.02 * range.high) range.low = 0;
  return range;
}

// What the picture does not show.
std::string note_of(const Data& data, Range y, TickUnit unit) {
  size_t outside = 0;
  double farthest = 0;
  double distance = 0;
  for (const double value : data.counted) {
    const double beyond = std::max(y.low - value, value - y.high);
    if (beyond <= 0) continue;
    ++outside;
    if (beyond > distance) farthest = value;
    distance = std::max(distance, beyond);
  }
  std::string note;
  if (outside > 0) {
    const std::string text =
        unit == TickUnit::bytes
            ? to_text(Bytes{static_cast<int64_t>(std::clamp(farthest, -9e18, 9e18))})
            : fmt::format("{:.4g}", farthest);
    note = fmt::format("{} off the scale, farthest {}", outside, text);
  }
  if (data.not_finite > 0) {
    note += fmt::format("{}{} not finite", note.empty() ? "" : "; ", data.not_finite);
  }
  return note;
}

struct Pixel {
  double x = 0;
  double y = 0;
};

// Appends a run of points to a path. In a pixel column only the first, lowest, highest and last
// point can be seen.
void append_run(std::string& path, const std::vector<Pixel>& run) {
  const auto add = [&](const Pixel& p, bool first = false) {
    fmt::format_to(std::back_inserter(path), "{}{:.1f},{:.1f}", first ? "M" : "L", p.x, p.y);
  };
  for (size_t begin = 0, end = 0; begin < run.size(); begin = end) {
    while (end < run.size() && std::floor(run[end].x) == std::floor(run[begin].x)) ++end;
    add(run[begin], begin == 0);
    if (end - begin > 3) {
      auto [low, high] = std::minmax_element(run.begin() + begin + 1, run.begin() + end - 1,
                                             [](Pixel a, Pixel b) { return a.y < b.y; });
      if (low > high) std::swap(low, high);
      add(*low);
      add(*high);
    } else if (end - begin == 3) {
      add(run[begin + 1]);
    }
    if (end - begin > 1) add(run[end - 1]);
  }
}

void draw_line(Canvas& canvas, const LineChart& chart, const Plot& plot, const Line& line) {
  const Series& series = *line.series;
  std::string path;
  std::vector<Pixel> all, run, alone;
  const auto flush = [&] {
    if (run.size() == 1) alone.push_back(run[0]);
    if (run.size() > 1) append_run(path, run);
    run.clear();
  };
  for (size_t i = 0; i < size_of(series); ++i) {
    if (!drawable(chart, series.x[i], series.y[i])) {
      flush();
      continue;
    }
    run.push_back({plot.x(series.x[i]), plot.y(series.y[i])});
    all.push_back(run.back());
  }
  flush();
  const double width = series.faint || series.points ? 1.2 : 2;
  const double opacity = series.faint ? 0.35 : series.points ? 0.6 : 1;
  if (!path.empty()) {
    canvas.path(path, fmt::format("fill=\"none\" stroke=\"{}\" stroke-width=\"{}\" opacity=\"{}\" "
                                  "stroke-linejoin=\"round\" stroke-linecap=\"round\"",
                                  line.color, width, opacity));
  }
  // With a mark on each of very many values there would be nothing but marks.
  const bool marks =
      series.points && static_cast<double>(all.size()) < (plot.right - plot.left) / 4;
  for (const Pixel& p : marks ? all : alone) {
    canvas.circle(p.x, p.y, 3.5, line.color, "stroke=\"#ffffff\"");
  }
}

struct EndLabel {
  std::string text, color;
  Pixel end;     // the series' last point
  double y = 0;  // where the label goes
};

std::vector<EndLabel> end_labels(const LineChart& chart, const Plot& plot,
                                 const std::vector<Line>& lines) {
  std::vector<EndLabel> labels;
  for (const Line& line : lines) {
    const Series& series = *line.series;
    for (size_t i = size_of(series); i-- > 0 && !series.label.empty();) {
      if (!drawable(chart, series.x[i], series.y[i])) continue;
      const double y = std::clamp(plot.y(series.y[i]), plot.top, plot.bottom);
      labels.push_back({series.label, line.color, {plot.x(series.x[i]), y}, y});
      break;
    }
  }
  std::stable_sort(labels.begin(), labels.end(),
                   [](const EndLabel& a, const EndLabel& b) { return a.y < b.y; });
  for (size_t i = 1; i < labels.size(); ++i) {
    labels[i].y = std::max(labels[i].y, labels[i - 1].y + label_spacing);
  }
  double limit = plot.bottom - 2;
  for (size_t i = labels.size(); i-- > 0;) {
    labels[i].y = std::min(labels[i].y, limit);
    limit = labels[i].y - label_spacing;
  }
  return labels;
}

void draw_end_labels(Canvas& canvas, const Plot& plot, const std::vector<EndLabel>& labels,
                     double room) {
  for (const EndLabel& label : labels) {
    if (std::abs(label.y - label.end.y) > 3 || plot.right - label.end.x > 8) {
      canvas.line(label.end.x + 4, label.end.y, plot.right + 10, label.y, label.color,
                  "stroke-dasharray=\"2 3\" opacity=\"0.7\"");
    }
    const TextStyle style = {.color = darkened(label.color), .bold = true};
    canvas.text(plot.right + 13, label.y + 4, fitted(label.text, style, room - 13), style);
  }
}

}  // namespace

std::string chart_color(size_t index) {
  constexpr std::array<const char*, 8> colors = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                                 "#56b4e9", "#e69f00", "#5d4b8a", "#9aa0a6"};
  return colors[index % colors.size()];
}

std::string area_color(size_t index) {
  // A sixth of white: large areas of the full colour shout.
  const std::string color = chart_color(index);
  const auto lighter = [&](size_t at) {
    return (std::stoi(color.substr(at, 2), nullptr, 16) * 5 + 255) / 6;
  };
  return fmt::format("#{:02x}{:02x}{:02x}", lighter(1), lighter(3), lighter(5));
}

std::string to_svg(const LineChart& chart) {
  Canvas canvas(chart.width, chart.height, chart.title);
  double top = draw_title(canvas, chart.title, chart.width);
  const Data data = gather(chart);
  const std::vector<Line> lines = with_colors(chart.series);

  const double most_room = 0.3 * chart.width;
  double room = 0;  // of the labels at the right
  std::vector<LegendEntry> entries;
  for (const Line& line : lines) {
    if (line.series->label.empty()) continue;
    entries.push_back({line.series->label, line.color, line.series->points});
    room = std::max(room, text_width(line.series->label, {.bold = true}) + 16);
  }
  const bool legend = chart.legend || static_cast<double>(entries.size()) * label_spacing >
                                          chart.height - top - y_label_height - 50;
  room = legend ? 0 : std::min(room, most_room);
  if (legend) top = draw_legend(canvas, entries, top, chart.width);

  Plot plot;
  plot.top = top + y_label_height;
  plot.bottom = chart.height - (chart.x_label.empty() ? 30 : 48);
  plot.right = chart.width - margin - std::max(room, 12.0);
  plot.y = {padded(robust_range(data.y)), plot.bottom, plot.top};
  std::vector<Tick> x_ticks, y_ticks;
  if (!data.y.empty()) {
    y_ticks = linear_ticks(plot.y.range, y_tick_count(plot.bottom - plot.top), chart.y_unit);
  }
  plot.left = margin + widest(y_ticks) + 8;
  plot.x = {x_range(data, chart.log_x), plot.left, plot.right, chart.log_x};
  if (!data.y.empty()) {
    x_ticks = chart.log_x ? log_ticks(plot.x.range)
                          : linear_ticks(plot.x.range, x_tick_count(plot.right - plot.left),
                                         TickUnit::number, data.whole_x ? 1 : 0);
  }
  draw_axes(canvas, plot, x_ticks, y_ticks, chart.x_label, chart.y_label);

  if (data.y.empty()) {
    canvas.text((plot.left + plot.right) / 2, (plot.top + plot.bottom) / 2,
                data.not_finite > 0 ? "no finite values" : "no values yet",
                {.size = 14, .anchor = Anchor::middle, .halo = true});
  }
  canvas.begin_clip(plot.left - 5, plot.top - 5, plot.right - plot.left + 10,
                    plot.bottom - plot.top + 10);
  for (const bool faint : {true, false}) {
    for (const Line& line : lines) {
      if (line.series->faint == faint) draw_line(canvas, chart, plot, line);
    }
  }
  canvas.end_clip();
  if (!legend) draw_end_labels(canvas, plot, end_labels(chart, plot, lines), room);
  canvas.text(plot.right, plot.top - 10, note_of(data, plot.y.range, chart.y_unit),
              {.color = warning, .anchor = Anchor::end});
  return std::move(canvas).finish();
}

}  // namespace plimsoll::report

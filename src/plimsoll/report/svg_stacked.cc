#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "plimsoll/report/svg.h"
#include "plimsoll/report/svg_canvas.h"

namespace plimsoll::report {

namespace {

constexpr double marker_room = 26;  // above the stack, for the marker's text

// One vertical slice of the picture: the heights of the layers' upper edges from x on.
struct Column {
  double x = 0;
  std::vector<double> edges;
  size_t highest = 0;  // the x whose edges these are
};

double value_at(const std::vector<double>& layer, size_t x) {
  if (x >= layer.size() || !std::isfinite(layer[x])) return 0;
  return std::max(0.0, layer[x]);
}

size_t length_of(const StackedChart& chart) {
  size_t length = 0;
  for (const std::vector<double>& layer : chart.layers) length = std::max(length, layer.size());
  return length;
}

// At most `most` columns. Where several x share one, it shows the highest of them, so that the
// peak is always there.
std::vector<Column> columns_of(const StackedChart& chart, size_t most) {
  const size_t length = length_of(chart);
  const size_t count = std::min(length, most);
  std::vector<Column> columns(count);
  for (size_t x = 0; x < length; ++x) {
    std::vector<double> edges;
    double sum = 0;
    for (const std::vector<double>& layer : chart.layers) {
      edges.push_back(sum += value_at(layer, x));
    }
    const size_t index = x * count / length;
    Column& column = columns[index];
    if (column.edges.empty()) column.x = static_cast<double>(x);
    if (column.edges.empty() || edges.back() > column.edges.back()) {
      column.edges = std::move(edges);
      column.highest = x;
    }
  }
  return columns;
}

// The area from zero to the upper edge of `layer`, as steps.
std::string step_path(const std::vector<Column>& columns, size_t layer, double end,
                      const Plot& plot) {
  std::string path = fmt::format("M{:.1f},{:.1f}", plot.x(0), plot.bottom);
  double height = -1;
  for (const Column& column : columns) {
    if (column.edges[layer] == height) continue;
    height = column.edges[layer];
    fmt::format_to(std::back_inserter(path), "H{:.1f}V{:.1f}", plot.x(column.x), plot.y(height));
  }
  fmt::format_to(std::back_inserter(path), "H{:.1f}V{:.1f}Z", plot.x(end), plot.bottom);
  return path;
}

// The names above the plot area, moved aside where the band is too narrow for its name.
void draw_bands(Canvas& canvas, const StackedChart& chart, const Plot& plot, double length) {
  double free_from = plot.left;
  for (const Band& band : chart.bands) {
    const double begin = plot.x(std::clamp(band.begin, 0.0, length));
    const double end = plot.x(std::clamp(band.end, 0.0, length));
    if (band.end <= band.begin) continue;
    if (band.begin > 0) {
      canvas.line(begin, plot.top - 18, begin, plot.bottom, "#57606a",
                  "stroke-dasharray=\"2 3\" opacity=\"0.8\"");
    }
    const double width = text_width(band.label, {});
    const double start =
        std::max(free_from, std::min((begin + end - width) / 2, plot.right - width));
    if (start + width > plot.right + margin) continue;
    canvas.text(start + width / 2, plot.top - 8, band.label,
                {.color = dark_text, .anchor = Anchor::middle, .halo = true});
    free_from = start + width + 8;
  }
}

void draw_marker(Canvas& canvas, const Marker& marker, const std::vector<Column>& columns,
                 const Plot& plot) {
  const double at = std::clamp(marker.x, 0.0, plot.x.range.high - 1);
  double height = 0;
  for (const Column& column : columns) {
    if (column.x <= at) height = column.edges.back();
  }
  const double x = plot.x(at + 0.5);
  const double y = plot.y(height);
  const double half = text_width(marker.text, {.bold = true}) / 2;
  canvas.line(x, y, x, plot.bottom, dark_text, "stroke-dasharray=\"4 3\"");
  canvas.circle(x, y, 3.5, dark_text, "stroke=\"#ffffff\"");
  canvas.text(std::max(plot.left + half, std::min(x, plot.right - half)), y - 9, marker.text,
              {.color = dark_text, .anchor = Anchor::middle, .bold = true, .halo = true});
}

// An invisible strip for each column, whose title browsers show under the pointer. Where several x
// share a column the note is that of the highest.
void draw_hover(Canvas& canvas, const StackedChart& chart, const std::vector<Column>& columns,
                const Plot& plot, double length) {
  for (size_t i = 0; i < columns.size(); ++i) {
    const double begin = plot.x(columns[i].x);
    const double end = plot.x(i + 1 < columns.size() ? columns[i + 1].x : length);
    if (columns[i].highest >= chart.hover.size()) continue;
    canvas.hover(begin, plot.top, end - begin, plot.bottom - plot.top,
                 chart.hover[columns[i].highest]);
  }
}

// The layers in the order in which they lie on each other; returns the width it needs.
double legend_width(const StackedChart& chart) {
  double width = 0;
  for (const std::string& label : chart.labels) {
    width = std::max(width, text_width(label, {}) + 34);
  }
  return std::min(width, 0.35 * chart.width);
}

void draw_layer_legend(Canvas& canvas, const StackedChart& chart, double left, double top,
                       double width) {
  double y = top;
  for (size_t layer = chart.labels.size(); layer-- > 0; y += 20) {
    canvas.rectangle(left, y, 12, 12, area_color(layer), "rx=\"2\"");
    canvas.text(left + 18, y + 10, fitted(chart.labels[layer], {}, width - 18),
                {.color = dark_text});
  }
}

}  // namespace

std::string to_svg(const StackedChart& chart) {
  Canvas canvas(chart.width, chart.height, chart.title);
  Plot plot;
  plot.top = draw_title(canvas, chart.title, chart.width) + 2 * y_label_height;
  plot.bottom = chart.height - (chart.x_label.empty() ? 30 : 48);
  const double legend = legend_width(chart);
  plot.right = chart.width - margin - std::max(legend, 12.0);

  const std::vector<Column> columns =
      columns_of(chart, static_cast<size_t>(std::max(16.0, plot.right)));
  double highest = 0;
  for (const Column& column : columns) highest = std::max(highest, column.edges.back());
  if (highest == 0) highest = 1;
  const double extent = plot.bottom - plot.top;
  plot.y = {{0, highest * extent / (extent - marker_room)}, plot.bottom, plot.top};
  std::vector<Tick> x_ticks, y_ticks;
  if (!columns.empty()) y_ticks = linear_ticks(plot.y.range, y_tick_count(extent), chart.y_unit);
  plot.left = margin + widest(y_ticks) + 8;
  const double length = std::max<double>(1, static_cast<double>(length_of(chart)));
  plot.x = {{0, length}, plot.left, plot.right};
  if (!columns.empty()) {
    x_ticks = linear_ticks(plot.x.range, x_tick_count(plot.right - plot.left), TickUnit::number, 1);
  }
  draw_axes(canvas, plot, x_ticks, y_ticks, chart.x_label, {});
  canvas.text(margin, plot.top - 28, chart.y_label, {});

  for (size_t layer = columns.empty() ? 0 : chart.layers.size(); layer-- > 0;) {
    canvas.path(step_path(columns, layer, length, plot),
                fmt::format("fill=\"{}\"", area_color(layer)));
  }
  if (columns.empty()) {
    canvas.text((plot.left + plot.right) / 2, (plot.top + plot.bottom) / 2, "no values yet",
                {.size = 14, .anchor = Anchor::middle, .halo = true});
  }
  draw_bands(canvas, chart, plot, length);
  if (chart.marker && !columns.empty()) draw_marker(canvas, *chart.marker, columns, plot);
  draw_hover(canvas, chart, columns, plot, length);
  draw_layer_legend(canvas, chart, plot.right + 14, plot.top + 4, legend);
  return std::move(canvas).finish();
}

}  // namespace plimsoll::report

// Charts as SVG text: lines over steps, and areas stacked over the ops of a step.
//
// The pictures carry their own white background, size and fonts' fallbacks and nothing else (no
// scripts, ids, style sheets or links), so they read the same alone, in a README of either theme
// and several to an HTML page. Colours are Okabe and Ito's, which colour-blind people can tell
// apart. Values that are not finite leave a gap and are counted in a note; so are values far
// outside the range of all others, which the axis does not follow (axis.h, robust_range).
// Any number of points is welcome: at most a few a pixel column are written.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plimsoll/report/axis.h"

namespace plimsoll::report {

struct Series {
  std::string label = {};  // empty: not labelled
  std::vector<double> x = {}, y = {};
  bool points = false;  // mark each value, joined by a thin line
  bool faint = false;   // behind the others, in a light tone of the next series, which is its mean
};

struct LineChart {
  std::string title = {}, x_label = {}, y_label = {};
  std::vector<Series> series = {};
  int width = 860;
  int height = 360;
  bool log_x = false;   // points with x <= 0 are left out
  bool legend = false;  // a legend above instead of labels where the lines end
  TickUnit y_unit = TickUnit::number;
};

struct Band {  // a phase: from x = begin up to, not including, end
  double begin = 0;
  double end = 0;
  std::string label = {};
};

struct Marker {
  double x = 0;
  std::string text = {};
};

// Layer l is layers[l][x] high on [x, x + 1), drawn on top of layers 0 .. l - 1; values that are
// missing, negative or not finite count as 0. Colours follow the order of the layers.
struct StackedChart {
  std::string title = {}, x_label = {}, y_label = {};
  std::vector<std::string> labels = {};
  std::vector<std::vector<double>> layers = {};
  std::vector<Band> bands = {};
  std::optional<Marker> marker = {};    // a line at x, its text above the stack
  std::vector<std::string> hover = {};  // a note for every x, shown by browsers under the pointer
  int width = 860;
  int height = 360;
  TickUnit y_unit = TickUnit::bytes;
};

std::string to_svg(const LineChart& chart);
std::string to_svg(const StackedChart& chart);

// Colour of series `index`, "#0072b2", and the lighter one of layer `index`; repeat after eight.
std::string chart_color(size_t index);
std::string area_color(size_t index);

// `text` for use in XML or HTML content and attributes; control characters that XML forbids become
// spaces, bytes that are not UTF-8 question marks.
std::string xml_escape(std::string_view text);

}  // namespace plimsoll::report

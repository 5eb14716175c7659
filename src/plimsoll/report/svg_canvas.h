// The parts every chart shares: a canvas of shapes and text, and a plot area with axes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "plimsoll/report/axis.h"

namespace plimsoll::report {

constexpr int margin = 10;          // around everything
constexpr int text_size = 12;       // of ticks and labels
constexpr int y_label_height = 24;  // above the plot area: label of y, notes, names of bands
constexpr const char* dark_text = "#1f2328";

enum class Anchor { start, middle, end };

struct TextStyle {
  int size = text_size;
  std::string color = "#57606a";
  Anchor anchor = Anchor::start;
  bool bold = false;
  bool halo = false;  // a white rim that keeps the text readable on lines and areas
};

// Width of `text` in pixels in the usual sans-serif fonts, rather too wide than too narrow.
double text_width(std::string_view text, const TextStyle& style);

// `text`, cut with "..." where it is wider than `width`.
std::string fitted(const std::string& text, const TextStyle& style, double width);

// Collects shapes in pixel coordinates, drawn in the order they are added.
class Canvas {
 public:
  Canvas(int width, int height, std::string_view title);

  void text(double x, double y, std::string_view text, const TextStyle& style);
  void line(double x1, double y1, double x2, double y2, std::string_view color,
            std::string_view more = {});
  void rectangle(double x, double y, double width, double height, std::string_view color,
                 std::string_view more = {});
  void circle(double x, double y, double radius, std::string_view color,
              std::string_view more = {});
  // Nothing to see; a browser shows `note` while the pointer is inside.
  void hover(double x, double y, double width, double height, std::string_view note);
  void path(std::string_view data, std::string_view more);
  // What is added between the two is cut at the edges of the rectangle; coordinates stay the same.
  void begin_clip(double x, double y, double width, double height);
  void end_clip();

  std::string finish() &&;

 private:
  std::string out_;
};

// The title at the top; returns where the rest may begin.
double draw_title(Canvas&, const std::string& title, int width);

// Values of one axis to pixels.
struct Scale {
  Range range;
  double begin = 0;  // pixel of range.low
  double end = 0;    // pixel of range.high
  bool log = false;

  double operator()(double value) const;
};

struct Plot {
  double left = 0, top = 0, right = 0, bottom = 0;
  Scale x, y;
};

// The grid, the tick texts, and the labels of both axes (the label of y above its axis).
void draw_axes(Canvas&, const Plot&, const std::vector<Tick>& x_ticks,
               const std::vector<Tick>& y_ticks, const std::string& x_label,
               const std::string& y_label);

// How many ticks read well along an axis of `extent` pixels.
int x_tick_count(double extent);
int y_tick_count(double extent);

// Width of the widest tick text.
double widest(const std::vector<Tick>& ticks);

}  // namespace plimsoll::report

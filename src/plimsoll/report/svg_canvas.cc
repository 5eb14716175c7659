#include "plimsoll/report/svg_canvas.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "plimsoll/report/svg.h"

namespace plimsoll::report {

namespace {

constexpr const char* grid_color = "#e6e9ed";
constexpr const char* axis_color = "#8c959f";
constexpr int title_size = 15;

double em_of(char c) {
  if ((c & 0xc0) == 0x80) return 0;  // rest of a multi-byte character
  if (std::string_view("il.,:;|!'()[] ").find(c) != std::string_view::npos) return 0.36;
  if (std::string_view("mwMW@%").find(c) != std::string_view::npos) return 0.92;
  return (c >= 'A' && c <= 'Z') ? 0.70 : 0.60;
}

const char* name(Anchor anchor) {
  switch (anchor) {
    case Anchor::start:
      return "start";
    case Anchor::middle:
      return "middle";
    case Anchor::end:
      return "end";
  }
  return "start";
}

// Bytes of the UTF-8 character at the start of `text`; 0 when it is none.
size_t character_length(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  const size_t length = lead < 0x80                   ? 1
                        : lead >= 0xc2 && lead < 0xe0 ? 2
                        : lead >= 0xe0 && lead < 0xf0 ? 3
                        : lead >= 0xf0 && lead < 0xf5 ? 4
                                                      : 0;
  if (length > text.size()) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((text[i] & 0xc0) != 0x80) return 0;
  }
  return length;
}

}  // namespace

std::string xml_escape(std::string_view text) {
  std::string out;
  for (size_t length = 0; !text.empty(); text.remove_prefix(length)) {
    const char c = text[0];
    length = character_length(text);
    if (length == 0) {
      out += '?';
      length = 1;
    } else if (c == '&') {
      out += "&amp;";
    } else if (c == '<') {
      out += "&lt;";
    } else if (c == '>') {
      out += "&gt;";
    } else if (c == '"') {
      out += "&quot;";
    } else if (c == '\'') {
      out += "&#39;";
    } else if (length == 1 && c < 0x20 && c != '\n' && c != '\t') {
      out += ' ';
    } else {
      out += text.substr(0, length);
    }
  }
  return out;
}

double text_width(std::string_view text, const TextStyle& style) {
  double em = 0;
  for (const char c : text) em += em_of(c);
  return em * style.size * (style.bold ? 1.15 : 1.0);
}

std::string fitted(const std::string& text, const TextStyle& style, double width) {
  if (text_width(text, style) <= width) return text;
  std::string cut = text;
  do {
    while (!cut.empty() && (cut.back() & 0xc0) == 0x80) cut.pop_back();
    if (!cut.empty()) cut.pop_back();
  } while (!cut.empty() && text_width(cut + "...", style) > width);
  return cut + "...";
}

Canvas::Canvas(int width, int height, std::string_view title) {
  out_ = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} "
      "{1}\" role=\"img\" font-family=\"system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica "
      "Neue', Arial, sans-serif\">\n<title>{2}</title>\n",
      width, height, xml_escape(title));
  rectangle(0, 0, width, height, "#ffffff", "rx=\"6\"");
}

void Canvas::text(double x, double y, std::string_view text, const TextStyle& style) {
  if (text.empty()) return;
  const std::string common = fmt::format(
      "<text x=\"{:.1f}\" y=\"{:.1f}\" font-size=\"{}\"{}{}", x, y, style.size,
      style.anchor == Anchor::start ? "" : fmt::format(" text-anchor=\"{}\"", name(style.anchor)),
      style.bold ? " font-weight=\"600\"" : "");
  const std::string content = xml_escape(text);
  if (style.halo) {
    out_ += fmt::format(
        "{} fill=\"#ffffff\" stroke=\"#ffffff\" stroke-width=\"4\" stroke-linejoin=\"round\" "
        "aria-hidden=\"true\">{}</text>\n",
        common, content);
  }
  out_ += fmt::format("{} fill=\"{}\">{}</text>\n", common, style.color, content);
}

void Canvas::line(double x1, double y1, double x2, double y2, std::string_view color,
                  std::string_view more) {
  out_ += fmt::format(
      "<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"{}\" {}/>\n", x1, y1,
      x2, y2, color, more);
}

void Canvas::rectangle(double x, double y, double width, double height, std::string_view color,
                       std::string_view more) {
  out_ += fmt::format(
      "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill=\"{}\" {}/>\n", x, y,
      width, height, color, more);
}

void Canvas::circle(double x, double y, double radius, std::string_view color,
                    std::string_view more) {
  out_ += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{:.1f}\" fill=\"{}\" {}/>\n", x, y,
                      radius, color, more);
}

void Canvas::hover(double x, double y, double width, double height, std::string_view note) {
  out_ += fmt::format(
      "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill=\"transparent\">"
      "<title>{}</title></rect>\n",
      x, y, width, height, xml_escape(note));
}

void Canvas::path(std::string_view data, std::string_view more) {
  out_ += fmt::format("<path d=\"{}\" {}/>\n", data, more);
}

// A nested svg element clips without an id, so charts can share one HTML page.
void Canvas::begin_clip(double x, double y, double width, double height) {
  out_ += fmt::format(
      "<svg x=\"{0:.1f}\" y=\"{1:.1f}\" width=\"{2:.1f}\" height=\"{3:.1f}\" viewBox=\"{0:.1f} "
      "{1:.1f} {2:.1f} {3:.1f}\" overflow=\"hidden\">\n",
      x, y, width, height);
}

void Canvas::end_clip() { out_ += "</svg>\n"; }

std::string Canvas::finish() && {
  out_ += "</svg>\n";
  return std::move(out_);
}

double draw_title(Canvas& canvas, const std::string& title, int width) {
  if (title.empty()) return margin;
  const TextStyle style = {.size = title_size, .color = dark_text, .bold = true};
  canvas.text(margin, 24, fitted(title, style, width - 2 * margin), style);
  return margin + 28;
}

double Scale::operator()(double value) const {
  const double position = log ? std::log(value / range.low) / std::log(range.high / range.low)
                              : (value - range.low) / (range.high - range.low);
  // Far outside is as good as outside, and keeps every coordinate short.
  return begin + std::clamp(position, -4.0, 5.0) * (end - begin);
}

int x_tick_count(double extent) { return std::clamp(static_cast<int>(extent / 80), 2, 10); }

int y_tick_count(double extent) { return 4 + std::clamp(static_cast<int>(extent / 100), 0, 6); }

double widest(const std::vector<Tick>& ticks) {
  double width = 0;
  for (const Tick& tick : ticks) width = std::max(width, text_width(tick.text, {}));
  return width;
}

void draw_axes(Canvas& canvas, const Plot& plot, const std::vector<Tick>& x_ticks,
               const std::vector<Tick>& y_ticks, const std::string& x_label,
               const std::string& y_label) {
  for (const Tick& tick : y_ticks) {
    const double y = plot.y(tick.value);
    canvas.line(plot.left, y, plot.right, y, grid_color);
    canvas.text(plot.left - 8, y + 4, tick.text, {.anchor = Anchor::end});
  }
  for (const Tick& tick : x_ticks) {
    const double x = plot.x(tick.value);
    canvas.line(x, plot.bottom, x, plot.bottom + 5, axis_color);
    canvas.text(x, plot.bottom + 19, tick.text, {.anchor = Anchor::middle});
  }
  canvas.line(plot.left, plot.bottom, plot.right, plot.bottom, axis_color);
  canvas.text((plot.left + plot.right) / 2, plot.bottom + 37, x_label, {.anchor = Anchor::middle});
  canvas.text(margin, plot.top - 10, y_label, {});
}

}  // namespace plimsoll::report

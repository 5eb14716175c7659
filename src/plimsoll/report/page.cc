#include "plimsoll/report/page.h"

#include <fmt/format.h>

#include "plimsoll/report/svg.h"

namespace plimsoll::report {

namespace {

constexpr std::string_view kSharedStyle = R"(
* { box-sizing: border-box; }
body { margin: 0; background: #f3f5f7; color: #1f2328; line-height: 1.45; font-size: 14px;
  font-family: system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif; }
main { max-width: 1000px; margin: 0 auto; padding: 28px 20px 48px; }
h1 { font-size: 24px; margin: 0; overflow-wrap: anywhere; }
h2 { font-size: 16px; margin: 32px 0 10px; }
.subtitle { color: #57606a; margin: 4px 0 0; overflow-wrap: anywhere; }
.card { background: #fff; border: 1px solid #d8dee4; border-radius: 8px; padding: 14px 16px;
  margin-bottom: 14px; }
.card > svg { display: block; width: 100%; height: auto; }
dt, th { color: #57606a; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
td, th { text-align: left; font-weight: normal; }
td.number, th.number { text-align: right; }
.swatch { display: inline-block; width: 12px; height: 12px; border-radius: 2px; margin-right: 8px;
  vertical-align: -1px; }
@media print { body { background: #fff; } .card { break-inside: avoid; } }
)";

}  // namespace

std::string html_page(std::string_view title, std::string_view style, std::string_view body) {
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<title>{} - Plimsoll</title>\n<style>{}{}</style>\n</head>\n<body>\n<main>\n{}</main>\n"
      "</body>\n</html>\n",
      xml_escape(title), kSharedStyle, style, body);
}

std::string card(std::string_view content) {
  return fmt::format("<div class=\"card\">{}</div>\n", content);
}

std::string section(std::string_view title, std::string_view content) {
  if (content.empty()) return {};
  return fmt::format("<section>\n<h2>{}</h2>\n{}</section>\n", xml_escape(title), content);
}

}  // namespace plimsoll::report

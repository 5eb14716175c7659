// What the HTML pages of this room share: one self-contained file, its look, cards and sections.
#pragma once

#include <string>
#include <string_view>

namespace plimsoll::report {

// A whole page around `body`, HTML. `title` is plain text; `style` is CSS that follows the shared.
std::string html_page(std::string_view title, std::string_view style, std::string_view body);

// `content` is HTML, `title` plain text. A section without content is left out.
std::string card(std::string_view content);
std::string section(std::string_view title, std::string_view content);

}  // namespace plimsoll::report

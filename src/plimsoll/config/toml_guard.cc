#include "plimsoll/config/toml_guard.h"

#include <algorithm>

#include "plimsoll/base/error.h"

namespace plimsoll::config {

namespace {

constexpr int kDeepest = 16;

// Length of the string or comment that `text` begins with; 0 when it begins with neither. One that
// does not end takes all that is left: the parser says what is wrong with it.
size_t skipped(std::string_view text) {
  if (text.front() == '#') return std::min(text.find('\n'), text.size());
  if (text.front() != '"' && text.front() != '\'') return 0;
  const char quote = text.front();
  const std::string three(3, quote);
  const std::string closing = text.starts_with(three) ? three : std::string(1, quote);
  for (size_t at = closing.size(); at < text.size(); ++at) {
    if (quote == '"' && text[at] == '\\') {
      ++at;
    } else if (text.substr(at).starts_with(closing)) {
      return at + closing.size();
    } else if (text[at] == '\n' && closing.size() == 1) {
      return at;
    }
  }
  return text.size();
}

}  // namespace

void check_toml(std::string_view toml, const std::string& source) {
  int depth = 0;  // of brackets
  int parts = 1;  // of the key or number at hand
  int64_t line = 1;
  for (size_t at = 0; at < toml.size(); ++at) {
    if (const size_t length = skipped(toml.substr(at)); length > 0) {
      line += std::ranges::count(toml.substr(at, length), '\n');
      at += length - 1;
      continue;
    }
    const char c = toml[at];
    const bool is_mark = at < 3 && toml.starts_with("\xef\xbb\xbf");  // some editors begin so
    if (static_cast<unsigned char>(c) >= 0x80 && !is_mark) {
      throw Error(Exit::usage,
                  fmt::format("{}:{}: a letter outside ASCII stands outside quotes.", source, line),
                  "Write keys in ASCII, and text in quotes.");
    }
    if (c == '.') ++parts;
    if (c == '[' || c == '{') ++depth;
    if (c == ']' || c == '}') depth = std::max(0, depth - 1);
    if (std::string_view("=,[]{}\n").find(c) != std::string_view::npos) parts = 1;
    if (c == '\n') ++line;
    if (depth <= kDeepest && parts <= kDeepest) continue;
    throw Error(Exit::usage,
                fmt::format("{}:{}: {} nested more than {} deep.", source, line,
                            depth > kDeepest ? "a value is" : "the parts of a key are", kDeepest),
                "Write [table] lines, and key = value under them.");
  }
}

}  // namespace plimsoll::config

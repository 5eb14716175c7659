#include "plimsoll/base/error.h"

#include <algorithm>
#include <numeric>

namespace plimsoll {

std::string Error::message() const {
  std::string text = what();
  std::string_view rest = advice_;
  while (!rest.empty()) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    text += fmt::format("\n  {}", rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return text;
}

void check(bool condition, std::string_view what) {
  if (!condition) {
    throw Error(Exit::bug, fmt::format("Internal error: {}.", what),
                "This is a bug in Plimsoll; please report it with the command and the config.");
  }
}

namespace {

// Levenshtein distance with one row of memory.
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i + 1;
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t substitute = diagonal + (a[i] != b[j]);
      diagonal = row[j + 1];
      row[j + 1] = std::min({substitute, row[j] + 1, diagonal + 1});
    }
  }
  return row.back();
}

}  // namespace

std::string nearest(std::string_view word, const std::vector<std::string>& names) {
  std::string best;
  size_t best_distance = std::max<size_t>(2, word.size() / 2) + 1;
  for (const std::string& name : names) {
    const size_t distance = edit_distance(word, name);
    const bool shares_letters = distance < std::max(word.size(), name.size());
    if (distance < best_distance && shares_letters) {
      best_distance = distance;
      best = name;
    }
  }
  return best;
}

}  // namespace plimsoll

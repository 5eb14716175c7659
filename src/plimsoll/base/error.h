// An error a person must read: what is wrong, where, and what to do about it.
//
// Everything else (broken invariants) is a bug: `check` raises those with Exit::bug.
#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace plimsoll {

// Exit codes of the command line; docs/errors.md explains each.
enum class Exit : int {
  done = 0,
  usage = 2,         // bad command line or bad config
  data = 3,          // bad data, bad checkpoint, or a disk that cannot be written
  does_not_fit = 4,  // the plan needs more memory than there is
  bug = 70,          // a broken invariant inside Plimsoll
  interrupted = 75,  // stopped by a signal, resumable
};

class Error : public std::runtime_error {
 public:
  // `what`: one sentence with the place ("config.toml:14: model.heads = 0 is not positive.").
  // `advice`: what to do, without indentation; may be empty or hold several lines.
  Error(Exit code, std::string what, std::string advice = {})
      : std::runtime_error(std::move(what)), code_(code), advice_(std::move(advice)) {}

  Exit code() const { return code_; }
  const std::string& advice() const { return advice_; }

  // What the command line prints: the sentence, then the advice indented by two spaces.
  std::string message() const;

 private:
  Exit code_;
  std::string advice_;
};

// Raises Error(Exit::bug) unless `condition` holds. For invariants, never for user input.
void check(bool condition, std::string_view what);

// The entry of `names` nearest to `word` by edit distance; empty when none is close.
std::string nearest(std::string_view word, const std::vector<std::string>& names);

}  // namespace plimsoll

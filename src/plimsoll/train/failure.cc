#include "plimsoll/train/failure.h"

#include <fmt/chrono.h>

#include <ctime>

#include "plimsoll/train/run_directory.h"

namespace plimsoll::train {

nlohmann::ordered_json failure_json(const Error& error, std::string_view where, int64_t step) {
  return {{"exit_code", static_cast<int>(error.code())},
          {"what", error.what()},
          {"where", where},
          {"step", step},
          {"advice", error.advice()},
          {"time", fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)))}};
}

void record_early_failure(const std::filesystem::path& path, const Error& error, bool create,
                          bool continues) {
  try {
    if (!create && !std::filesystem::is_directory(path)) return;
    create_run_directory(path, continues).write_failure(failure_json(error, "configuration", 0));
  } catch (const Error&) {
    // The error that is being reported is the one that matters.
  }
}

}  // namespace plimsoll::train

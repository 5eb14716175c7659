// failure.json: why the last start of a run came to no good end, for the program that started it.
//
//   {"exit_code": 3, "what": "The loss is nan ... at step 12.", "where": "training", "step": 12,
//    "advice": "Lower schedule.lr ...", "time": "2026-01-31T12:00:00Z"}
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string_view>

#include "plimsoll/base/error.h"

namespace plimsoll::train {

// `where`: "configuration", "starting", "training" or "finishing"; `step`: steps done then.
nlohmann::ordered_json failure_json(const Error& error, std::string_view where, int64_t step);

// Writes it to the run directory `path` for an error met before a run could begin. A directory that
// is not there is made if `create`; one that another run uses, or holds a run that was not to be
// continued, is left alone, as is one that cannot be written.
void record_early_failure(const std::filesystem::path& path, const Error& error, bool create,
                          bool continues);

}  // namespace plimsoll::train

// `plimsoll train`: a run in its directory, from the plan it prints to the summary it leaves.
#pragma once

#include <filesystem>
#include <ostream>

#include "plimsoll/base/error.h"
#include "plimsoll/config/config.h"

namespace plimsoll::train {

struct RunOptions {
  std::filesystem::path directory;
  bool resume = false;    // continue from the newest whole checkpoint of `directory`
  bool terminal = false;  // `out` is a terminal: draw a progress bar
};

// Returns Exit::done, or Exit::interrupted after a checkpoint was saved because of SIGTERM or
// SIGINT. Raises Error for everything else that ends a run.
Exit run_training(const config::Config& resolved, const RunOptions& options, std::ostream& out);

}  // namespace plimsoll::train

// `plimsoll train`: a run in its directory, from the plan it prints to the summary it leaves.
#pragma once

#include <filesystem>
#include <ostream>

#include "plimsoll/base/error.h"
#include "plimsoll/config/config.h"

namespace plimsoll::train {

enum class Start : uint8_t {
  fresh,             // refuse a directory that holds a run
  resume,            // continue the run in the directory; a run without a checkpoint starts again
  start_or_continue  // either, so that the same command may be given again and again
};

struct RunOptions {
  std::filesystem::path directory;
  Start start = Start::fresh;
  bool terminal = false;  // `out` is a terminal: draw a progress bar
};

// A loss, a gradient or a quantised matrix that is not finite: the training diverged.
class Diverged : public Error {
 public:
  Diverged(std::string what, std::string advice)
      : Error(Exit::data, std::move(what), std::move(advice)) {}
};

// The paths of the corpus and of the checkpoints, so that the run can be continued from any folder.
config::Config with_absolute_paths(config::Config config);

// Returns Exit::done, also when the run had been finished before; or Exit::interrupted after a
// checkpoint was saved because of a signal (signals.h). Raises Error for everything else that ends
// a run: its run directory then holds failure.json. Until everything that can be checked has been,
// and the checkpoint is loaded, nothing else in the directory changes.
Exit run_training(const config::Config& resolved, const RunOptions& options, std::ostream& out);

}  // namespace plimsoll::train

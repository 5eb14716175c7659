// The checkpoints of a run: where they are, when one is on disk, and what they state of the run
// beside its tensors.
#pragma once

#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "plimsoll/checkpoint/writer.h"
#include "plimsoll/train/run_directory.h"
#include "plimsoll/train/run_identity.h"
#include "plimsoll/train/trainer.h"

namespace plimsoll::train {

// checkpoint.directory, or `checkpoints` in the run directory.
std::filesystem::path checkpoint_root(const config::Config& config,
                                      const std::filesystem::path& run_directory);

// What a run counts over all its processes.
struct RunProgress {
  int64_t tokens = 0;         // trained on
  int64_t skipped_steps = 0;  // fp16: a gradient overflowed
  // Of the last step and of the last evaluation, nats a token; NaN when there was none.
  double train_loss = std::numeric_limits<double>::quiet_NaN();
  double validation_loss = std::numeric_limits<double>::quiet_NaN();
};

// `extra` of a checkpoint. A checkpoint of an earlier version lacks members, or all of them.
struct RunState {
  std::optional<Settings> settings;
  std::optional<CorpusIdentity> corpus;
  std::optional<RunProgress> progress;
};
nlohmann::json to_json(const RunState& state);
// Raises Exit::data when what is there is not what to_json wrote.
RunState run_state_from_json(const nlohmann::json& extra);

// Saves checkpoints, beside the compute when the plan has a snapshot to copy to. The event
// "checkpoint" is logged once the checkpoint is durable.
class RunCheckpoints {
 public:
  // `stated`: what is the same in all of them.
  RunCheckpoints(const PlannedRun& run, const Trainer& trainer, std::filesystem::path root,
                 nlohmann::json stated, EventLog& events);

  void save(const Trainer& trainer, const RunProgress& progress);

  // Raises the error of a background write that has failed.
  void poll();

  // Makes sure the state of `trainer` is on disk.
  void finish(const Trainer& trainer, const RunProgress& progress);

  void resumed_at(int64_t step) { newest_ = logged_ = step; }

 private:
  void log(int64_t step);

  std::filesystem::path root_;
  int64_t keep_;
  nlohmann::json stated_;
  EventLog& events_;
  std::vector<std::byte> snapshot_;  // on a device whose memory the host cannot address
  std::optional<checkpoint::CheckpointWriter> writer_;
  std::vector<checkpoint::PreparedShard> prepared_;
  int64_t newest_ = -1;  // step of the newest checkpoint begun
  int64_t logged_ = -1;  // of the newest that is known to be on disk
};

}  // namespace plimsoll::train

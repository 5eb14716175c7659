// Saves checkpoints beside the compute: a copy of the tensors, and one thread that writes the copy.
//
// The step loop pays for a memcpy. The headers are serialised when the writer is made, so from then
// on nothing above 64 KiB is allocated: the thread hashes and writes straight from the snapshot,
// and asks for no more than a folder's listing and the manifest (`state.extra` is the caller's).
#pragma once

#include <condition_variable>
#include <exception>
#include <filesystem>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "plimsoll/base/units.h"
#include "plimsoll/checkpoint/checkpoint.h"

namespace plimsoll::checkpoint {

// The size of the snapshot that a writer of these shards needs: every tensor, 64-byte aligned.
Bytes snapshot_bytes(std::span<const Shard> shards);

class CheckpointWriter {
 public:
  // Reads `shards` in start() only. `snapshot` holds snapshot_bytes(shards) and must outlive the
  // writer. After each save, keeps the last `keep` checkpoints (0: all).
  CheckpointWriter(std::filesystem::path root, int64_t keep, std::span<const Shard> shards,
                   std::span<std::byte> snapshot);
  CheckpointWriter(const CheckpointWriter&) = delete;
  CheckpointWriter& operator=(const CheckpointWriter&) = delete;
  // Waits for the write under way; an error that nobody asked for is lost.
  ~CheckpointWriter();

  // Waits for the write before it and raises its error; then copies the tensors and returns while
  // the copy is being written.
  void start(CheckpointState state);

  // Raises the error of the write before, if it has failed by now. Never waits for the disk.
  void poll();

  // Waits for the write under way and raises its error.
  void finish();

  // The step of the newest checkpoint that this writer has completed.
  std::optional<int64_t> last_saved();

 private:
  void write_until_stopped();
  void raise_error(std::unique_lock<std::mutex>& lock);

  struct Copy {
    ReadBytes from;
    std::span<std::byte> to;
  };

  const std::filesystem::path root_;
  const int64_t keep_;
  std::vector<Copy> copies_;
  std::vector<PreparedShard> prepared_;  // views into the snapshot

  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<CheckpointState> pending_;  // set while a write waits or is under way
  std::exception_ptr error_;
  std::optional<int64_t> last_saved_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace plimsoll::checkpoint

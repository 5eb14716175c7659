#include "plimsoll/checkpoint/writer.h"

#include <pthread.h>
#include <signal.h>

#include <algorithm>

#include "plimsoll/base/error.h"

namespace plimsoll::checkpoint {

namespace {

Bytes slot_bytes(const NamedTensor& tensor) { return round_up(tensor.size, 64); }

// A thread that inherits a mask of all signals: handlers run in the threads of the caller, and a
// file size limit becomes EFBIG instead of killing the process by SIGXFSZ.
template <typename Body>
std::thread thread_without_signals(Body body) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread thread(std::move(body));
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return thread;
}

}  // namespace

Bytes snapshot_bytes(std::span<const Shard> shards) {
  Bytes total;
  for (const Shard& shard : shards) {
    for (const NamedTensor& tensor : shard.tensors) total += slot_bytes(tensor);
  }
  return total;
}

CheckpointWriter::CheckpointWriter(std::filesystem::path root, int64_t keep,
                                   std::span<const Shard> shards, std::span<std::byte> snapshot)
    : root_(std::move(root)), keep_(keep) {
  check(static_cast<int64_t>(snapshot.size()) >= snapshot_bytes(shards).count,
        "the snapshot is smaller than the checkpoint");
  std::vector<Shard> copied(shards.begin(), shards.end());
  for (Shard& shard : copied) {
    for (NamedTensor& tensor : shard.tensors) {
      const auto slot = static_cast<size_t>(slot_bytes(tensor).count);
      copies_.push_back({tensor.read, snapshot.first(static_cast<size_t>(tensor.size.count))});
      tensor = in_memory(tensor.name, tensor.shape, tensor.format, copies_.back().to);
      snapshot = snapshot.subspan(slot);
    }
  }
  prepared_ = prepare_shards(copied);
  thread_ = thread_without_signals([this] { write_until_stopped(); });
}

CheckpointWriter::~CheckpointWriter() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void CheckpointWriter::start(CheckpointState state) {
  finish();
  for (const Copy& copy : copies_) copy.from(0, copy.to);
  {
    const std::lock_guard lock(mutex_);
    pending_ = std::move(state);
  }
  changed_.notify_all();
}

void CheckpointWriter::poll() {
  std::unique_lock lock(mutex_);
  raise_error(lock);
}

void CheckpointWriter::finish() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !pending_; });
  raise_error(lock);
}

std::optional<int64_t> CheckpointWriter::last_saved() {
  const std::lock_guard lock(mutex_);
  return last_saved_;
}

// Raises an error once.
void CheckpointWriter::raise_error(std::unique_lock<std::mutex>& lock) {
  if (!error_) return;
  const std::exception_ptr error = std::exchange(error_, nullptr);
  lock.unlock();
  std::rethrow_exception(error);
}

void CheckpointWriter::write_until_stopped() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return pending_ || stopping_; });
    if (!pending_) return;  // what was started is still written
    lock.unlock();
    std::exception_ptr error;
    bool saved = false;
    try {
      // Nobody else touches `pending_` while it is set.
      save_checkpoint(root_, *pending_, prepared_);
      saved = true;
      keep_last(root_, keep_, pending_->step);
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    if (saved) last_saved_ = pending_->step;
    error_ = error;
    pending_.reset();
    changed_.notify_all();
  }
}

}  // namespace plimsoll::checkpoint

// The run directory: everything one run leaves behind.
//
//   run.toml  plan.json  summary.json    whole or absent
//   failure.json                         failure.h: only while the last start failed
//   metrics.jsonl                        one line a step
//   events.jsonl                         what happened when
//   checkpoints/step-N/                  checkpoint.h
//   .lock                                held while a run uses the directory
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "plimsoll/base/files.h"

namespace plimsoll::train {

// A run directory that this process alone uses, as long as the object lives.
class RunDirectory {
 public:
  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path checkpoints() const { return checkpoints_; }

  // Each appears whole, replacing the one before. JSON is indented for people.
  void write_config(std::string_view toml) const;
  void write_plan(const nlohmann::ordered_json& plan) const;
  void write_summary(const nlohmann::ordered_json& summary) const;
  void write_failure(const nlohmann::ordered_json& failure) const;
  void remove_failure() const;

  // The summary that is there; null when none is, or it is not one.
  nlohmann::json summary() const;

 private:
  friend RunDirectory create_run_directory(const std::filesystem::path&, bool,
                                           std::filesystem::path);
  RunDirectory() = default;

  std::filesystem::path path_;
  std::filesystem::path checkpoints_;
  std::vector<FileLock> locks_;
};

// Creates the directory if need be and locks it, and the folder of its checkpoints where that lies
// apart (`checkpoints`; empty: inside). Raises Exit::usage when another run uses either, or when
// they hold metrics or checkpoints of an earlier run and `resume` is false. Resuming a directory
// that holds nothing yet is a fresh start.
RunDirectory create_run_directory(const std::filesystem::path& path, bool resume,
                                  std::filesystem::path checkpoints = {});

// A file of one JSON object a line, appended by one process. Each line is one write(2), so readers
// and kills see whole lines; opening removes a torn last line that a crash of the machine left.
// Numbers that JSON lacks (NaN, infinity) become null.
class JsonLines {
 public:
  explicit JsonLines(std::filesystem::path path);

  // Raises FileError when the disk fails, having removed what was written of the line.
  void append(const nlohmann::ordered_json& object);

  // Makes the lines so far durable.
  void sync();

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  FileDescriptor file_;
  int64_t size_ = 0;
};

// metrics.jsonl. Every line has an integer "step".
class MetricsLog {
 public:
  explicit MetricsLog(const RunDirectory& directory);

  void append(const nlohmann::ordered_json& line) { lines_.append(line); }
  void sync() { lines_.sync(); }

  struct Dropped {
    int64_t later = 0;
    int64_t unreadable = 0;
  };
  // On resume from the checkpoint of `step`: drops the lines of later steps, which will be run
  // again, and lines that are not JSON with a step. The file is replaced atomically.
  Dropped truncate_after(int64_t step);

 private:
  JsonLines lines_;
};

// events.jsonl: {"time": "2025-03-01T12:00:00Z", "event": "resume", ...}. UTC.
class EventLog {
 public:
  explicit EventLog(const RunDirectory& directory);

  void append(std::string_view event, const nlohmann::ordered_json& fields = {});

 private:
  JsonLines lines_;
};

}  // namespace plimsoll::train

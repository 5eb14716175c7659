#include "plimsoll/train/run_directory.h"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <optional>
#include <system_error>

#include "plimsoll/base/error.h"
#include "plimsoll/base/shell.h"

namespace plimsoll::train {

namespace fs = std::filesystem;
using nlohmann::json;
using nlohmann::ordered_json;

namespace {

constexpr std::string_view metrics_name = "metrics.jsonl";
constexpr std::string_view events_name = "events.jsonl";
constexpr std::string_view failure_name = "failure.json";

bool holds_metrics(const fs::path& path) {
  std::error_code missing;
  const auto bytes = fs::file_size(path / metrics_name, missing);
  return !missing && bytes > 0;
}

// Folders of the checkpoints themselves; hidden ones are what a killed save left.
bool holds_checkpoints(const fs::path& path) {
  return std::ranges::any_of(names_in(path),
                             [](const std::string& name) { return !name.starts_with('.'); });
}

FileLock lock_or_refuse(const fs::path& path) {
  std::optional<FileLock> lock = FileLock::try_acquire(path / ".lock");
  if (lock) return std::move(*lock);
  throw Error(Exit::usage, fmt::format("{} is in use by another run.", path.string()),
              fmt::format("Wait until it ends (`fuser {}` shows its process), or choose another "
                          "train.run_directory.",
                          shell_quoted((path / ".lock").string())));
}

void remove_abandoned_temporaries(const fs::path& path) {
  for (const std::string& name : names_in(path)) {
    if (is_abandoned_temporary(name)) remove_tree(path / name);
  }
}

std::string indented(const ordered_json& document) {
  return document.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

// The "step" of a line of metrics; empty when it has none.
std::optional<int64_t> step_of(std::string_view line) {
  const json object = json::parse(line.begin(), line.end(), nullptr, false);
  if (!object.is_object()) return std::nullopt;
  const auto step = object.find("step");
  if (step == object.end() || !step->is_number_integer()) return std::nullopt;
  return step->get<int64_t>();
}

}  // namespace

void RunDirectory::write_config(std::string_view toml) const {
  write_file_atomically(path_ / "run.toml", toml);
}

void RunDirectory::write_plan(const ordered_json& plan) const {
  write_file_atomically(path_ / "plan.json", indented(plan));
}

void RunDirectory::write_summary(const ordered_json& summary) const {
  write_file_atomically(path_ / "summary.json", indented(summary));
}

void RunDirectory::write_failure(const ordered_json& failure) const {
  write_file_atomically(path_ / failure_name, indented(failure));
}

void RunDirectory::remove_failure() const { remove_tree(path_ / failure_name); }

json RunDirectory::summary() const {
  const fs::path path = path_ / "summary.json";
  if (!fs::exists(path)) return nullptr;
  const json summary = json::parse(read_file(path), nullptr, false);
  return summary.is_object() ? summary : json(nullptr);
}

RunDirectory create_run_directory(const fs::path& path, bool resume, fs::path checkpoints) {
  const bool apart = !checkpoints.empty();
  RunDirectory directory;
  directory.path_ = path;
  directory.checkpoints_ = apart ? std::move(checkpoints) : path / "checkpoints";
  make_directories(path);
  directory.locks_.push_back(lock_or_refuse(path));
  if (apart) {
    make_directories(directory.checkpoints_);
    directory.locks_.push_back(lock_or_refuse(directory.checkpoints_));
  }
  if (!resume && (holds_metrics(path) || holds_checkpoints(directory.checkpoints_))) {
    const fs::path& holder = holds_metrics(path) ? path : directory.checkpoints_;
    throw Error(Exit::usage,
                fmt::format("{} holds an earlier run.", (apart ? holder : path).string()),
                "Continue it with --resume or --continue, or choose another train.run_directory.");
  }
  remove_abandoned_temporaries(path);
  return directory;
}

JsonLines::JsonLines(fs::path path)
    : path_(std::move(path)), file_(open_file(path_, O_WRONLY | O_CREAT | O_APPEND)) {
  const std::string text = read_file(path_);
  size_ = static_cast<int64_t>(text.rfind('\n') + 1);  // npos + 1 is 0
  if (size_ != static_cast<int64_t>(text.size()) && ::ftruncate(file_.get(), size_) != 0) {
    throw FileError("write", path_, errno);
  }
}

void JsonLines::append(const ordered_json& object) {
  const std::string line =
      object.dump(-1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
  std::string_view rest = line;
  // A regular file takes the line in one write, or part of it when the disk is full; then the
  // second write says why.
  while (!rest.empty()) {
    const ssize_t written = ::write(file_.get(), rest.data(), rest.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) {
      const int error_number = written < 0 ? errno : ENOSPC;
      // Should this fail too, the next opening removes the torn line.
      [[maybe_unused]] const int ignored = ::ftruncate(file_.get(), size_);
      throw FileError("write", path_, error_number);
    }
    rest.remove_prefix(static_cast<size_t>(written));
  }
  size_ += static_cast<int64_t>(line.size());
}

void JsonLines::sync() {
  while (::fsync(file_.get()) != 0) {
    if (errno != EINTR) throw FileError("write", path_, errno);
  }
}

MetricsLog::MetricsLog(const RunDirectory& directory) : lines_(directory.path() / metrics_name) {}

MetricsLog::Dropped MetricsLog::truncate_after(int64_t step) {
  const std::string text = read_file(lines_.path());
  Dropped dropped;
  std::string kept;
  for (size_t begin = 0, end; begin < text.size(); begin = end + 1) {
    end = text.find('\n', begin);  // opening left whole lines only
    const std::string_view line(text.data() + begin, end - begin);
    const std::optional<int64_t> line_step = step_of(line);
    if (!line_step) {
      ++dropped.unreadable;
    } else if (*line_step > step) {
      ++dropped.later;
    } else {
      kept.append(line).append("\n");
    }
  }
  if (kept != text) {
    write_file_atomically(lines_.path(), kept);
    lines_ = JsonLines(lines_.path());  // the old descriptor belongs to the replaced file
  }
  return dropped;
}

EventLog::EventLog(const RunDirectory& directory) : lines_(directory.path() / events_name) {}

void EventLog::append(std::string_view event, const ordered_json& fields) {
  ordered_json line = {
      {"time", fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)))},
      {"event", event}};
  if (!fields.is_null()) line.update(fields);
  lines_.append(line);
}

}  // namespace plimsoll::train

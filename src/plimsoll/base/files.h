// Files that survive a crash, and the few system calls behind them.
//
// What is written under its final name is complete: the bytes go to a temporary name in the same
// folder, are synced, renamed, and the folder is synced. Every failure is a FileError that carries
// the path and the errno.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "plimsoll/base/error.h"
#include "plimsoll/base/units.h"

namespace plimsoll {

// "Cannot write runs/a/plan.json: No space left on device." with Exit::data and advice that fits
// the errno. `action` is the verb: "write", "read", "lock".
class FileError : public Error {
 public:
  FileError(std::string_view action, const std::filesystem::path& path, int error_number);

  int error_number() const { return error_number_; }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  int error_number_;
};

// "No space left on device" for ENOSPC.
std::string error_text(int error_number);

// Owns a file descriptor; closes it, without reporting errors, when it goes.
class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int descriptor) : descriptor_(descriptor) {}
  FileDescriptor(FileDescriptor&& other) noexcept : descriptor_(other.release()) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept;
  ~FileDescriptor();

  int get() const { return descriptor_; }
  int release();

 private:
  int descriptor_ = -1;
};

// open(2) with O_CLOEXEC and mode 0666; raises FileError("read" or "write") as `flags` say.
FileDescriptor open_file(const std::filesystem::path& path, int flags);

// A new file written from start to end. Refuses a path that exists.
class OutputFile {
 public:
  explicit OutputFile(std::filesystem::path path);

  void write(std::span<const std::byte> bytes);
  void write(std::string_view text) { write(std::as_bytes(std::span(text))); }

  // fsync and close. Without it the file may be lost in a crash.
  void close_durably();

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  FileDescriptor file_;
};

// A file that appears at `path` whole, replacing what was there, when commit() returns. Destroyed
// without commit(), it leaves nothing.
class AtomicFile {
 public:
  explicit AtomicFile(std::filesystem::path path);
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  ~AtomicFile();

  void write(std::span<const std::byte> bytes) { output_.write(bytes); }
  void write(std::string_view text) { output_.write(text); }
  void commit();

 private:
  std::filesystem::path path_;
  OutputFile output_;
  bool committed_ = false;
};

void write_file_atomically(const std::filesystem::path& path, std::span<const std::byte> bytes);
void write_file_atomically(const std::filesystem::path& path, std::string_view text);

// Whether `name` is that of a temporary file an AtomicFile left behind when its process was killed.
bool is_abandoned_temporary(std::string_view name);

std::string read_file(const std::filesystem::path& path);

// Hands the file to `consume` from start to end, at most 64 KiB at a time; returns its size.
Bytes read_in_chunks(const std::filesystem::path& path,
                     const std::function<void(std::span<const std::byte>)>& consume);

// The file's bytes, mapped read-only. The file must not shrink while it is mapped.
class MappedFile {
 public:
  explicit MappedFile(const std::filesystem::path& path);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  std::span<const std::byte> bytes_;
};

// mkdir -p, each new folder's entry synced.
void make_directories(const std::filesystem::path& path);

// The names in a folder, in no order; none when the folder does not exist.
std::vector<std::string> names_in(const std::filesystem::path& path);

// Makes the entries of a folder (new files, renames, removals) durable.
void sync_directory(const std::filesystem::path& path);

// rm -r; a path that does not exist is fine.
void remove_tree(const std::filesystem::path& path);

// What an unprivileged user can still write to the disk of `path`, which need not exist yet.
// Zero when the system does not tell.
Bytes available_on_disk(const std::filesystem::path& path);

// An exclusive lock (flock) on a file, created if need be. It ends with the object or the process;
// the file stays.
class FileLock {
 public:
  // Empty when another process or object holds the lock.
  static std::optional<FileLock> try_acquire(const std::filesystem::path& path);

 private:
  explicit FileLock(FileDescriptor file) : file_(std::move(file)) {}
  FileDescriptor file_;
};

}  // namespace plimsoll

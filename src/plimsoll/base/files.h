// Files that survive a crash, and the few system calls behind them.
//
// What is written under its final name is complete: the bytes go to a temporary name in the same
// folder, are synced, renamed, and the folder is synced. Every failure is a FileError that carries
// the path and the errno.
//
// Only regular files are opened, without waiting: a pipe, a device or a link to one in the place of
// a file is an error at once, not a read that never ends. What a person may give as a pipe goes
// through base/streams.h.
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
// the errno. `action` is the verb: "write", "read", "lock". A file that is not there to be read is
// answered with the nearest name beside it.
class FileError : public Error {
 public:
  FileError(std::string_view action, const std::filesystem::path& path, int error_number);
  // For what has no errno that says it: a pipe in the place of a file.
  FileError(std::string_view action, const std::filesystem::path& path, std::string reason,
            std::string advice);

  int error_number() const { return error_number_; }  // 0 when there is none
  const std::string& reason() const { return reason_; }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  std::string reason_;
  int error_number_ = 0;
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

// open(2) of a regular file, or with O_DIRECTORY of a folder, with O_CLOEXEC and mode 0666. Never
// waits. Raises FileError("read" or "write") as `flags` say.
FileDescriptor open_file(const std::filesystem::path& path, int flags);

// Writes all of `bytes`; `path` is for the error.
void write_all(const FileDescriptor& file, std::span<const std::byte> bytes,
               const std::filesystem::path& path);

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

// A file that appears at `path` whole, replacing the file that was there, when commit() returns.
// Destroyed without commit(), it leaves nothing. A symbolic link stays, and the file that it leads
// to is replaced. A folder, a pipe or a device is never replaced: FileError.
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
  std::filesystem::path path_;  // where links lead to
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

// A regular file, read at any place and from any number of threads. One that is shortened while it
// is open raises an error; with a mapping, the kernel would end the process.
class InputFile {
 public:
  InputFile() = default;
  explicit InputFile(std::filesystem::path path);

  Bytes size() const { return size_; }  // when it was opened
  // Fills `out` from `offset` on. Raises FileError, also when the file has become too short.
  void read(int64_t offset, std::span<std::byte> out) const;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  FileDescriptor file_;
  Bytes size_;
};

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

// mkdir -p, each new folder's entry synced. When one cannot be made, those made before it are
// removed again.
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

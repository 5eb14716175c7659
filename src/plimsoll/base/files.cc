#include "plimsoll/base/files.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>
#include <utility>

namespace plimsoll {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view temporary_suffix = ".partial";

fs::path folder_of(const fs::path& path) {
  return path.has_parent_path() ? path.parent_path() : fs::path(".");
}

std::string advice_for_missing(const fs::path& path) {
  const fs::path folder = folder_of(path);
  std::error_code error;
  std::vector<std::string> names;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    names.push_back(entry->path().filename().string());
  }
  if (error) {
    return fmt::format("The folder {} cannot be read ({}); correct the path.", folder.string(),
                       error.message());
  }
  std::ranges::sort(names);
  const std::string similar = nearest(path.filename().string(), names);
  if (similar.empty()) return "Correct the path; a relative one starts at the current directory.";
  return fmt::format("Did you mean {}?", (path.parent_path() / similar).string());
}

std::string advice_for(std::string_view action, const fs::path& path, int error_number) {
  switch (error_number) {
    case ENOSPC:
    case EDQUOT:
      return "Free some space on that disk, or write to another one.";
    case EFBIG:
      return "The file exceeds a size limit: raise it (`ulimit -f`), or write to a file system "
             "that holds larger files.";
    case EROFS:
      return "That file system is read-only: mount it writable, or write to another one.";
    case EACCES:
    case EPERM:
      return "Give this user access to the file and its folder, or choose another path.";
    case EIO:
      return "The disk reports a fault: look into the kernel's log (`dmesg`) and use another disk.";
    case ENOENT:
    case ENOTDIR:
      return action == "read" ? advice_for_missing(path) : "Check the path.";
    case ELOOP:
      return "Its symbolic links lead in a circle, or one to the next too often: correct them.";
    case ENAMETOOLONG:
      return "Choose a shorter path.";
    case EEXIST:
      return "Remove it, or choose another path.";
    case EISDIR:
      return "Name a file, not a folder.";
    case EMFILE:
    case ENFILE:
      return "Raise the number of files a process may open (`ulimit -n`).";
    case ENOMEM:
      return "Raise the limit on address space (`ulimit -v`), or free some memory.";
    default:
      return {};
  }
}

// What stands in the place of a regular file; empty when one does.
std::string kind_of(mode_t mode) {
  if (S_ISREG(mode)) return {};
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISFIFO(mode)) return "a pipe";
  if (S_ISSOCK(mode)) return "a socket";
  return "a device";
}

[[noreturn]] void refuse(std::string_view action, const fs::path& path, const std::string& kind) {
  if (kind == "a folder") throw FileError(action, path, EISDIR);
  throw FileError(action, path, fmt::format("it is {}, not a regular file", kind),
                  action == "read" ? "Save what it gives to a file, and name that."
                                   : "Remove it, or name another file.");
}

// Where the symbolic links that `path` may be lead to, which need not exist.
fs::path followed(fs::path path) {
  const fs::path asked = path;
  std::error_code error;
  for (int hops = 0; fs::is_symlink(path, error); ++hops) {
    if (hops == 40) throw FileError("write", asked, ELOOP);
    path = path.parent_path() / fs::read_symlink(path, error);
    if (error) throw FileError("write", asked, error.value());
  }
  return path;
}

// Where a new file may be put: nothing or a regular file is there.
fs::path replaceable(const fs::path& path) {
  fs::path target = followed(path);
  struct stat status;
  if (::stat(target.c_str(), &status) == 0) {
    if (const std::string kind = kind_of(status.st_mode); !kind.empty())
      refuse("write", path, kind);
  }
  return target;
}

void sync(const FileDescriptor& file, const fs::path& path) {
  while (::fsync(file.get()) != 0) {
    if (errno != EINTR) throw FileError("write", path, errno);
  }
}

// Reads until `buffer` is full or the file ends; returns what was read.
size_t read_some(const FileDescriptor& file, std::span<std::byte> buffer, const fs::path& path) {
  size_t filled = 0;
  while (filled < buffer.size()) {
    const ssize_t count = ::read(file.get(), buffer.data() + filled, buffer.size() - filled);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw FileError("read", path, errno);
    if (count == 0) break;
    filled += static_cast<size_t>(count);
  }
  return filled;
}

// A name beside `path` that no other writer uses: a process killed earlier may have left one with
// the same process number, hence the count.
OutputFile open_temporary(const fs::path& path) {
  for (int attempt = 0;; ++attempt) {
    const std::string name =
        fmt::format(".{}.{}-{}{}", path.filename().string(), ::gettid(), attempt, temporary_suffix);
    try {
      return OutputFile(folder_of(path) / name);
    } catch (const FileError& error) {
      // The reader asked for `path`; the temporary name would only puzzle.
      if (error.error_number() != EEXIST) throw FileError("write", path, error.error_number());
    }
  }
}

}  // namespace

std::string error_text(int error_number) {
  return std::error_code(error_number, std::generic_category()).message();
}

FileError::FileError(std::string_view action, const fs::path& path, int error_number)
    : Error(Exit::data,
            fmt::format("Cannot {} {}: {}.", action, path.string(), error_text(error_number)),
            advice_for(action, path, error_number)),
      path_(path),
      reason_(error_text(error_number)),
      error_number_(error_number) {}

FileError::FileError(std::string_view action, const fs::path& path, std::string reason,
                     std::string advice)
    : Error(Exit::data, fmt::format("Cannot {} {}: {}.", action, path.string(), reason),
            std::move(advice)),
      path_(path),
      reason_(std::move(reason)) {}

FileDescriptor& FileDescriptor::operator=(FileDescriptor&& other) noexcept {
  if (this != &other) {
    if (descriptor_ >= 0) ::close(descriptor_);
    descriptor_ = other.release();
  }
  return *this;
}

FileDescriptor::~FileDescriptor() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

int FileDescriptor::release() { return std::exchange(descriptor_, -1); }

FileDescriptor open_file(const fs::path& path, int flags) {
  const std::string_view action = (flags & O_ACCMODE) == O_RDONLY ? "read" : "write";
  struct stat status;
  // O_NONBLOCK: a pipe would wait for its other end; on regular files it changes nothing.
  flags |= O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
  for (;;) {
    FileDescriptor file(::open(path.c_str(), flags, 0666));
    if (file.get() < 0) {
      const int error_number = errno;
      if (error_number == EINTR) continue;
      // What opening a pipe without a reader, or a socket, is answered with.
      if (error_number == ENXIO && ::stat(path.c_str(), &status) == 0) {
        refuse(action, path, kind_of(status.st_mode));
      }
      throw FileError(action, path, error_number);
    }
    if (::fstat(file.get(), &status) != 0) throw FileError(action, path, errno);
    const std::string kind = kind_of(status.st_mode);
    if (!kind.empty() && !(flags & O_DIRECTORY)) refuse(action, path, kind);
    return file;
  }
}

void write_all(const FileDescriptor& file, std::span<const std::byte> bytes, const fs::path& path) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(file.get(), bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) throw FileError("write", path, errno);
    if (written == 0) throw FileError("write", path, ENOSPC);
    bytes = bytes.subspan(static_cast<size_t>(written));
  }
}

OutputFile::OutputFile(fs::path path)
    : path_(std::move(path)), file_(open_file(path_, O_WRONLY | O_CREAT | O_EXCL)) {}

void OutputFile::write(std::span<const std::byte> bytes) { write_all(file_, bytes, path_); }

void OutputFile::close_durably() {
  sync(file_, path_);
  // Network file systems report a full disk as late as here. After EINTR Linux has closed it.
  if (::close(file_.release()) != 0 && errno != EINTR) throw FileError("write", path_, errno);
}

AtomicFile::AtomicFile(fs::path path) : path_(replaceable(path)), output_(open_temporary(path_)) {}

AtomicFile::~AtomicFile() {
  if (!committed_) ::unlink(output_.path().c_str());
}

void AtomicFile::commit() {
  output_.close_durably();
  if (::rename(output_.path().c_str(), path_.c_str()) != 0) throw FileError("write", path_, errno);
  committed_ = true;
  sync_directory(folder_of(path_));
}

void write_file_atomically(const fs::path& path, std::span<const std::byte> bytes) {
  AtomicFile file(path);
  file.write(bytes);
  file.commit();
}

void write_file_atomically(const fs::path& path, std::string_view text) {
  write_file_atomically(path, std::as_bytes(std::span(text)));
}

bool is_abandoned_temporary(std::string_view name) {
  return name.starts_with('.') && name.ends_with(temporary_suffix);
}

Bytes read_in_chunks(const fs::path& path,
                     const std::function<void(std::span<const std::byte>)>& consume) {
  const FileDescriptor file = open_file(path, O_RDONLY);
  std::array<std::byte, 64 * 1024> buffer;
  Bytes total;
  while (const size_t count = read_some(file, buffer, path)) {
    consume(std::span(buffer).first(count));
    total.count += static_cast<int64_t>(count);
  }
  return total;
}

std::string read_file(const fs::path& path) {
  std::string text;
  read_in_chunks(path, [&](std::span<const std::byte> chunk) {
    text.append(reinterpret_cast<const char*>(chunk.data()), chunk.size());
  });
  return text;
}

InputFile::InputFile(fs::path path) : path_(std::move(path)), file_(open_file(path_, O_RDONLY)) {
  struct stat status;
  if (::fstat(file_.get(), &status) != 0) throw FileError("read", path_, errno);
  size_ = {status.st_size};
}

void InputFile::read(int64_t offset, std::span<std::byte> out) const {
  while (!out.empty()) {
    const ssize_t count = ::pread(file_.get(), out.data(), out.size(), offset);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw FileError("read", path_, errno);
    if (count == 0) {
      throw FileError(
          "read", path_,
          fmt::format("it ends before byte {}, but had {} when it was opened", offset, size_.count),
          "It was shortened while in use: restore it. Replace such a file by a new one "
          "of its name\n(write beside it, then `mv`), never in place.");
    }
    out = out.subspan(static_cast<size_t>(count));
    offset += count;
  }
}

MappedFile::MappedFile(const fs::path& path) {
  const FileDescriptor file = open_file(path, O_RDONLY);
  struct stat status;
  if (::fstat(file.get(), &status) != 0) throw FileError("read", path, errno);
  const auto size = static_cast<size_t>(status.st_size);
  if (size == 0) return;  // mmap refuses an empty file
  void* address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (address == MAP_FAILED) throw FileError("read", path, errno);
  bytes_ = {static_cast<const std::byte*>(address), size};
}

MappedFile::MappedFile(MappedFile&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(bytes_, other.bytes_);
  return *this;
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

void make_directories(const fs::path& path) {
  std::error_code error;
  std::vector<fs::path> missing;  // the innermost first
  for (fs::path folder = path; !folder.empty() && !fs::is_directory(folder, error);
       folder = folder.parent_path()) {
    // Longer than the system's limit, this path could not be made, but those above it could.
    if (error == std::errc::filename_too_long) {
      throw FileError("create folder", path, error.value());
    }
    missing.push_back(folder);
  }
  std::vector<fs::path> made;
  for (auto folder = missing.rbegin(); folder != missing.rend(); ++folder) {
    if (::mkdir(folder->c_str(), 0777) == 0) {
      made.push_back(*folder);
      sync_directory(folder_of(*folder));
    } else if (const int error_number = errno; !fs::is_directory(*folder, error)) {
      for (auto empty = made.rbegin(); empty != made.rend(); ++empty) ::rmdir(empty->c_str());
      throw FileError("create folder", *folder, error_number);
    }
  }
}

std::vector<std::string> names_in(const fs::path& path) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator entry(path, error), end; !error && entry != end;
       entry.increment(error)) {
    names.push_back(entry->path().filename().string());
  }
  if (error && error != std::errc::no_such_file_or_directory) {
    throw FileError("read", path, error.value());
  }
  return names;
}

void sync_directory(const fs::path& path) {
  const FileDescriptor folder = open_file(path, O_RDONLY | O_DIRECTORY);
  while (::fsync(folder.get()) != 0) {
    if (errno == EINTR) continue;
    if (errno == EINVAL || errno == ENOTSUP) return;  // file systems without fsync on folders
    throw FileError("write", path, errno);
  }
}

void remove_tree(const fs::path& path) {
  std::error_code error;
  fs::remove_all(path, error);
  if (error) throw FileError("remove", path, error.value());
}

Bytes available_on_disk(const fs::path& path) {
  std::error_code error;
  fs::path existing = fs::absolute(path, error);
  fs::space_info space = fs::space(existing, error);
  while (error && existing.has_relative_path()) {
    existing = existing.parent_path();
    space = fs::space(existing, error);
  }
  return {error ? 0 : static_cast<int64_t>(space.available)};
}

std::optional<FileLock> FileLock::try_acquire(const fs::path& path) {
  FileDescriptor file = open_file(path, O_RDWR | O_CREAT);
  while (::flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) return std::nullopt;
    if (errno != EINTR) throw FileError("lock", path, errno);
  }
  return FileLock(std::move(file));
}

}  // namespace plimsoll

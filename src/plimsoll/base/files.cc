#include "plimsoll/base/files.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <system_error>
#include <utility>

namespace plimsoll {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view temporary_suffix = ".partial";

std::string advice_for(int error_number) {
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
      return "Check the path.";
    case EEXIST:
      return "Remove it, or choose another path.";
    case EISDIR:
      return "Name a file, not a folder.";
    case EMFILE:
    case ENFILE:
      return "Raise the number of files a process may open (`ulimit -n`).";
    default:
      return {};
  }
}

fs::path folder_of(const fs::path& path) {
  return path.has_parent_path() ? path.parent_path() : fs::path(".");
}

void sync(const FileDescriptor& file, const fs::path& path) {
  while (::fsync(file.get()) != 0) {
    if (errno != EINTR) throw FileError("write", path, errno);
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
            advice_for(error_number)),
      path_(path),
      error_number_(error_number) {}

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
  for (;;) {
    FileDescriptor file(::open(path.c_str(), flags | O_CLOEXEC, 0666));
    if (file.get() >= 0) return file;
    if (errno == EINTR) continue;
    throw FileError((flags & O_ACCMODE) == O_RDONLY ? "read" : "write", path, errno);
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

AtomicFile::AtomicFile(fs::path path) : path_(std::move(path)), output_(open_temporary(path_)) {}

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

MappedFile::MappedFile(const fs::path& path) {
  const FileDescriptor file = open_file(path, O_RDONLY);
  struct stat status;
  if (::fstat(file.get(), &status) != 0) throw FileError("read", path, errno);
  if (S_ISDIR(status.st_mode)) throw FileError("read", path, EISDIR);
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
  std::error_code ignored;
  if (path.empty() || fs::is_directory(path, ignored)) return;
  make_directories(path.parent_path());
  if (::mkdir(path.c_str(), 0777) == 0) {
    sync_directory(folder_of(path));
  } else if (const int error_number = errno; !fs::is_directory(path, ignored)) {
    throw FileError("create folder", path, error_number);
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

#include "plimsoll/base/streams.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "plimsoll/base/files.h"

namespace plimsoll {

namespace fs = std::filesystem;

namespace {

// open(2) of anything but a folder.
FileDescriptor open_stream(const fs::path& path, int flags) {
  const std::string_view action = (flags & O_ACCMODE) == O_RDONLY ? "read" : "write";
  for (;;) {
    FileDescriptor file(::open(path.c_str(), flags | O_CLOEXEC | O_NOCTTY));
    if (file.get() < 0 && errno == EINTR) continue;
    if (file.get() < 0) throw FileError(action, path, errno);
    struct stat status;
    if (::fstat(file.get(), &status) != 0) throw FileError(action, path, errno);
    if (S_ISDIR(status.st_mode)) throw FileError(action, path, EISDIR);
    return file;
  }
}

// Whether something can be read, or the other end is closed, before `patience` is over.
bool becomes_readable(const FileDescriptor& file, std::chrono::milliseconds patience) {
  pollfd waited = {.fd = file.get(), .events = POLLIN, .revents = 0};
  int ready = 0;
  do {
    ready = ::poll(&waited, 1, static_cast<int>(patience.count()));
  } while (ready < 0 && errno == EINTR);
  return ready != 0;
}

// Whether writing to `path` goes to an open file of this process (/dev/stdout, /dev/fd/3), which
// must not be replaced: what was written to it before would be lost.
bool is_descriptor(fs::path path) {
  std::error_code error;
  for (int hops = 0; hops < 40 && fs::is_symlink(path, error); ++hops) {
    const fs::path folder = fs::canonical(path.has_parent_path() ? path.parent_path() : ".", error);
    if (!error && folder.string().starts_with("/proc/")) return true;
    path = path.parent_path() / fs::read_symlink(path, error);
    if (error) return false;
  }
  return false;
}

}  // namespace

std::string read_input(const fs::path& path, Bytes most, std::chrono::milliseconds patience) {
  const FileDescriptor file = open_stream(path, O_RDONLY | O_NONBLOCK);
  std::string text;
  for (;;) {
    if (!becomes_readable(file, patience)) {
      throw FileError("read", path,
                      fmt::format("nothing came through it for {} s",
                                  std::chrono::duration<double>(patience).count()),
                      "Name a file, or a pipe that something writes to.");
    }
    const size_t filled = text.size();
    text.resize(filled + 64 * 1024);
    const ssize_t count = ::read(file.get(), text.data() + filled, text.size() - filled);
    const int error_number = errno;
    text.resize(filled + static_cast<size_t>(std::max<ssize_t>(count, 0)));
    if (count == 0) return text;
    if (count < 0 && error_number != EINTR && error_number != EAGAIN) {
      throw FileError("read", path, error_number);
    }
    if (static_cast<int64_t>(text.size()) > most.count) {
      throw FileError("read", path, fmt::format("it holds more than {}", to_text(most)),
                      "Name another file.");
    }
  }
}

void write_output(const fs::path& path, std::string_view text) {
  struct stat status;
  const bool exists = ::stat(path.c_str(), &status) == 0;
  if (!exists || S_ISDIR(status.st_mode) || (S_ISREG(status.st_mode) && !is_descriptor(path))) {
    write_file_atomically(path, text);
    return;
  }
  const FileDescriptor file = open_stream(path, O_WRONLY | O_APPEND);
  write_all(file, std::as_bytes(std::span(text)), path);
}

}  // namespace plimsoll

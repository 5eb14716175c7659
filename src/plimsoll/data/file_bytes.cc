#include "plimsoll/data/file_bytes.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <vector>

#include "plimsoll/base/error.h"

namespace plimsoll::data {

namespace fs = std::filesystem;

namespace {

std::string advice_for_missing(const fs::path& path) {
  const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
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
  std::sort(names.begin(), names.end());
  const std::string similar = nearest(path.filename().string(), names);
  if (similar.empty()) return "Correct the path; a relative one starts at the current directory.";
  return fmt::format("Did you mean {}?", (path.parent_path() / similar).string());
}

struct Descriptor {
  int fd;
  ~Descriptor() {
    if (fd >= 0) close(fd);
  }
};

}  // namespace

void bad_file(const fs::path& path, const std::string& problem, std::string advice) {
  throw Error(Exit::data, fmt::format("{}: {}.", path.string(), problem), std::move(advice));
}

FileBytes map_file(const fs::path& path) {
  // O_NONBLOCK: opening a pipe without a writer would wait forever.
  const Descriptor file{open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  if (file.fd < 0) {
    if (errno == ENOENT || errno == ENOTDIR)
      bad_file(path, "no such file", advice_for_missing(path));
    bad_file(path, fmt::format("cannot be opened ({})", std::strerror(errno)),
             "Make the file readable for this user, or name another one.");
  }
  struct stat status {};
  if (fstat(file.fd, &status) != 0) {
    bad_file(path, fmt::format("cannot be examined ({})", std::strerror(errno)), "");
  }
  if (S_ISDIR(status.st_mode)) {
    bad_file(path, "is a directory, not a file of tokens or text", "Name one file in it.");
  }
  if (!S_ISREG(status.st_mode)) {
    bad_file(
        path, "is not a regular file",
        "Tokens are read in shuffled order, so pipes and devices do not do; save it to a file.");
  }
  if (status.st_size == 0) bad_file(path, "is empty", "Name a file that holds text or tokens.");

  const size_t size = static_cast<size_t>(status.st_size);
  void* const address = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.fd, 0);
  if (address == MAP_FAILED) {
    bad_file(path, fmt::format("cannot be mapped ({})", std::strerror(errno)),
             "Copy it to a local disk, or raise the limit on address space (ulimit -v).");
  }
  FileBytes result;
  result.owner = std::shared_ptr<const void>(
      address, [size](const void* mapped) { munmap(const_cast<void*>(mapped), size); });
  result.bytes = {static_cast<const uint8_t*>(address), size};
  return result;
}

bool is_gzip(std::span<const uint8_t> bytes) {
  return bytes.size() >= 3 && bytes[0] == 0x1f && bytes[1] == 0x8b && bytes[2] == 8;
}

FileBytes decompress(const fs::path& path) {
  const std::unique_ptr<gzFile_s, int (*)(gzFile)> file(gzopen(path.c_str(), "rb"), gzclose_r);
  if (!file) {
    bad_file(path, fmt::format("cannot be opened ({})", std::strerror(errno)),
             "Make the file readable for this user, or name another one.");
  }
  gzbuffer(file.get(), 1u << 18);

  auto bytes = std::make_shared<std::vector<uint8_t>>();
  // Typical text shrinks to a third; growth by half covers the rest without a trusted length.
  bytes->resize(std::max<size_t>(size_t{1} << 16, fs::file_size(path) * 3));
  size_t filled = 0;
  int count = 0;
  do {
    if (filled == bytes->size()) bytes->resize(filled + filled / 2);
    const size_t room = std::min<size_t>(bytes->size() - filled, size_t{1} << 24);
    count = gzread(file.get(), bytes->data() + filled, static_cast<unsigned>(room));
    if (count > 0) filled += static_cast<size_t>(count);
  } while (count > 0);

  // A truncated file ends without -1, but leaves its error behind.
  int code = Z_OK;
  const std::string message = gzerror(file.get(), &code);
  if (code != Z_OK && code != Z_STREAM_END) {
    const size_t prefix = message.find(": ");  // zlib repeats the path
    bad_file(
        path,
        fmt::format("corrupt gzip data near byte {} of the file, after {} decompressed bytes ({})",
                    gzoffset(file.get()), filled,
                    prefix == std::string::npos ? message : message.substr(prefix + 2)),
        "Check it with `gzip -t` and copy or download it again.");
  }
  if (filled == 0) bad_file(path, "holds no data once decompressed", "Name a file with text.");
  bytes->resize(filled);
  bytes->shrink_to_fit();

  FileBytes result;
  result.bytes = {bytes->data(), bytes->size()};
  result.owner = std::move(bytes);
  result.decompressed = true;
  return result;
}

}  // namespace plimsoll::data

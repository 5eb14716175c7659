#include "plimsoll/data/token_writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

#include "plimsoll/base/error.h"

namespace plimsoll::data {

namespace fs = std::filesystem;

namespace {

[[noreturn]] void fail(const fs::path& path, std::string_view problem) {
  throw Error(Exit::data, fmt::format("{}: {} ({}).", path.string(), problem, std::strerror(errno)),
              "Check that the folder exists, is writable and has free space.");
}

}  // namespace

TokenWriter::TokenWriter(fs::path path, int64_t vocabulary)
    : path_(std::move(path)),
      temporary_(path_.string() + fmt::format(".{}.part", getpid())),
      vocabulary_(vocabulary),
      bytes_per_token_(vocabulary <= (int64_t{1} << 16) ? 2 : 4) {
  check(vocabulary > 0 && vocabulary <= int64_t{1} << 31, "vocabulary of a token file");
  fd_ = open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd_ < 0) fail(path_, "cannot be created");
  // The count is known at the end: finish() fills the gap left here.
  lseek(fd_, kPlimsollHeaderBytes, SEEK_SET);
}

TokenWriter::~TokenWriter() {
  if (fd_ < 0) return;
  close(fd_);
  unlink(temporary_.c_str());
}

void TokenWriter::write(std::span<const uint8_t> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd_, bytes.data(), bytes.size());
    if (written < 0 && errno != EINTR) fail(path_, "cannot be written");
    if (written > 0) bytes = bytes.subspan(static_cast<size_t>(written));
  }
}

void TokenWriter::append(std::span<const int32_t> tokens) {
  const size_t width = static_cast<size_t>(bytes_per_token_);
  buffer_.resize(tokens.size() * width);
  for (size_t i = 0; i < tokens.size(); ++i) {
    const int32_t id = tokens[i];
    if (id < 0 || id >= vocabulary_) {
      throw Error(Exit::data,
                  fmt::format("{}: token {} has id {}, outside the vocabulary of {}.",
                              path_.string(), count_ + static_cast<int64_t>(i), id, vocabulary_),
                  "Write with the vocabulary of the tokenizer that made the ids.");
    }
    // Little-endian: the low bytes come first, so the first two are the 16-bit id.
    std::memcpy(buffer_.data() + i * width, &id, width);
  }
  write(buffer_);
  count_ += static_cast<int64_t>(tokens.size());
}

void TokenWriter::finish() {
  const auto header = plimsoll_header(bytes_per_token_, count_, vocabulary_);
  if (pwrite(fd_, header.data(), header.size(), 0) != static_cast<ssize_t>(header.size()) ||
      fsync(fd_) != 0) {
    fail(path_, "cannot be written");
  }
  if (rename(temporary_.c_str(), path_.c_str()) != 0) fail(path_, "cannot be put in place");
  close(fd_);
  fd_ = -1;
  // The rename lasts once the folder is on disk too.
  const fs::path folder = path_.has_parent_path() ? path_.parent_path() : fs::path(".");
  const int folder_fd = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder_fd < 0) return;
  fsync(folder_fd);
  close(folder_fd);
}

void write_tokens(const fs::path& path, const TokenSource& source, int64_t vocabulary) {
  TokenWriter writer(path, vocabulary);
  std::vector<int32_t> block(size_t{1} << 16);
  for (int64_t begin = 0; begin < source.size();) {
    const size_t count = std::min<size_t>(block.size(), static_cast<size_t>(source.size() - begin));
    const std::span<int32_t> tokens(block.data(), count);
    source.read(begin, tokens);
    writer.append(tokens);
    begin += static_cast<int64_t>(count);
  }
  writer.finish();
}

}  // namespace plimsoll::data

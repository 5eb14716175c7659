#include "plimsoll/data/corpus_file.h"

#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <string_view>

#include "plimsoll/base/error.h"

namespace plimsoll::data {

namespace fs = std::filesystem;

namespace {

constexpr int64_t kInputBytes = int64_t{1} << 18;

// Reads the members of one gzip file, one after the other.
class Inflater {
 public:
  Inflater(const InputFile& file, Bytes most) : file_(file), most_(most), input_(kInputBytes) {
    // 15 + 16: the largest window, gzip headers and nothing else.
    check(inflateInit2(&stream_, 15 + 16) == Z_OK, "zlib can be set up");
  }
  ~Inflater() { inflateEnd(&stream_); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  Decompressed run() {
    do {
      read_member();
    } while (another_follows());
    return std::move(text_);
  }

 private:
  // Place in the file of the next byte to look at.
  int64_t position() const { return read_ - static_cast<int64_t>(stream_.avail_in); }

  // Makes sure that there is input; false at the end of the file.
  bool refill() {
    if (stream_.avail_in > 0) return true;
    const int64_t count = std::min(kInputBytes, file_.size().count - read_);
    if (count == 0) return false;
    const std::span<uint8_t> next(input_.data(), static_cast<size_t>(count));
    file_.read(read_, std::as_writable_bytes(next));
    read_ += count;
    stream_.next_in = next.data();
    stream_.avail_in = static_cast<unsigned>(count);
    return true;
  }

  void read_member() {
    inflateReset(&stream_);
    for (;;) {
      if (!refill()) damaged("unexpected end of file");
      const std::span<uint8_t> room = text_.room();
      stream_.next_out = room.data();
      stream_.avail_out = static_cast<unsigned>(room.size());
      const int code = inflate(&stream_, Z_NO_FLUSH);
      text_.grow(room.size() - stream_.avail_out);
      if (text_.size() > most_.count) too_large();
      if (code == Z_STREAM_END) return;
      if (code == Z_MEM_ERROR) throw std::bad_alloc();
      if (code != Z_OK && code != Z_BUF_ERROR) {
        damaged(stream_.msg ? stream_.msg : "not deflate data");
      }
    }
  }

  // After a member: another one, or nothing but the zeros that tapes and block devices add.
  bool another_follows() {
    const int64_t end = position();
    bool zeros = false;
    while (refill()) {
      if (*stream_.next_in != 0) {
        if (zeros) damaged(fmt::format("zeros from byte {} on, then something else", end));
        return true;
      }
      zeros = true;
      ++stream_.next_in;
      --stream_.avail_in;
    }
    return false;
  }

  [[noreturn]] void damaged(std::string_view reason) const {
    bad_file(
        file_.path(),
        fmt::format("corrupt gzip data near byte {} of the file, after {} decompressed bytes ({})",
                    position(), text_.size(), reason),
        "Check it with `gzip -t` and copy or download it again.");
  }

  [[noreturn]] void too_large() const {
    throw Error(
        Exit::does_not_fit,
        fmt::format("This does not fit: the text of {}, decompressed to memory, takes more than "
                    "the {} that are left.",
                    file_.path().string(), to_text(most_)),
        "Decompress it once (`zcat FILE > corpus.txt`) and name that: it is read from the disk and "
        "takes no memory.\nOr raise train.memory_limit, or make the step smaller.");
  }

  const InputFile& file_;
  Bytes most_;
  std::vector<uint8_t> input_;
  int64_t read_ = 0;  // bytes of the file taken so far
  z_stream stream_{};
  Decompressed text_;
};

}  // namespace

void bad_file(const fs::path& path, const std::string& problem, std::string advice) {
  throw Error(Exit::data, fmt::format("{}: {}.", path.string(), problem), std::move(advice));
}

void Decompressed::read(int64_t offset, std::span<uint8_t> out) const {
  while (!out.empty()) {
    const int64_t within = offset % kPiece;
    const auto count = std::min(out.size(), static_cast<size_t>(kPiece - within));
    std::memcpy(out.data(), pieces_[static_cast<size_t>(offset / kPiece)].get() + within, count);
    out = out.subspan(count);
    offset += static_cast<int64_t>(count);
  }
}

std::span<uint8_t> Decompressed::room() {
  const int64_t within = size_ % kPiece;
  if (size_ == static_cast<int64_t>(pieces_.size()) * kPiece) {
    // Without initial values: pages that no text reaches are never made.
    pieces_.emplace_back(new uint8_t[kPiece]);
  }
  return {pieces_.back().get() + within, static_cast<size_t>(kPiece - within)};
}

CorpusFile::CorpusFile(const fs::path& path) : file_(std::make_shared<const InputFile>(path)) {
  if (file_->size().count == 0)
    bad_file(path, "is empty", "Name a file that holds text or tokens.");
}

int64_t CorpusFile::size() const {
  if (text_) return text_->size();
  return file_ ? file_->size().count : 0;
}

void CorpusFile::read(int64_t offset, std::span<uint8_t> out) const {
  check(offset >= 0 && static_cast<int64_t>(out.size()) <= size() - offset,
        "bytes to read lie within their file");
  if (text_) {
    text_->read(offset, out);
  } else {
    file_->read(offset, std::as_writable_bytes(out));
  }
}

std::vector<uint8_t> CorpusFile::beginning(int64_t count) const {
  std::vector<uint8_t> bytes(static_cast<size_t>(std::min(count, size())));
  read(0, bytes);
  return bytes;
}

CorpusFile CorpusFile::decompressed(Bytes most) const {
  CorpusFile result;
  result.file_ = file_;
  result.text_ = std::make_shared<const Decompressed>(Inflater(*file_, most).run());
  if (result.size() == 0) {
    bad_file(file_->path(), "holds no data once decompressed", "Name a file with text.");
  }
  return result;
}

bool is_gzip(std::span<const uint8_t> bytes) {
  return bytes.size() >= 3 && bytes[0] == 0x1f && bytes[1] == 0x8b && bytes[2] == 8;
}

}  // namespace plimsoll::data

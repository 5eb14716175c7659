// Where a run tells what it does: standard output, until nobody listens any more.
#pragma once

#include <array>
#include <ostream>
#include <streambuf>

namespace plimsoll::train {

// A stream to a file descriptor that never fails: when the reader is gone (`| head`, a terminal
// that was closed) or the disk of a log is full, what cannot be written is dropped and the run goes
// on. Ignore SIGPIPE, or a closed pipe ends the process all the same.
class RunOutput : public std::ostream {
 public:
  explicit RunOutput(int descriptor) : std::ostream(nullptr), buffer_(descriptor) {
    rdbuf(&buffer_);
  }

 private:
  class Buffer : public std::streambuf {
   public:
    explicit Buffer(int descriptor) : descriptor_(descriptor) {
      setp(pending_.data(), pending_.data() + pending_.size());
    }
    ~Buffer() override { sync(); }

   protected:
    int sync() override;
    int_type overflow(int_type next) override;

   private:
    int descriptor_;
    bool gone_ = false;  // nobody will ever read again
    std::array<char, 4096> pending_;
  };

  Buffer buffer_;
};

}  // namespace plimsoll::train

#include "plimsoll/train/output.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>

namespace plimsoll::train {

int RunOutput::Buffer::sync() {
  const char* next = pbase();
  while (next < pptr() && !gone_) {
    const ssize_t written = ::write(descriptor_, next, static_cast<size_t>(pptr() - next));
    if (written >= 0) {
      next += written;
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      pollfd slow = {.fd = descriptor_, .events = POLLOUT, .revents = 0};
      poll(&slow, 1, -1);
    } else if (errno != EINTR) {
      gone_ = errno != ENOSPC && errno != EDQUOT;  // a full disk may have room again
      break;
    }
  }
  setp(pending_.data(), pending_.data() + pending_.size());
  return 0;
}

RunOutput::Buffer::int_type RunOutput::Buffer::overflow(int_type next) {
  sync();
  if (!traits_type::eq_int_type(next, traits_type::eof())) {
    *pptr() = traits_type::to_char_type(next);
    pbump(1);
  }
  return traits_type::not_eof(next);
}

}  // namespace plimsoll::train

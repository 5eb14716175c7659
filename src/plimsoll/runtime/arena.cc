#include "plimsoll/runtime/arena.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "plimsoll/base/error.h"

namespace plimsoll::runtime {

Arena::Arena(Bytes size) : size_(size) {
  if (size.count == 0) return;
  void* pages = mmap(nullptr, static_cast<size_t>(size.count), PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED) {
    throw Error(
        Exit::does_not_fit,
        fmt::format("The system refused the arena of {}: {}.", to_text(size), std::strerror(errno)),
        "Free memory on this machine, or lower step.micro_batch.");
  }
  data_ = static_cast<std::byte*>(pages);
  madvise(pages, static_cast<size_t>(size.count), MADV_HUGEPAGE);  // fewer TLB misses; optional
  const int64_t page = sysconf(_SC_PAGESIZE);
  for (int64_t offset = 0; offset < size.count; offset += page) data_[offset] = std::byte{0};
}

Arena::~Arena() {
  if (data_ != nullptr) munmap(data_, static_cast<size_t>(size_.count));
}

}  // namespace plimsoll::runtime

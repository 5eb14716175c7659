#include "plimsoll/runtime/cpu/pages.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "plimsoll/base/error.h"

namespace plimsoll::cpu {

runtime::Memory map_pages(Bytes size) {
  if (size.count == 0) return {};
  const auto length = static_cast<size_t>(size.count);
  void* pages = mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED) {
    throw Error(
        Exit::does_not_fit,
        fmt::format("The system refused the arena of {}: {}.", to_text(size), std::strerror(errno)),
        "Free memory on this machine, or lower step.micro_batch.");
  }
  const runtime::Memory memory(static_cast<std::byte*>(pages),
                               [length](std::byte* data) { munmap(data, length); });
  madvise(pages, length, MADV_HUGEPAGE);  // fewer TLB misses; optional
  const int64_t page = sysconf(_SC_PAGESIZE);
  for (int64_t offset = 0; offset < size.count; offset += page) memory.get()[offset] = std::byte{0};
  return memory;
}

}  // namespace plimsoll::cpu

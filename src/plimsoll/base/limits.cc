#include "plimsoll/base/limits.h"

#include <sys/mman.h>

#include <latch>
#include <system_error>
#include <thread>
#include <vector>

#include "plimsoll/base/error.h"

namespace plimsoll {

void require_threads(int count) {
  std::latch all_started(1);
  std::vector<std::jthread> threads;
  bool refused = false;
  try {
    threads.reserve(static_cast<size_t>(count));
    while (static_cast<int>(threads.size()) + 1 < count) {
      threads.emplace_back([&] { all_started.wait(); });
    }
  } catch (const std::system_error&) {
    refused = true;
  }
  const size_t possible = threads.size() + 1;
  all_started.count_down();
  threads.clear();  // joins
  if (!refused) return;
  throw Error(
      Exit::does_not_fit,
      fmt::format("The system gives {} threads, not the {} that are wanted.", possible, count),
      fmt::format("Set train.threads (or --threads) to {} or less, or raise the limits on "
                  "processes\n(`ulimit -u`) and address space (`ulimit -v`).",
                  possible));
}

void require_address_space(Bytes memory) {
  constexpr Bytes beside = {int64_t{64} << 20};
  const auto size = static_cast<size_t>((memory + beside).count);
  void* const pages =
      ::mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (pages == MAP_FAILED) {
    throw Error(Exit::does_not_fit,
                fmt::format("The address space has no room for {} and {} beside it.",
                            to_text(memory), to_text(beside)),
                "Raise its limit (`ulimit -v`), or make the step smaller.");
  }
  ::munmap(pages, size);
}

}  // namespace plimsoll

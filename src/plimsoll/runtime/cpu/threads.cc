#include "plimsoll/runtime/cpu/threads.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <system_error>
#include <thread>

#include "plimsoll/base/limits.h"
#include "plimsoll/runtime/cpu/machine.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace plimsoll::cpu {

namespace {

constexpr auto kSpin = std::chrono::microseconds(50);
constexpr int kMostWorkers = 511;

void relax() {
#if defined(__x86_64__)
  _mm_pause();
#endif
}

// Returns when `word` is not `old`: soon after it changes within the spin, else woken.
template <class T>
void wait_while(const std::atomic<T>& word, T old, bool spin) {
  if (spin) {
    const auto until = std::chrono::steady_clock::now() + kSpin;
    do {
      for (int i = 0; i < 32; ++i) {
        if (word.load(std::memory_order_acquire) != old) return;
        relax();
      }
    } while (std::chrono::steady_clock::now() < until);
  }
  word.wait(old, std::memory_order_acquire);
}

thread_local bool inside_region = false;

// `claims_` names the region (upper half), the pieces left to take and the next one, so that one
// comparison and exchange takes a piece of the region that was looked at and of no later one.
class Pool {
 public:
  static Pool& of_process() {
    static std::mutex mutex;
    static Pool* pool = nullptr;
    const std::lock_guard lock(mutex);
    // A forked child has the memory of the pool but not its threads. Never destroyed: the threads
    // sleep until the process ends.
    if (!pool || pool->process_ != getpid()) pool = new Pool;
    return *pool;
  }

  void run(int pieces, detail::Piece piece, const void* body) {
    const std::lock_guard region(region_);
    grow(pieces - 1);
    spin_ = pieces <= cores_;
    piece_ = piece;
    body_ = body;
    left_.store(pieces, std::memory_order_relaxed);
    ++number_;
    claims_.store(uint64_t{number_} << 32 | static_cast<uint64_t>(pieces) << 16,
                  std::memory_order_release);
    const int helpers = std::min(workers_, pieces - 1);
    for (int i = 0; i < helpers; ++i) {
      go_[i].word.store(number_, std::memory_order_release);
      go_[i].word.notify_one();
    }
    inside_region = true;
    take_pieces();
    inside_region = false;
    for (int left = left_.load(std::memory_order_acquire); left != 0;
         left = left_.load(std::memory_order_acquire)) {
      wait_while(left_, left, spin_);
    }
  }

 private:
  struct alignas(64) Go {
    std::atomic<uint32_t> word{0};
  };

  void take_pieces() {
    uint64_t claims = claims_.load(std::memory_order_acquire);
    for (;;) {
      const auto next = static_cast<int>(claims & 0xffff);
      const auto pieces = static_cast<int>(claims >> 16 & 0xffff);
      if (next >= pieces) return;
      if (!claims_.compare_exchange_weak(claims, claims + 1, std::memory_order_acq_rel,
                                         std::memory_order_acquire)) {
        continue;
      }
      piece_(body_, next);
      if (left_.fetch_sub(1, std::memory_order_acq_rel) == 1) left_.notify_one();
      claims = claims_.load(std::memory_order_acquire);
    }
  }

  void work(int index) {
    inside_region = true;
    for (uint32_t seen = 0;;) {
      wait_while(go_[index].word, seen, spin_.load(std::memory_order_relaxed));
      seen = go_[index].word.load(std::memory_order_acquire);
      take_pieces();
    }
  }

  // Signals are for the threads that know what to do with them. Where the system has no more
  // threads, those there are take all pieces.
  void grow(int workers) {
    workers = std::min(workers, kMostWorkers);
    if (workers <= workers_ || full_) return;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    try {
      for (; workers_ < workers; ++workers_) {
        std::thread([this, index = workers_] { work(index); }).detach();
      }
    } catch (const std::system_error&) {
      full_ = true;
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }

  const pid_t process_ = getpid();
  const int cores_ = core_count();
  std::mutex region_;  // one region at a time
  int workers_ = 0;
  bool full_ = false;
  uint32_t number_ = 0;
  std::atomic<bool> spin_ = false;
  detail::Piece piece_ = nullptr;
  const void* body_ = nullptr;
  alignas(64) std::atomic<uint64_t> claims_{0};
  alignas(64) std::atomic<int> left_{0};
  Go go_[kMostWorkers];
};

std::atomic<int> setting = 1;

}  // namespace

void set_thread_count(int threads) { setting = std::max(1, threads); }
int thread_count() { return setting; }

namespace detail {

void run_pieces(int pieces, Piece piece, const void* body) {
  if (pieces <= 1 || pieces > 0xffff || inside_region) {
    for (int i = 0; i < pieces; ++i) piece(body, i);
    return;
  }
  Pool::of_process().run(pieces, piece, body);
}

}  // namespace detail

void start_threads(int count) {
  if (count == 0) count = core_count();
  require_threads(count);
  run_pieces(count, [](int) {});
}

}  // namespace plimsoll::cpu

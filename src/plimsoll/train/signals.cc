#include "plimsoll/train/signals.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <array>

#include "plimsoll/base/error.h"

namespace plimsoll::train {

namespace {

struct StopSignal {
  int number;
  std::string_view name;
};
constexpr std::array stop_signals = {
    StopSignal{SIGTERM, "SIGTERM"}, StopSignal{SIGINT, "SIGINT"},   StopSignal{SIGHUP, "SIGHUP"},
    StopSignal{SIGUSR1, "SIGUSR1"}, StopSignal{SIGUSR2, "SIGUSR2"}, StopSignal{SIGXCPU, "SIGXCPU"}};

// Those that the process does not ignore.
sigset_t stop_set() {
  sigset_t set;
  sigemptyset(&set);
  for (const StopSignal& signal : stop_signals) {
    struct sigaction action = {};
    sigaction(signal.number, nullptr, &action);
    if (action.sa_handler != SIG_IGN) sigaddset(&set, signal.number);
  }
  return set;
}

}  // namespace

std::string_view signal_name(int signal) {
  for (const StopSignal& known : stop_signals) {
    if (known.number == signal) return known.name;
  }
  return "a signal";
}

StopSignals::StopSignals(std::chrono::milliseconds patience)
    : patience_(patience), set_(stop_set()) {
  check(pthread_sigmask(SIG_BLOCK, &set_, &before_) == 0, "blocking the stop signals");
  signals_ = signalfd(-1, &set_, SFD_NONBLOCK | SFD_CLOEXEC);
  stop_watching_ = eventfd(0, EFD_CLOEXEC);
  check(signals_ >= 0 && stop_watching_ >= 0, "signalfd and eventfd");
  watcher_ = std::thread([this] { watch(); });
}

StopSignals::~StopSignals() {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(stop_watching_, &one, sizeof(one));
  watcher_.join();
  // One that arrives in this moment finds a run that is over.
  signalfd_siginfo late;
  while (read(signals_, &late, sizeof(late)) == sizeof(late)) {
  }
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  close(signals_);
  close(stop_watching_);
}

void StopSignals::keep() {
  const std::scoped_lock lock(mutex_);
  keeping_ = true;
}

void StopSignals::watch() {
  std::array<pollfd, 2> ready = {pollfd{.fd = signals_, .events = POLLIN, .revents = 0},
                                 pollfd{.fd = stop_watching_, .events = POLLIN, .revents = 0}};
  for (;;) {
    poll(ready.data(), ready.size(), -1);
    signalfd_siginfo info;
    while (read(signals_, &info, sizeof(info)) == sizeof(info)) {
      handle(static_cast<int>(info.ssi_signo));
    }
    if (ready[1].revents != 0) return;
  }
}

void StopSignals::handle(int signal) {
  const std::scoped_lock lock(mutex_);
  if (!keeping_) {
    const std::string text = fmt::format(
        "Interrupted by {} before a step was begun; nothing was changed.\n", signal_name(signal));
    [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, text.data(), text.size());
    _exit(static_cast<int>(Exit::interrupted));
  }
  int none = 0;
  arrived_.compare_exchange_strong(none, signal);
  if (signal != SIGINT) return;
  const auto now = std::chrono::steady_clock::now();
  if (first_interrupt_ == std::chrono::steady_clock::time_point{}) {
    first_interrupt_ = now;
  } else if (now - first_interrupt_ >= patience_) {
    // As if it had never been caught: what is being written is discarded at the next start.
    std::signal(SIGINT, SIG_DFL);
    sigset_t only = {};
    sigaddset(&only, SIGINT);
    pthread_sigmask(SIG_UNBLOCK, &only, nullptr);
    raise(SIGINT);
  }
}

}  // namespace plimsoll::train

#include "plimsoll/train/signals.h"

#include <sys/signalfd.h>
#include <unistd.h>

#include <csignal>

#include "plimsoll/base/error.h"

namespace plimsoll::train {

namespace {

sigset_t stop_set() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  return set;
}

}  // namespace

StopSignals::StopSignals() {
  const sigset_t set = stop_set();
  check(pthread_sigmask(SIG_BLOCK, &set, nullptr) == 0, "blocking the stop signals");
  descriptor_ = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
  check(descriptor_ >= 0, "signalfd");
}

StopSignals::~StopSignals() {
  const sigset_t set = stop_set();
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
  close(descriptor_);
}

int StopSignals::arrived() {
  signalfd_siginfo info;
  if (signal_ == 0 && read(descriptor_, &info, sizeof(info)) == sizeof(info)) {
    signal_ = static_cast<int>(info.ssi_signo);
    // From here on the default action applies again: a second signal ends the process at once.
    const sigset_t set = stop_set();
    pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
  }
  return signal_;
}

}  // namespace plimsoll::train

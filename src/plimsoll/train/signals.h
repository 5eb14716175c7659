// Signals that ask a run to stop, as something to ask about instead of something that happens.
//
// SIGTERM (schedulers, `docker stop`), SIGINT (Ctrl-C), SIGHUP (the terminal is gone), SIGUSR1 and
// SIGUSR2 (Slurm's --signal, LSF, SGE: the time limit is near), SIGXCPU (a CPU limit). One that the
// process was told to ignore (nohup, a background job of a shell) stays ignored.
#pragma once

#include <atomic>
#include <chrono>
#include <csignal>
#include <mutex>
#include <string_view>
#include <thread>

namespace plimsoll::train {

// Collects them in a thread of its own, so that they are honoured whatever the others are doing.
// Make it before any other thread; one at a time.
//
// Until keep() nothing is at stake: a signal ends the process at once with Exit::interrupted. From
// then on the first one is kept for arrived(), and no other one ends the process: schedulers and
// shells send several, of several kinds, and follow them with SIGKILL. Only a person who presses
// Ctrl-C again, `patience` or more after the first time, is taken at their word.
class StopSignals {
 public:
  explicit StopSignals(std::chrono::milliseconds patience = std::chrono::seconds(2));
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  void keep();

  // The number of the first signal that has arrived, 0 when none has.
  int arrived() const { return arrived_.load(); }

 private:
  void watch();
  void handle(int signal);

  const std::chrono::milliseconds patience_;
  sigset_t set_;     // those that are collected
  sigset_t before_;  // the mask of the thread that made this
  int signals_ = -1;
  int stop_watching_ = -1;
  std::atomic<int> arrived_ = 0;
  std::mutex mutex_;
  bool keeping_ = false;
  std::chrono::steady_clock::time_point first_interrupt_ = {};
  std::thread watcher_;
};

// "SIGTERM".
std::string_view signal_name(int signal);

}  // namespace plimsoll::train

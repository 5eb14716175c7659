#include "plimsoll/train/signals.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <thread>

#include "plimsoll/base/error.h"

namespace plimsoll::train {
namespace {

// How a process that runs `body` ends: its exit code, or minus the signal that ended it.
int end_of(const std::function<int()>& body) {
  const pid_t child = fork();
  if (child == 0) {
    for (const int signal : {SIGHUP, SIGINT, SIGTERM}) std::signal(signal, SIG_DFL);
    _exit(body());
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

// Sends the signals to the process itself and waits until they have been collected.
int first_of(StopSignals& signals, std::initializer_list<int> sent) {
  for (const int signal : sent) {
    kill(getpid(), signal);
    while (signals.arrived() == 0) std::this_thread::yield();
  }
  return signals.arrived();
}

TEST(StopSignals, EndTheProcessWith75WhileNothingIsAtStake) {
  EXPECT_EQ(end_of([] {
              const StopSignals signals;
              kill(getpid(), SIGTERM);
              for (;;) pause();
              return 0;
            }),
            static_cast<int>(Exit::interrupted));
}

TEST(StopSignals, OfAnyKindAndNumberAreKeptAndTheFirstIsTold) {
  for (const int first : {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2, SIGXCPU}) {
    EXPECT_EQ(end_of([&] {
                StopSignals signals(std::chrono::hours(1));
                signals.keep();
                if (signals.arrived() != 0) return 1;
                const int told = first_of(
                    signals, {first, SIGTERM, SIGTERM, SIGINT, SIGHUP, SIGINT, SIGUSR1, SIGTERM});
                return told == first ? 0 : 2;
              }),
              0)
        << signal_name(first);
  }
}

TEST(StopSignals, ASecondInterruptAfterAWhileEndsTheProcess) {
  EXPECT_EQ(end_of([] {
              StopSignals signals(std::chrono::milliseconds(0));
              signals.keep();
              first_of(signals, {SIGINT});
              kill(getpid(), SIGTERM);  // this one does not
              kill(getpid(), SIGINT);
              for (;;) pause();
              return 0;
            }),
            -SIGINT);
}

TEST(StopSignals, ThatAreIgnoredStayIgnored) {
  EXPECT_EQ(end_of([] {
              std::signal(SIGHUP, SIG_IGN);
              StopSignals signals;
              kill(getpid(), SIGHUP);
              signals.keep();
              return first_of(signals, {SIGTERM}) == SIGTERM ? 0 : 1;
            }),
            0);
}

TEST(StopSignals, AreAsBeforeAfterwards) {
  EXPECT_EQ(end_of([] {
              { const StopSignals signals; }
              kill(getpid(), SIGTERM);
              return 0;
            }),
            -SIGTERM);
}

}  // namespace
}  // namespace plimsoll::train

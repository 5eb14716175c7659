// SIGTERM and SIGINT as something to ask about instead of something that happens.
#pragma once

namespace plimsoll::train {

// Blocks both signals for the calling thread and the threads it starts later, and collects them.
// Make it before any other thread. A second signal, while the process is
// saving because of the first, ends it at once.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  // The number of a signal that has arrived, 0 when none has.
  int arrived();

 private:
  int descriptor_ = -1;
  int signal_ = 0;
};

}  // namespace plimsoll::train

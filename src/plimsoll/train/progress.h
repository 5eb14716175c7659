// What a person watching a run sees: on a terminal one line with a bar that is rewritten, anywhere
// else (files, job logs) a full line now and then, always with the first and the last step.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>

#include "plimsoll/base/units.h"

namespace plimsoll::train {

struct StepLine {
  int64_t step = 0;  // steps done, this one included
  int64_t steps = 0;
  double loss = 0;  // nats a token
  double lr = 0;
  double grad_norm = 0;
  double tokens_per_second = 0;
  Bytes memory;  // resident now
};

// "[rank 0] step 120/400 loss 1.8342 lr 9.1e-04 grad-norm 0.84 tok/s 51.2k mem 312.4 MiB"
std::string log_line(const StepLine& line, int rank);

// "[rank 0] step 200/400 validation loss 1.9211 (0.8012 bits/byte)"; without the parenthesis when
// bits_per_byte is not finite.
std::string evaluation_line(int64_t step, int64_t steps, double loss, double bits_per_byte,
                            int rank);

// "120/400  30% ━━━━━━━━━───────────────────── loss 1.8342  51.2k tok/s  ETA 1 min 12 s", no wider
// than `columns`: the bar shrinks first, then the line loses its end.
std::string bar_line(const StepLine& line, std::optional<Seconds> remaining, int columns);

// Whether the file descriptor is a terminal that can rewrite a line, and how wide it is (80 when it
// does not say).
bool is_terminal(int file_descriptor);
int terminal_columns(int file_descriptor);

struct ProgressOptions {
  bool terminal = false;
  int64_t steps = 0;
  int rank = 0;
  int columns = 80;
  Seconds log_interval = {10};          // between step lines that are not on a terminal
  Seconds bar_interval = {0.1};         // between rewrites of the bar
  std::function<Seconds()> clock = {};  // empty: the steady clock
};

// May be used from several threads: a note of another one does not damage the bar.
class Progress {
 public:
  Progress(std::ostream& out, ProgressOptions options);
  Progress(std::ostream& out, bool terminal, int64_t steps)
      : Progress(out, ProgressOptions{.terminal = terminal, .steps = steps}) {}
  // Leaves the cursor at the start of a fresh line, also when the run ends by an exception.
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void step(const StepLine& line);
  void evaluation(int64_t step, double loss, double bits_per_byte);
  // Prints a line of its own.
  void note(std::string_view text);
  // The last step if it was not shown, and the summary: steps, time, losses, tokens/s, memory.
  void done();

 private:
  void print(std::string_view text);  // a line above the bar
  void draw_bar();
  void clear_bar();
  std::string summary() const;

  std::ostream& out_;
  ProgressOptions options_;
  std::mutex mutex_;
  Seconds begin_;                 // when the run began
  Seconds first_step_at_;         // when its first step was told
  Seconds shown_at_;              // when a step was last shown
  std::optional<StepLine> last_;  // the latest step told
  int64_t first_step_ = 0;
  int64_t shown_step_ = -1;
  int64_t told_steps_ = 0;
  double seconds_per_token_ = 0;  // summed over the steps told
  Bytes peak_;                    // highest resident memory told
  std::optional<double> validation_loss_;
  bool bar_on_line_ = false;
  bool done_ = false;
};

}  // namespace plimsoll::train

#include "plimsoll/train/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>

namespace plimsoll::train {

namespace {

Seconds steady_now() {
  return {
      std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count()};
}

std::string loss_text(double loss) {
  return std::abs(loss) < 1e4 || !std::isfinite(loss) ? fmt::format("{:.4f}", loss)
                                                      : fmt::format("{:.3e}", loss);
}

// `filled` of `width` cells; heavy line for what is done, light for what is to come.
std::string bar(double fraction, int width) {
  const int filled = static_cast<int>(std::clamp(fraction, 0.0, 1.0) * width);
  std::string text;
  for (int i = 0; i < width; ++i) text += i < filled ? "━" : "─";
  return text;
}

}  // namespace

std::string log_line(const StepLine& line, int rank) {
  return fmt::format("[rank {}] step {}/{} loss {} lr {:.1e} grad-norm {:.2f} tok/s {} mem {}",
                     rank, line.step, line.steps, loss_text(line.loss), line.lr, line.grad_norm,
                     to_count_text(line.tokens_per_second), to_text(line.memory));
}

std::string evaluation_line(int64_t step, int64_t steps, double loss, double bits_per_byte,
                            int rank) {
  std::string text =
      fmt::format("[rank {}] step {}/{} validation loss {}", rank, step, steps, loss_text(loss));
  if (std::isfinite(bits_per_byte)) text += fmt::format(" ({:.4f} bits/byte)", bits_per_byte);
  return text;
}

std::string bar_line(const StepLine& line, std::optional<Seconds> remaining, int columns) {
  constexpr int widest_bar = 30;
  constexpr int narrowest_bar = 5;
  const double fraction =
      line.steps > 0 ? static_cast<double>(line.step) / static_cast<double>(line.steps) : 0;
  const std::string before =
      fmt::format("{:>{}}/{} {:3.0f}%", line.step, std::to_string(line.steps).size(), line.steps,
                  std::floor(100 * fraction));
  std::string after =
      fmt::format("loss {}  {} tok/s", loss_text(line.loss), to_count_text(line.tokens_per_second));
  if (remaining) after += "  ETA " + to_text(*remaining);
  const int rest = columns - static_cast<int>(before.size() + after.size()) - 2;
  if (rest < narrowest_bar) return (before + " " + after).substr(0, std::max(columns, 0));
  return fmt::format("{} {} {}", before, bar(fraction, std::min(rest, widest_bar)), after);
}

bool is_terminal(int file_descriptor) {
  const char* kind = std::getenv("TERM");
  return isatty(file_descriptor) == 1 && kind != nullptr && std::string_view(kind) != "dumb";
}

int terminal_columns(int file_descriptor) {
  winsize size = {};
  const bool known = ioctl(file_descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? size.ws_col : 80;
}

Progress::Progress(std::ostream& out, ProgressOptions options)
    : out_(out), options_(std::move(options)) {
  if (!options_.clock) options_.clock = steady_now;
  begin_ = options_.clock();
}

Progress::~Progress() {
  if (bar_on_line_) out_ << '\n' << std::flush;
}

void Progress::step(const StepLine& line) {
  const std::scoped_lock lock(mutex_);
  const Seconds now = options_.clock();
  const bool first = !last_;
  if (first) {
    first_step_ = line.step;
    first_step_at_ = now;
  }
  last_ = line;
  ++told_steps_;
  if (line.tokens_per_second > 0) seconds_per_token_ += 1 / line.tokens_per_second;
  peak_ = std::max(peak_, line.memory);

  const Seconds interval = options_.terminal ? options_.bar_interval : options_.log_interval;
  const bool due = now.count - shown_at_.count >= interval.count;
  if (!first && line.step < line.steps && !due) return;
  shown_at_ = now;
  shown_step_ = line.step;
  if (options_.terminal) {
    draw_bar();
  } else {
    print(log_line(line, options_.rank));
  }
}

void Progress::evaluation(int64_t step, double loss, double bits_per_byte) {
  const std::scoped_lock lock(mutex_);
  validation_loss_ = loss;
  print(evaluation_line(step, options_.steps, loss, bits_per_byte, options_.rank));
}

void Progress::note(std::string_view text) {
  const std::scoped_lock lock(mutex_);
  print(text);
}

void Progress::done() {
  const std::scoped_lock lock(mutex_);
  if (done_) return;
  done_ = true;
  clear_bar();
  if (last_ && (options_.terminal || shown_step_ != last_->step)) {
    out_ << log_line(*last_, options_.rank) << '\n';
  }
  out_ << fmt::format("[rank {}] {}\n", options_.rank, summary()) << std::flush;
}

void Progress::print(std::string_view text) {
  const bool bar = bar_on_line_;
  clear_bar();
  out_ << text << '\n';
  if (bar) draw_bar();
  out_ << std::flush;
}

void Progress::draw_bar() {
  std::optional<Seconds> remaining;
  if (last_->step > first_step_ && last_->step < last_->steps) {
    const double elapsed = options_.clock().count - first_step_at_.count;
    const double per_step = elapsed / static_cast<double>(last_->step - first_step_);
    remaining = Seconds{per_step * static_cast<double>(last_->steps - last_->step)};
  }
  // One column stays free: some terminals wrap as soon as the last one is written.
  out_ << '\r' << bar_line(*last_, remaining, options_.columns - 1) << "\x1b[K" << std::flush;
  bar_on_line_ = true;
}

void Progress::clear_bar() {
  if (bar_on_line_) out_ << "\r\x1b[K";
  bar_on_line_ = false;
}

std::string Progress::summary() const {
  const std::string elapsed = to_text(Seconds{options_.clock().count - begin_.count});
  if (!last_) return fmt::format("no steps in {}", elapsed);
  std::string text = last_->step < last_->steps
                         ? fmt::format("stopped at step {}/{}", last_->step, last_->steps)
                         : std::string("done");
  text += fmt::format(": {} step{} in {}, loss {}", told_steps_, told_steps_ == 1 ? "" : "s",
                      elapsed, loss_text(last_->loss));
  if (validation_loss_) text += fmt::format(", validation loss {}", loss_text(*validation_loss_));
  if (seconds_per_token_ > 0) {
    // Steps have the same number of tokens, so the run's speed is the harmonic mean.
    text += fmt::format(", {} tok/s",
                        to_count_text(static_cast<double>(told_steps_) / seconds_per_token_));
  }
  return text + fmt::format(", peak memory {}", to_text(peak_));
}

}  // namespace plimsoll::train

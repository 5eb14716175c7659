#include "plimsoll/train/progress.h"

#include <gtest/gtest.h>

#include <limits>
#include <sstream>
#include <string>

namespace plimsoll::train {
namespace {

StepLine line_at(int64_t step, int64_t steps = 400) {
  return {.step = step,
          .steps = steps,
          .loss = 1.8342,
          .lr = 9.1e-4,
          .grad_norm = 0.84,
          .tokens_per_second = 51234,
          .memory = {327575142}};
}

size_t count(const std::string& text, const std::string& part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

size_t columns_of(const std::string& line) {
  size_t columns = 0;
  for (const char c : line) columns += (c & 0xc0) != 0x80;
  return columns;
}

// A run whose time is what the test says.
struct TestRun {
  explicit TestRun(bool terminal, int64_t steps = 400)
      : progress(out, {.terminal = terminal, .steps = steps, .clock = [this] { return now; }}) {}
  std::ostringstream out;
  Seconds now = {100};
  Progress progress;
};

TEST(ProgressText, LogLineHasTheFieldsOfAStep) {
  EXPECT_EQ(
      log_line(line_at(120), 0),
      "[rank 0] step 120/400 loss 1.8342 lr 9.1e-04 grad-norm 0.84 tok/s 51.2k mem 312.4 MiB");
}

TEST(ProgressText, LogLineShowsALossThatIsNotFinite) {
  StepLine line = line_at(3);
  line.loss = std::numeric_limits<double>::quiet_NaN();
  EXPECT_NE(log_line(line, 1).find("[rank 1] step 3/400 loss nan "), std::string::npos);
}

TEST(ProgressText, EvaluationLineOmitsUnknownBitsPerByte) {
  const double unknown = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(evaluation_line(200, 400, 1.92114, 0.80123, 0),
            "[rank 0] step 200/400 validation loss 1.9211 (0.8012 bits/byte)");
  EXPECT_EQ(evaluation_line(200, 400, 1.92114, unknown, 0),
            "[rank 0] step 200/400 validation loss 1.9211");
}

TEST(ProgressText, BarFillsWithTheShareOfStepsDone) {
  const std::string half = bar_line(line_at(200), Seconds{72}, 100);
  EXPECT_EQ(count(half, "━"), 15u) << half;
  EXPECT_EQ(count(half, "─"), 15u) << half;
  EXPECT_NE(half.find("ETA 1 min 12 s"), std::string::npos) << half;
  EXPECT_EQ(count(bar_line(line_at(400), {}, 100), "─"), 0u);
}

TEST(ProgressText, BarLineNeverExceedsTheTerminal) {
  for (int columns = 0; columns < 120; ++columns) {
    const std::string line = bar_line(line_at(120), Seconds{72}, columns);
    EXPECT_LE(columns_of(line), static_cast<size_t>(columns)) << line;
  }
}

TEST(Progress, LogsFirstAndLastStepAndOneAnIntervalBetween) {
  TestRun run(false, 100);
  for (int64_t step = 1; step <= 100; ++step) {
    run.progress.step(line_at(step, 100));
    run.now.count += 1;
  }
  const std::string text = run.out.str();
  EXPECT_EQ(count(text, "\n"), 11u) << text;
  for (const char* step : {"step 1/100 ", "step 11/100 ", "step 91/100 ", "step 100/100 "}) {
    EXPECT_EQ(count(text, step), 1u) << step << "in\n" << text;
  }
  EXPECT_EQ(count(text, "\r"), 0u) << text;
}

TEST(Progress, LogsTheLastStepOfAnInterruptedRun) {
  TestRun run(false);
  run.progress.step(line_at(201));
  run.progress.step(line_at(202));
  run.now.count += 5;
  run.progress.done();
  EXPECT_EQ(run.out.str(), log_line(line_at(201), 0) + "\n" + log_line(line_at(202), 0) + "\n" +
                               "[rank 0] stopped at step 202/400: 2 steps in 5.0 s, loss 1.8342, "
                               "51.2k tok/s, peak memory 312.4 MiB\n");
}

TEST(Progress, SummaryHasValidationLossAndHarmonicMeanSpeed) {
  TestRun run(false, 2);
  StepLine line = line_at(1, 2);
  line.tokens_per_second = 1000;
  run.progress.step(line);
  line = line_at(2, 2);
  line.tokens_per_second = 3000;
  run.progress.step(line);
  run.progress.evaluation(2, 1.9, 0.8);
  run.progress.done();
  const std::string text = run.out.str();
  EXPECT_NE(text.find("done: 2 steps in 0 us, loss 1.8342, validation loss 1.9000, 1.50k tok/s"),
            std::string::npos)
      << text;
}

TEST(Progress, SummaryIsPrintedOnce) {
  TestRun run(false);
  run.progress.done();
  run.progress.done();
  EXPECT_EQ(run.out.str(), "[rank 0] no steps in 0 us\n");
}

TEST(Progress, NoteOnATerminalReplacesTheBarAndDrawsItAgain) {
  TestRun run(true);
  run.progress.step(line_at(1));
  const std::string bar = run.out.str();
  EXPECT_EQ(bar.front(), '\r');
  EXPECT_EQ(count(bar, "\n"), 0u) << bar;
  run.progress.note("checkpoint written");
  EXPECT_EQ(run.out.str(), bar + "\r\x1b[K" + "checkpoint written\n" + bar);
}

TEST(Progress, TerminalIsNotRewrittenMoreOftenThanPeopleSee) {
  TestRun run(true);
  for (int64_t step = 1; step <= 300; ++step) {
    run.progress.step(line_at(step));
    run.now.count += 0.001;
  }
  EXPECT_LE(count(run.out.str(), "\r"), 4u);
}

TEST(Progress, EstimatesTheRemainingTimeFromTheStepsOfThisProcess) {
  TestRun run(true);
  run.progress.step(line_at(200));  // resumed: the first 199 were another process's
  run.now.count += 10;
  run.progress.step(line_at(210));
  EXPECT_NE(run.out.str().find("ETA 3 min 10 s"), std::string::npos) << run.out.str();
}

TEST(Progress, LeavesAFreshLineWhenTheRunEndsByAnException) {
  std::ostringstream out;
  {
    Progress progress(out, true, 400);
    progress.step(line_at(1));
  }
  EXPECT_EQ(out.str().back(), '\n');
}

}  // namespace
}  // namespace plimsoll::train

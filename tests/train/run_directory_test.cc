#include "plimsoll/train/run_directory.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <limits>
#include <string>
#include <vector>

#include "plimsoll/base/error.h"
#include "plimsoll/base/files.h"
#include "tests/checkpoint/fixture.h"

namespace plimsoll::train {
namespace {

namespace fs = std::filesystem;
using checkpoint::error_of;
using nlohmann::ordered_json;

void append_raw(const fs::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary | std::ios::app) << text;
}

using RunDirectoryTest = checkpoint::ScratchFolder;

TEST_F(RunDirectoryTest, HoldsWhatTheRunWrites) {
  const RunDirectory run = create_run_directory(folder / "runs" / "a", false);
  EXPECT_EQ(run.path(), folder / "runs" / "a");
  EXPECT_EQ(run.checkpoints(), folder / "runs" / "a" / "checkpoints");
  run.write_config("[train]\nsteps = 3\n");
  run.write_plan({{"steps", 3}, {"arena", 4096}});
  run.write_summary({{"loss", 2.5}});
  run.write_summary({{"loss", 1.5}});
  EXPECT_EQ(read_file(run.path() / "run.toml"), "[train]\nsteps = 3\n");
  EXPECT_EQ(read_file(run.path() / "plan.json"), "{\n  \"steps\": 3,\n  \"arena\": 4096\n}\n");
  EXPECT_EQ(read_file(run.path() / "summary.json"), "{\n  \"loss\": 1.5\n}\n");
}

TEST_F(RunDirectoryTest, IsUsedByOneRunAtATime) {
  {
    const RunDirectory run = create_run_directory(folder, false);
    const std::string error = error_of([&] { create_run_directory(folder, true); });
    EXPECT_TRUE(error.starts_with("2: ")) << error;
    EXPECT_NE(error.find("is in use by another run"), std::string::npos) << error;
  }
  EXPECT_EQ(error_of([&] { create_run_directory(folder, true); }), "none");
}

TEST_F(RunDirectoryTest, RefusesAnEarlierRunUnlessResuming) {
  const auto refused = [&] {
    const std::string error = error_of([&] { create_run_directory(folder, false); });
    return error.starts_with("2: ") && error.find("--resume") != std::string::npos;
  };
  { MetricsLog opened(create_run_directory(folder, false)); }
  EXPECT_FALSE(refused()) << "an empty log is not a run";
  append_raw(folder / "metrics.jsonl", "{\"step\":1}\n");
  EXPECT_TRUE(refused());
  EXPECT_EQ(error_of([&] { create_run_directory(folder, true); }), "none");
  fs::remove(folder / "metrics.jsonl");
  EXPECT_FALSE(refused());
  make_directories(folder / "checkpoints" / ".step-1.partial");
  EXPECT_FALSE(refused()) << "a save that was never complete is not a run";
  make_directories(folder / "checkpoints" / "step-1");
  EXPECT_TRUE(refused());
}

TEST_F(RunDirectoryTest, RemovesTheTemporariesOfAKilledRun) {
  append_raw(folder / ".plan.json.12-0.partial", "{\"ste");
  append_raw(folder / "notes.partial", "the user's");
  const RunDirectory run = create_run_directory(folder, false);
  EXPECT_EQ(checkpoint::sorted_names_in(folder),
            (std::vector<std::string>{".lock", "notes.partial"}));
}

TEST_F(RunDirectoryTest, MetricsAreOneObjectALine) {
  const RunDirectory run = create_run_directory(folder, false);
  MetricsLog metrics(run);
  metrics.append({{"step", 1}, {"loss", 2.5}});
  metrics.append({{"step", 2}, {"loss", std::numeric_limits<double>::quiet_NaN()}});
  metrics.sync();
  EXPECT_EQ(read_file(folder / "metrics.jsonl"),
            "{\"step\":1,\"loss\":2.5}\n{\"step\":2,\"loss\":null}\n");
}

TEST_F(RunDirectoryTest, ResumeDropsLaterUnreadableAndTornLines) {
  const std::string first = "{\"step\":1,\"loss\":3.0}\n{\"step\":2,\"loss\":2.0}\n";
  append_raw(folder / "metrics.jsonl",
             first + "null\n{\"step\":3}\n{\"step\":4}\n{\"step\":2,\"lo");
  const RunDirectory run = create_run_directory(folder, true);
  MetricsLog metrics(run);
  const MetricsLog::Dropped dropped = metrics.truncate_after(2);
  EXPECT_EQ(dropped.later, 2);
  EXPECT_EQ(dropped.unreadable, 1);
  metrics.append({{"step", 3}, {"again", true}});
  EXPECT_EQ(read_file(folder / "metrics.jsonl"), first + "{\"step\":3,\"again\":true}\n");
  EXPECT_EQ(checkpoint::sorted_names_in(folder),
            (std::vector<std::string>{".lock", "metrics.jsonl"}));
}

// Cut anywhere, resumed anywhere: the lines that were whole and not later, byte for byte.
RC_GTEST_PROP(Metrics, ResumeKeepsExactlyTheWholeLinesUpToTheStep, ()) {
  const fs::path folder = checkpoint::scratch_folder("metrics");
  make_directories(folder);
  const int steps = *rc::gen::inRange(0, 12);
  const int resumed = *rc::gen::inRange(0, 14);
  std::string text;
  std::vector<size_t> ends;
  for (int step = 1; step <= steps; ++step) {
    text += ordered_json{{"step", step}, {"loss", 1.0 / step}}.dump() + "\n";
    ends.push_back(text.size());
  }
  const auto cut = *rc::gen::inRange<size_t>(0, text.size() + 1);
  size_t expected = 0;
  for (int step = 1; step <= std::min(steps, resumed); ++step) {
    if (ends[step - 1] <= cut) expected = ends[step - 1];
  }
  std::ofstream(folder / "metrics.jsonl", std::ios::binary) << text.substr(0, cut);
  MetricsLog(create_run_directory(folder, true)).truncate_after(resumed);
  const std::string kept = read_file(folder / "metrics.jsonl");
  remove_tree(folder);
  RC_ASSERT(kept == text.substr(0, expected));
}

TEST_F(RunDirectoryTest, FullDiskLeavesNoPartOfALine) {
  const RunDirectory run = create_run_directory(folder, false);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{100, 100};
    setrlimit(RLIMIT_FSIZE, &limit);
    MetricsLog metrics(run);
    try {
      for (int step = 1;; ++step) metrics.append({{"step", step}, {"loss", 0.5}});
    } catch (const FileError& error) {
      _exit(error.error_number() == EFBIG ? 0 : 1);
    }
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(read_file(folder / "metrics.jsonl"),
            "{\"step\":1,\"loss\":0.5}\n{\"step\":2,\"loss\":0.5}\n{\"step\":3,\"loss\":0.5}\n"
            "{\"step\":4,\"loss\":0.5}\n");
}

TEST_F(RunDirectoryTest, EventsCarryTheirTimeInUtc) {
  const RunDirectory run = create_run_directory(folder, false);
  EventLog events(run);
  events.append("start");
  events.append("resume", {{"step", 7}, {"text", "bad \xff byte"}});
  std::ifstream file(folder / "events.jsonl");
  std::string first, second;
  std::getline(file, first);
  std::getline(file, second);

  std::string time = ordered_json::parse(first).at("time");
  EXPECT_EQ(first, fmt::format("{{\"time\":\"{}\",\"event\":\"start\"}}", time));
  for (char& c : time) c = c >= '0' && c <= '9' ? '0' : c;
  EXPECT_EQ(time, "0000-00-00T00:00:00Z");

  ordered_json resume = ordered_json::parse(second);
  resume.erase("time");
  EXPECT_EQ(resume.dump(), "{\"event\":\"resume\",\"step\":7,\"text\":\"bad \xef\xbf\xbd byte\"}");
}

}  // namespace
}  // namespace plimsoll::train

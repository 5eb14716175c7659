#include "plimsoll/checkpoint/writer.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <string>
#include <vector>

#include "plimsoll/base/error.h"
#include "plimsoll/base/files.h"
#include "tests/checkpoint/fixture.h"

namespace plimsoll::checkpoint {
namespace {

// A model that is trained, its snapshot, and the writer between them.
struct Training {
  SmallModel model{0};
  std::vector<std::byte> snapshot;
  CheckpointWriter writer;

  Training(const std::filesystem::path& root, int64_t keep)
      : snapshot(static_cast<size_t>(snapshot_bytes(model.shards()).count)),
        writer(root, keep, model.shards(), snapshot) {}

  // The values of a version, in the same memory: what a training step does.
  void step_to(int version) {
    SmallModel next(version);
    const std::vector<Shard> from = next.shards(), to = model.shards();
    for (size_t s = 0; s < from.size(); ++s) {
      for (size_t t = 0; t < from[s].tensors.size(); ++t) {
        to[s].tensors[t].write(0, bytes_of(from[s].tensors[t]));
      }
    }
  }

  void start(int step) { writer.start({step, step * 8, {{"version", step}}}); }
};

using Writer = ScratchFolder;

TEST_F(Writer, WritesTheValuesOfTheMomentItWasStarted) {
  Training training(folder, 0);
  for (int step = 1; step <= 20; ++step) {
    training.step_to(step);
    training.start(step);
    training.step_to(1000 + step);
    training.writer.poll();
  }
  training.writer.finish();
  EXPECT_EQ(training.writer.last_saved(), 20);
  for (int step = 20; step >= 1; --step) {
    EXPECT_EQ(newest(folder), fmt::format("step {0}, version {0}", step));
    remove_tree(folder / fmt::format("step-{}", step));
  }
}

TEST_F(Writer, WritesTheSameFilesAsSavingAtOnce) {
  Training training(folder / "beside", 0);
  training.step_to(3);
  training.writer.start({3, 24, {{"version", 3}, {"loader", {1, 2, 3}}}});
  training.writer.finish();
  save_version(folder / "at_once", 3, 3);
  for (const std::string& name : names_in(folder / "at_once" / "step-3")) {
    EXPECT_TRUE(read_file(folder / "at_once" / "step-3" / name) ==
                read_file(folder / "beside" / "step-3" / name))
        << name;
  }
}

TEST_F(Writer, KeepsTheLastOnes) {
  Training training(folder, 2);
  for (const int step : {1, 2, 3, 4}) training.start(step);
  training.writer.finish();
  EXPECT_EQ(sorted_names_in(folder), (std::vector<std::string>{"step-3", "step-4"}));
}

TEST_F(Writer, FinishesWhatWasStartedWhenItGoes) {
  {
    Training training(folder, 0);
    training.step_to(1);
    training.start(1);
  }
  EXPECT_EQ(newest(folder), "step 1, version 1");
}

TEST_F(Writer, RaisesTheErrorOfTheThreadOnceAndWorksAgain) {
  const std::filesystem::path root = folder / "checkpoints";
  write_file_atomically(root, std::string_view("a file where the folder should be"));
  Training training(root, 0);
  const auto fails = [](auto&& act) {
    try {
      act();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Exit::data);
      EXPECT_NE(std::string(error.what()).find("Cannot save the checkpoint of step"),
                std::string::npos)
          << error.what();
      return true;
    }
    return false;
  };
  training.writer.poll();
  training.start(1);
  EXPECT_TRUE(fails([&] { training.writer.finish(); }));
  training.writer.finish();

  training.start(2);
  EXPECT_TRUE(fails([&] { training.start(3); }));

  training.start(4);
  while (!fails([&] { training.writer.poll(); })) sched_yield();
  training.writer.poll();
  EXPECT_EQ(training.writer.last_saved(), std::nullopt);

  remove_tree(root);
  training.step_to(5);
  training.start(5);
  training.writer.finish();
  EXPECT_EQ(newest(root), "step 5, version 5");
}

TEST_F(Writer, RefusesASnapshotThatIsTooSmall) {
  SmallModel model;
  std::vector<std::byte> snapshot(static_cast<size_t>(snapshot_bytes(model.shards()).count) - 1);
  EXPECT_THROW(CheckpointWriter(folder, 0, model.shards(), snapshot), Error);
}

}  // namespace
}  // namespace plimsoll::checkpoint

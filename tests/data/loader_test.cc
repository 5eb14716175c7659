#include "plimsoll/data/loader.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <set>

#include "plimsoll/data/shuffle.h"
#include "tests/data/files.h"

namespace plimsoll::data {
namespace {

// A dataset whose ids are their place in the file, so that a batch tells its windows.
struct Counting {
  Folder folder;
  Dataset dataset;

  Counting(int64_t train_windows, int64_t validation_windows, int64_t sequence_length) {
    dataset =
        open_dataset({.train = write("train.bin", train_windows * sequence_length + 1),
                      .validation = write("val.bin", validation_windows * sequence_length + 1),
                      .sequence_length = sequence_length,
                      .vocabulary = 65536});
  }
  std::filesystem::path write(const std::string& name, int64_t tokens) const {
    std::vector<uint16_t> ids(static_cast<size_t>(tokens));
    for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<uint16_t>(i);
    return folder.write(name, bytes_of(ids));
  }
};

// The windows of the next micro-batch of `micro_batch` sequences.
std::vector<int64_t> next_windows(Loader& loader, int64_t micro_batch, int64_t sequence_length) {
  std::vector<int32_t> tokens(static_cast<size_t>(micro_batch * sequence_length)), targets(tokens);
  loader.next(tokens, targets);
  std::vector<int64_t> windows;
  for (int64_t i = 0; i < micro_batch; ++i) {
    const int64_t first = tokens[static_cast<size_t>(i * sequence_length)];
    for (int64_t t = 0; t < sequence_length; ++t) {
      const size_t at = static_cast<size_t>(i * sequence_length + t);
      EXPECT_EQ(tokens[at], first + t) << "sequence " << i << ", token " << t;
      EXPECT_EQ(targets[at], first + t + 1) << "sequence " << i << ", target " << t;
    }
    EXPECT_EQ(first % sequence_length, 0) << "sequence " << i << " does not begin a window";
    windows.push_back(first / sequence_length);
  }
  return windows;
}

std::vector<int64_t> take(Loader loader, int64_t samples, int64_t micro_batch,
                          int64_t sequence_length) {
  std::vector<int64_t> all;
  while (static_cast<int64_t>(all.size()) < samples) {
    for (int64_t window : next_windows(loader, micro_batch, sequence_length)) all.push_back(window);
  }
  all.resize(static_cast<size_t>(samples));
  return all;
}

RC_GTEST_PROP(Shuffle, IsAPermutationForEverySeedAndEpoch, (uint64_t seed)) {
  const auto count = *rc::gen::inRange<int64_t>(1, 3000);
  const auto epoch = *rc::gen::inRange<int64_t>(0, 1000);
  const Shuffle shuffle(count, seed, epoch);
  std::vector<bool> seen(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    const int64_t to = shuffle(i);
    RC_ASSERT(to >= 0 && to < count);
    RC_ASSERT(!seen[static_cast<size_t>(to)]);
    seen[static_cast<size_t>(to)] = true;
  }
}

TEST(Shuffle, KeepsItsOrderFromReleaseToRelease) {
  // A resumed run continues in the order it began with: a change here breaks its promise.
  const Shuffle shuffle(1000, 1, 0);
  std::vector<int64_t> first;
  for (int64_t i = 0; i < 8; ++i) first.push_back(shuffle(i));
  EXPECT_EQ(first, (std::vector<int64_t>{143, 691, 325, 115, 12, 26, 327, 384}));
}

TEST(Shuffle, PutsEveryIndexEverywhereAboutEquallyOften) {
  constexpr int64_t count = 10;
  constexpr int seeds = 20000;
  std::vector<int> hits(count * count);
  for (uint64_t seed = 0; seed < seeds; ++seed) {
    const Shuffle shuffle(count, seed, 0);
    for (int64_t i = 0; i < count; ++i) ++hits[static_cast<size_t>(i * count + shuffle(i))];
  }
  // 2000 expected with a deviation of 42: six deviations.
  for (size_t i = 0; i < hits.size(); ++i) {
    EXPECT_NEAR(hits[i], 2000, 255) << "index " << i / count << " to " << i % count;
  }
}

TEST(Shuffle, HandlesTheLargestCounts) {
  const int64_t count = (int64_t{1} << 62) - 1;
  const Shuffle shuffle(count, 3, 5);
  std::set<int64_t> seen;
  for (int64_t i = 0; i < 1000; ++i) {
    const int64_t to = shuffle(count - 1 - i);
    EXPECT_TRUE(to >= 0 && to < count) << to;
    EXPECT_TRUE(seen.insert(to).second) << to;
  }
}

TEST(Loader, ShowsEveryWindowOnceAnEpochInAnOrderOfItsOwn) {
  const Counting data(37, 1, 3);
  const std::vector<int64_t> order = take(Loader(data.dataset, 5), 3 * 37, 1, 3);
  std::vector<std::vector<int64_t>> epochs;
  for (size_t e = 0; e < 3; ++e) {
    epochs.emplace_back(order.begin() + e * 37, order.begin() + (e + 1) * 37);
    std::vector<int64_t> sorted = epochs.back();
    std::sort(sorted.begin(), sorted.end());
    for (int64_t w = 0; w < 37; ++w) EXPECT_EQ(sorted[static_cast<size_t>(w)], w) << "epoch " << e;
  }
  EXPECT_NE(epochs[0], epochs[1]);
  EXPECT_NE(epochs[1], epochs[2]);
  EXPECT_NE(take(Loader(data.dataset, 6), 37, 1, 3), epochs[0]) << "two seeds gave one order";
}

RC_GTEST_PROP(Loader, OrderDependsOnTheSeedAloneNotOnTheMicroBatch, (uint64_t seed)) {
  const Counting data(*rc::gen::inRange<int64_t>(1, 40), 1, 2);
  const auto micro_batch = *rc::gen::inRange<int64_t>(1, 20);
  RC_ASSERT(take(Loader(data.dataset, seed), 100, micro_batch, 2) ==
            take(Loader(data.dataset, seed), 100, 1, 2));
}

RC_GTEST_PROP(Loader, ResumesToTheTokenAtAnyPosition, (uint64_t seed)) {
  const Counting data(*rc::gen::inRange<int64_t>(1, 40), 1, 2);
  const auto before = *rc::gen::inRange<int64_t>(0, 100);
  Loader loader(data.dataset, seed);
  for (int64_t i = 0; i < before; ++i) next_windows(loader, 1, 2);
  RC_ASSERT(loader.position() == before);
  Loader resumed(data.dataset, seed, loader.position());
  for (int i = 0; i < 10; ++i) {
    RC_ASSERT(next_windows(resumed, 3, 2) == next_windows(loader, 3, 2));
    RC_ASSERT(resumed.position() == loader.position());
  }
}

RC_GTEST_PROP(Loader, RanksTogetherCoverExactlyTheGlobalOrder, (uint64_t seed)) {
  const Counting data(*rc::gen::inRange<int64_t>(1, 40), 1, 2);
  const auto world_size = *rc::gen::inRange<int64_t>(1, 6);
  const auto micro_batch = *rc::gen::inRange<int64_t>(1, 4);
  // Not always a multiple of the world size: a run may resume with other ranks than it had.
  const auto position = *rc::gen::inRange<int64_t>(0, 100);
  const int64_t samples = 3 * micro_batch * world_size;
  const std::vector<int64_t> global = take(Loader(data.dataset, seed, position), samples, 1, 2);

  std::vector<int64_t> gathered(global.size(), -1);
  for (int64_t rank = 0; rank < world_size; ++rank) {
    Loader loader(data.dataset, seed, position, {rank, world_size});
    int64_t sample = position + ((rank - position) % world_size + world_size) % world_size;
    for (int batch = 0; batch < 3; ++batch) {
      for (const int64_t window : next_windows(loader, micro_batch, 2)) {
        RC_ASSERT(gathered.at(static_cast<size_t>(sample - position)) == -1);
        gathered[static_cast<size_t>(sample - position)] = window;
        sample += world_size;
      }
    }
    RC_ASSERT(loader.position() == position + samples);
  }
  RC_ASSERT(gathered == global);
}

std::vector<int64_t> validation_windows(const Dataset& dataset, int64_t sequences,
                                        int64_t micro_batch, Share share = {}) {
  const ValidationBatches validation(dataset, sequences, micro_batch, share);
  const int64_t length = dataset.sequence_length;
  std::vector<int32_t> tokens(static_cast<size_t>(micro_batch * length)), targets(tokens);
  std::vector<int64_t> windows;
  for (int64_t b = 0; b < validation.size(); ++b) {
    const int64_t rows = validation.read(b, tokens, targets);
    EXPECT_TRUE(rows == micro_batch || b + 1 == validation.size());
    for (int64_t i = 0; i < rows; ++i) {
      const size_t at = static_cast<size_t>(i * length);
      EXPECT_EQ(targets[at], tokens[at] + 1) << "batch " << b << ", sequence " << i;
      windows.push_back(tokens[at] / length);
    }
  }
  return windows;
}

TEST(ValidationBatches, SpreadOverTheSplitInOrderHoweverTheyAreBatched) {
  const Counting data(1, 20, 2);
  for (const int64_t micro : {1, 2, 3, 4, 5, 32}) {
    EXPECT_EQ(validation_windows(data.dataset, 4, micro), (std::vector<int64_t>{0, 5, 10, 15}));
    EXPECT_EQ(validation_windows(data.dataset, 6, micro),
              (std::vector<int64_t>{0, 3, 6, 10, 13, 16}));
  }
}

TEST(ValidationBatches, AreAllWindowsOfAShortSplit) {
  const Counting data(1, 5, 2);
  EXPECT_EQ(validation_windows(data.dataset, 16, 2), (std::vector<int64_t>{0, 1, 2, 3, 4}));
  EXPECT_EQ(validation_windows(data.dataset, 16, 8), (std::vector<int64_t>{0, 1, 2, 3, 4}));
}

TEST(ValidationBatches, AreSharedByTheRanks) {
  const Counting data(1, 20, 2);
  EXPECT_EQ(validation_windows(data.dataset, 2, 1, {0, 2}), (std::vector<int64_t>{0}));
  EXPECT_EQ(validation_windows(data.dataset, 2, 1, {1, 2}), (std::vector<int64_t>{10}));
  EXPECT_EQ(validation_windows(data.dataset, 5, 2, {0, 2}), (std::vector<int64_t>{0, 8, 16}));
  EXPECT_EQ(validation_windows(data.dataset, 5, 2, {1, 2}), (std::vector<int64_t>{4, 12}));
}

}  // namespace
}  // namespace plimsoll::data

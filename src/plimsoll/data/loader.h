// Batches of training and validation sequences.
//
// Training: sample k (k = 0, 1, ...) is window shuffle(k mod n) of epoch k / n, where n is the
// number of windows of the train split and every epoch has its own order (shuffle.h). Which sample
// has which number depends on the seed alone, so a run may change its micro-batch, its gradient
// accumulation or its ranks and still see the same sequences in the same order.
#pragma once

#include <cstdint>
#include <span>

#include "plimsoll/data/dataset.h"
#include "plimsoll/data/shuffle.h"

namespace plimsoll::data {

// Which part of every batch is this process's: the samples k with k mod world_size == rank.
struct Share {
  int64_t rank = 0;
  int64_t world_size = 1;
};

class Loader {
 public:
  // `position`: samples consumed so far by all ranks together; the whole state of the loader.
  Loader(const Dataset& dataset, uint64_t seed, int64_t position = 0, Share share = {});

  // Fills this rank's part of the next micro-batch and moves on by the whole micro-batch of all
  // ranks. `tokens` and `targets` are (micro_batch, sequence_length), both of the same size;
  // targets[i] is the token after tokens[i].
  void next(std::span<int32_t> tokens, std::span<int32_t> targets);

  int64_t position() const { return position_; }
  int64_t samples_per_epoch() const { return windows_; }

  // The window of the train split that sample `sample` of the global order is.
  int64_t window_of(int64_t sample);

 private:
  Split split_;
  int64_t sequence_length_;
  int64_t windows_;
  uint64_t seed_;
  int64_t position_;
  Share share_;
  int64_t shuffled_epoch_;
  Shuffle shuffle_;
};

// The same windows at every evaluation, in order, spread evenly over the validation split: as many
// as are wanted, or all where the split has fewer. Which ones does not depend on how they are
// batched: sequence k is row k / world_size of rank k mod world_size.
class ValidationBatches {
 public:
  // `sequences` > 0 are wanted, in micro-batches of `micro_batch` a rank.
  ValidationBatches(const Dataset& dataset, int64_t sequences, int64_t micro_batch,
                    Share share = {});

  // Micro-batches; 0 when nothing is held out. The same on every rank.
  int64_t size() const;
  // Sequences of all ranks together.
  int64_t sequences() const { return sequences_; }
  // Fills micro-batch `batch` (0 <= batch < size()), laid out as Loader::next does, and gives the
  // rows that count: those after them repeat a sequence of the set.
  int64_t read(int64_t batch, std::span<int32_t> tokens, std::span<int32_t> targets) const;

 private:
  Split split_;
  int64_t sequence_length_;
  int64_t windows_;
  int64_t sequences_;
  int64_t micro_batch_;
  Share share_;
};

}  // namespace plimsoll::data

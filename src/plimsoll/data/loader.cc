#include "plimsoll/data/loader.h"

#include <algorithm>

#include "plimsoll/base/error.h"

namespace plimsoll::data {

namespace {

void check_share(Share share) {
  check(share.rank >= 0 && share.rank < share.world_size, "0 <= rank < world size");
}

}  // namespace

Loader::Loader(const Dataset& dataset, uint64_t seed, int64_t position, Share share)
    : split_(dataset.train),
      sequence_length_(dataset.sequence_length),
      windows_(split_.windows(sequence_length_)),
      seed_(seed),
      position_(position),
      share_(share),
      shuffled_epoch_(position / windows_),
      shuffle_(windows_, seed, shuffled_epoch_) {
  check(position >= 0, "position of the loader");
  check_share(share);
}

int64_t Loader::window_of(int64_t sample) {
  const int64_t epoch = sample / windows_;
  if (epoch != shuffled_epoch_) {
    shuffle_ = Shuffle(windows_, seed_, epoch);
    shuffled_epoch_ = epoch;
  }
  return shuffle_(sample % windows_);
}

void Loader::next(std::span<int32_t> tokens, std::span<int32_t> targets) {
  const size_t length = static_cast<size_t>(sequence_length_);
  check(tokens.size() == targets.size() && !tokens.empty() && tokens.size() % length == 0,
        "a micro-batch of whole sequences");
  const int64_t micro_batch = static_cast<int64_t>(tokens.size() / length);
  // The first sample at or after the position that is this rank's: they agree only while the
  // position is a multiple of the world size, which a run resumed with another one need not keep.
  const int64_t world = share_.world_size;
  const int64_t first = position_ + (share_.rank - position_ % world + world) % world;
  for (int64_t i = 0; i < micro_batch; ++i) {
    const size_t row = static_cast<size_t>(i) * length;
    split_.read_window(window_of(first + i * world), tokens.subspan(row, length),
                       targets.subspan(row, length));
  }
  position_ += micro_batch * world;
}

ValidationBatches::ValidationBatches(const Dataset& dataset, int64_t sequences, int64_t micro_batch,
                                     Share share)
    : split_(dataset.validation),
      sequence_length_(dataset.sequence_length),
      windows_(split_.tokens() > 0 ? split_.windows(sequence_length_) : 0),
      sequences_(std::min(sequences, windows_)),
      micro_batch_(micro_batch),
      share_(share) {
  check(sequences > 0 && micro_batch > 0, "a positive number of validation sequences");
  check_share(share);
}

int64_t ValidationBatches::size() const {
  const int64_t rows = micro_batch_ * share_.world_size;
  return (sequences_ + rows - 1) / rows;
}

int64_t ValidationBatches::read(int64_t batch, std::span<int32_t> tokens,
                                std::span<int32_t> targets) const {
  const size_t length = static_cast<size_t>(sequence_length_);
  check(batch >= 0 && batch < size(), "a validation batch that exists");
  check(tokens.size() == targets.size() &&
            tokens.size() == static_cast<size_t>(micro_batch_) * length,
        "a validation micro-batch of whole sequences");
  int64_t rows = 0;
  for (int64_t i = 0; i < micro_batch_; ++i) {
    const int64_t wanted = (batch * micro_batch_ + i) * share_.world_size + share_.rank;
    const int64_t sequence = std::min(wanted, sequences_ - 1);
    rows += wanted < sequences_;
    const size_t row = static_cast<size_t>(i) * length;
    split_.read_window(sequence * windows_ / sequences_, tokens.subspan(row, length),
                       targets.subspan(row, length));
  }
  return rows;
}

}  // namespace plimsoll::data

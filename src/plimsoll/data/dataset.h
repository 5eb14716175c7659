// The corpus of a run: a train and a validation split, each a range of tokens of a file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "plimsoll/data/token_source.h"

namespace plimsoll::data {

// Tokens [begin, end) of `source`.
struct Split {
  TokenSource source;
  int64_t begin = 0;
  int64_t end = 0;
  int64_t vocabulary = 0;  // its ids are below it

  int64_t tokens() const { return end - begin; }
  // Windows of `sequence_length` tokens, each with one target more, that do not overlap: the
  // target after the last token of a window is the first token of the next.
  int64_t windows(int64_t sequence_length) const { return (tokens() - 1) / sequence_length; }
  // Fills one window: targets[i] is the token after tokens[i]. Both hold `sequence_length`. Raises
  // Exit::data when an id is outside the vocabulary, or the file cannot be read there.
  void read_window(int64_t window, std::span<int32_t> tokens, std::span<int32_t> targets) const;
};

// The keys of [data], with what the model and the step say.
struct DatasetOptions {
  std::filesystem::path train = {};
  std::filesystem::path validation = {};  // empty: the last `validation_fraction` of train
  double validation_fraction = 0.01;      // below 1; 0: none is held out
  std::string format = "auto";            // of both files
  int64_t sequence_length = 0;
  int64_t vocabulary = 0;  // ids must be below it; 0: what the train file says
  Bytes most = kNoLimit;   // memory that decompressed text may take
};

struct Dataset {
  Split train;
  Split validation;
  int64_t sequence_length = 0;
  int64_t vocabulary = 0;

  Bytes resident() const;  // memory held for the tokens
};

// Opens the files, checks token ids (check_vocabulary) and makes the splits, each with at least one
// window (validation may be empty where nothing is to be held out). Raises Exit::data: what open_tokens and check_vocabulary raise; a split with fewer tokens
// than sequence_length + 1 (how many there are and what would do); files of different tokenizers.
// Raises Exit::usage: no train file, a fraction out of range, an unknown format, a vocabulary that
// neither the options nor the train file say, one above 65536 with ids that are uint16 only by
// guess. Raises Exit::does_not_fit when the decompressed text takes more than `most`.
Dataset open_dataset(const DatasetOptions& options);

}  // namespace plimsoll::data

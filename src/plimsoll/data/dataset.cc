#include "plimsoll/data/dataset.h"

#include <algorithm>

#include "plimsoll/base/error.h"

namespace plimsoll::data {

namespace {

constexpr int64_t kIdsOf16Bits = int64_t{1} << 16;

// A file of raw ids does not say their width: with a vocabulary that 16 bits hold it is guessed.
void check_width(const DatasetOptions& options, const TokenSource& source, int64_t vocabulary) {
  if (source.format() != TokenFormat::nanogpt || vocabulary <= kIdsOf16Bits) return;
  if (options.format != "auto") return;
  throw Error(Exit::usage,
              fmt::format("{} holds raw ids, of 2 or of 4 bytes: model.vocab = {} does not tell.",
                          source.path().string(), vocabulary),
              "Set data.format = \"nanogpt\" when they are uint16. Write uint32 ids as an llm.c "
              "file:\n256 int32 (20240801, 7, the number of ids, 0, 0, ...), then the ids.");
}

int64_t vocabulary_of(const DatasetOptions& options, const TokenSource& train) {
  if (options.vocabulary > 0) return options.vocabulary;
  if (train.vocabulary() > 0) return train.vocabulary();
  throw Error(Exit::usage,
              fmt::format("model.vocab is not set, and {} ({}) does not say its vocabulary.",
                          train.path().string(), name(train.format())),
              "Set model.vocab to the vocabulary of the tokenizer: 50257 for GPT-2.");
}

void check_same_tokenizer(const TokenSource& train, const TokenSource& validation) {
  if (train.vocabulary() == 0 || validation.vocabulary() == 0 ||
      train.vocabulary() == validation.vocabulary()) {
    return;
  }
  throw Error(
      Exit::data,
      fmt::format("{} has a vocabulary of {}, but {} has one of {}.", validation.path().string(),
                  validation.vocabulary(), train.path().string(), train.vocabulary()),
      "Make data.train and data.validation with the same tokenizer.");
}

void check_holds_a_window(const Split& split, std::string_view split_name, int64_t sequence_length,
                          std::string_view way_out) {
  const int64_t needed = sequence_length + 1;
  if (split.tokens() >= needed) return;
  std::string advice(way_out);
  if (split.tokens() >= 2) {
    advice += fmt::format(", or set step.sequence_length = {} or less", split.tokens() - 1);
  }
  throw Error(
      Exit::data,
      fmt::format("{}: the {} split has {} tokens, but one sequence of {} and its target need {}.",
                  split.source.path().string(), split_name, split.tokens(), sequence_length,
                  needed),
      advice + ".");
}

// The fraction of `tokens` that makes a validation split of `needed`, with a little to spare.
std::string advice_for_fraction(int64_t tokens, int64_t needed) {
  const double fraction = 1.01 * static_cast<double>(needed) / static_cast<double>(tokens);
  if (2.1 * static_cast<double>(needed) > static_cast<double>(tokens)) return "Use a larger file";
  return fmt::format(
      "Set data.validation_fraction = {:.3g} or more, name a file in data.validation", fraction);
}

}  // namespace

void Split::read_window(int64_t window, std::span<int32_t> tokens,
                        std::span<int32_t> targets) const {
  check(tokens.size() == targets.size(), "as many targets as tokens");
  const int64_t length = static_cast<int64_t>(tokens.size());
  check(window >= 0 && window < windows(length), "a window lies within its split");
  const int64_t first = begin + window * length;
  source.read(first, tokens);
  source.read(first + length, targets.last(1));
  std::copy(tokens.begin() + 1, tokens.end(), targets.begin());
  check_ids(source, first, tokens, vocabulary);
  check_ids(source, first + length, targets.last(1), vocabulary);
}

Bytes Dataset::resident() const {
  const bool two_files = validation.source.path() != train.source.path();
  return train.source.resident() + (two_files ? validation.source.resident() : Bytes{});
}

Dataset open_dataset(const DatasetOptions& options) {
  check(options.sequence_length > 0, "step.sequence_length is positive");
  const int64_t needed = options.sequence_length + 1;
  if (options.train.empty()) {
    throw Error(Exit::usage, "data.train is not set.",
                "Set it to a file of text or tokens, for example data.train = \"corpus.txt\".");
  }
  const TokenSource train = open_tokens(options.train, options.format, options.most);
  Dataset dataset;
  dataset.sequence_length = options.sequence_length;
  dataset.vocabulary = vocabulary_of(options, train);
  check_width(options, train, dataset.vocabulary);
  check_vocabulary(train, dataset.vocabulary);
  const auto split = [&](const TokenSource& source, int64_t begin, int64_t end) {
    return Split{source, begin, end, dataset.vocabulary};
  };

  if (!options.validation.empty()) {
    const TokenSource validation =
        open_tokens(options.validation, options.format, options.most - train.resident());
    check_same_tokenizer(train, validation);
    check_width(options, validation, dataset.vocabulary);
    check_vocabulary(validation, dataset.vocabulary);
    dataset.train = split(train, 0, train.size());
    dataset.validation = split(validation, 0, validation.size());
    check_holds_a_window(dataset.train, "train", options.sequence_length, "Use a larger file");
    check_holds_a_window(dataset.validation, "validation", options.sequence_length,
                         "Use a larger file");
    return dataset;
  }

  if (!(options.validation_fraction >= 0 && options.validation_fraction < 1)) {
    throw Error(Exit::usage,
                fmt::format("data.validation_fraction = {} is not from 0 to below 1.",
                            options.validation_fraction),
                "Use for example 0.01, or name a file in data.validation.");
  }
  const int64_t border = train.size() - static_cast<int64_t>(static_cast<double>(train.size()) *
                                                             options.validation_fraction);
  dataset.train = split(train, 0, border);
  dataset.validation = split(train, border, train.size());
  check_holds_a_window(dataset.train, "train", options.sequence_length,
                       "Use a larger file or a smaller data.validation_fraction");
  if (options.validation_fraction == 0) return dataset;  // trained without a held-out loss
  check_holds_a_window(dataset.validation, "validation", options.sequence_length,
                       advice_for_fraction(train.size(), needed));
  return dataset;
}

}  // namespace plimsoll::data

// What makes a run this run: the settings that decide what it computes, and its corpus. Every
// checkpoint states them, so that a run is never continued as another one in silence.
#pragma once

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "plimsoll/config/config.h"
#include "plimsoll/data/dataset.h"

namespace plimsoll::train {

// "model.layers" -> "2", values as TOML.
using Settings = std::map<std::string, std::string>;

// The keys that a run cannot change on its way, with their values: all but those that
// may_change() names. Keys of a recipe count only where there is one.
Settings fixed_settings(const config::Config& resolved);

// Whether a run may be continued with another value of the key. A key that is not listed in
// run_identity.cc may not: a new key is fixed until somebody decides otherwise.
bool may_change(const std::string& key);

// Raises Exit::usage with the first key that differs and both values. A key that only one of the
// two has is of another version of Plimsoll and passes.
void require_same_settings(const Settings& saved, const Settings& now,
                           const std::filesystem::path& run);

// The tokens of a file that a run reads, told by their number and a hash of them: all of them up to
// 4Mi tokens, otherwise 256 stretches of 4096 spread evenly, the first and the last among them.
struct CorpusFileIdentity {
  std::string path;
  int64_t tokens = 0;
  std::string sha256;
};
CorpusFileIdentity identify(const data::TokenSource& source, int64_t tokens);

struct CorpusIdentity {
  CorpusFileIdentity train;
  int64_t train_tokens = 0;       // trained on; the rest of the file is held out
  CorpusFileIdentity validation;  // no path: held out from `train`, if anything is
};
CorpusIdentity identify(const data::Dataset& dataset);

// Makes the splits of `dataset` those of `saved`, and gives the tokens that were appended to the
// training file since, which the run does not read. Raises Exit::data when a file no longer holds
// what it held, Exit::usage when the configuration names another one.
int64_t keep_to_corpus(const CorpusIdentity& saved, data::Dataset& dataset);

// As a checkpoint keeps them.
nlohmann::json to_json(const CorpusIdentity& corpus);
CorpusIdentity corpus_from_json(const nlohmann::json& json);

}  // namespace plimsoll::train

#include "plimsoll/train/run_identity.h"

#include <algorithm>
#include <array>
#include <vector>

#include "plimsoll/base/hash.h"
#include "plimsoll/base/shell.h"
#include "plimsoll/config/fields.h"

namespace plimsoll::train {

namespace {

// What a run may change on its way. It then goes on from the same state, but no longer as the run
// that was not stopped would have.
constexpr auto changeable = std::to_array<std::string_view>(
    {// Where things are and how they are computed; memory, time and the order of sums.
     "model.preset", "step.micro_batch", "step.head_chunk", "step.ffn_chunk", "step.checkpointing",
     "recipe.cache_weights", "recipe.bf16_weights", "recipe.statistics_every", "data.train",
     "data.validation", "train.threads", "train.memory_limit", "train.run_directory",
     "checkpoint.every", "checkpoint.keep_last", "checkpoint.in_background", "checkpoint.directory",
     // What is evaluated.
     "train.eval_every", "train.eval_sequences", "train.eval_batches",
     // How it is trained from here on.
     "train.steps", "step.global_batch", "optimizer.beta1", "optimizer.beta2", "optimizer.eps",
     "optimizer.weight_decay", "optimizer.clip_norm", "schedule.lr", "schedule.min_lr_fraction",
     "schedule.warmup_steps", "schedule.decay", "schedule.decay_fraction", "recipe.loss_scale_log2",
     "recipe.loss_scale_growth"});

constexpr int64_t hashed_whole = int64_t{4} << 20;  // tokens
constexpr int64_t stretches = 256;
constexpr int64_t stretch_tokens = 4096;

void require_tokens(const CorpusFileIdentity& saved, const data::TokenSource& source,
                    std::string_view key) {
  const bool same_path = saved.path == std::filesystem::absolute(source.path()).string();
  const std::string file = source.path().string();
  const std::string advice =
      same_path ? "Restore the file as it was, or start another run."
                : fmt::format("Set {} to a copy of {}, or start another run.", key, saved.path);
  const Exit code = same_path ? Exit::data : Exit::usage;
  if (source.size() < saved.tokens) {
    throw Error(code,
                fmt::format("{}: {} is not the corpus of this run: it holds {} tokens, the run's "
                            "{} were {}.",
                            key, file, source.size(), saved.path, saved.tokens),
                advice);
  }
  const std::string found = identify(source, saved.tokens).sha256;
  if (found == saved.sha256) return;
  throw Error(code,
              fmt::format("{}: {} is not the corpus of this run: the hash of its first {} tokens "
                          "is {}, the run's {} had {}.",
                          key, file, saved.tokens, found.substr(0, 16), saved.path,
                          saved.sha256.substr(0, 16)),
              advice);
}

nlohmann::json file_json(const CorpusFileIdentity& file) {
  return {{"path", file.path}, {"tokens", file.tokens}, {"sha256", file.sha256}};
}

CorpusFileIdentity file_from_json(const nlohmann::json& json) {
  return {json.at("path"), json.at("tokens"), json.at("sha256")};
}

}  // namespace

bool may_change(const std::string& key) { return std::ranges::count(changeable, key) > 0; }

Settings fixed_settings(const config::Config& resolved) {
  config::Config config = resolved;
  Settings settings;
  for (const config::Table& table : config::tables(config)) {
    for (const config::Field& field : table.fields) {
      const std::string key = table.name + "." + field.key;
      const bool unused =
          table.name == "recipe" && field.key != "name" && config.recipe.name == step::Recipe::none;
      if (!unused && !may_change(key)) settings[key] = config::toml_text(field);
    }
  }
  if (!config.data.validation.empty()) settings.erase("data.validation_fraction");
  return settings;
}

void require_same_settings(const Settings& saved, const Settings& now,
                           const std::filesystem::path& run) {
  for (const auto& [key, value] : saved) {
    const auto found = now.find(key);
    if (found == now.end() || found->second == value) continue;
    throw Error(
        Exit::usage,
        fmt::format("{} = {}, but the run in {} has {} = {}.", key, found->second, run.string(),
                    key, value),
        fmt::format("It changes what is computed, so the run would not be the same. Leave it as it "
                    "was, or start another run:\n"
                    "plimsoll train {} --set {}={} --run-directory ...",
                    shell_quoted((run / "run.toml").string()), key, shell_quoted(found->second)));
  }
}

CorpusFileIdentity identify(const data::TokenSource& source, int64_t tokens) {
  check(tokens >= 0 && tokens <= source.size(), "tokens to identify are there");
  Sha256 hash;
  std::vector<int32_t> buffer(static_cast<size_t>(stretch_tokens));
  const auto add = [&](int64_t begin, int64_t count) {
    const std::span<int32_t> part(buffer.data(), static_cast<size_t>(count));
    source.read(begin, part);
    hash.update(std::as_bytes(part));
  };
  if (tokens <= hashed_whole) {
    for (int64_t begin = 0; begin < tokens; begin += stretch_tokens) {
      add(begin, std::min(stretch_tokens, tokens - begin));
    }
  } else {
    // tokens / (stretches - 1) first: the product of a token count and 255 may not fit.
    const int64_t last = tokens - stretch_tokens;
    for (int64_t i = 0; i < stretches; ++i) {
      add(last / (stretches - 1) * i + last % (stretches - 1) * i / (stretches - 1),
          stretch_tokens);
    }
  }
  return {std::filesystem::absolute(source.path()).string(), tokens, hash.hex()};
}

CorpusIdentity identify(const data::Dataset& dataset) {
  const data::Split& train = dataset.train;
  const data::Split& validation = dataset.validation;
  const bool own_file = validation.tokens() > 0 && validation.begin == 0;
  CorpusIdentity corpus;
  corpus.train = identify(train.source, own_file ? train.end : std::max(train.end, validation.end));
  corpus.train_tokens = train.end;
  if (own_file) corpus.validation = identify(validation.source, validation.end);
  return corpus;
}

int64_t keep_to_corpus(const CorpusIdentity& saved, data::Dataset& dataset) {
  data::Split& train = dataset.train;
  data::Split& validation = dataset.validation;
  const bool own_file = validation.tokens() > 0 && validation.begin == 0;
  if (own_file != !saved.validation.path.empty()) {
    throw Error(
        Exit::usage,
        fmt::format("data.validation = \"{}\", but the run has data.validation = \"{}\".",
                    own_file ? validation.source.path().string() : "", saved.validation.path),
        "What is held out cannot change on the way: leave it, or start another run.");
  }
  require_tokens(saved.train, train.source, "data.train");
  const int64_t appended = train.source.size() - saved.train.tokens;
  train.end = saved.train_tokens;
  if (own_file) {
    require_tokens(saved.validation, validation.source, "data.validation");
    validation.end = saved.validation.tokens;
  } else {
    validation.begin = saved.train_tokens;
    validation.end = saved.train.tokens;
  }
  return appended;
}

nlohmann::json to_json(const CorpusIdentity& corpus) {
  nlohmann::json json = {{"train", file_json(corpus.train)}, {"train_tokens", corpus.train_tokens}};
  if (!corpus.validation.path.empty()) json["validation"] = file_json(corpus.validation);
  return json;
}

CorpusIdentity corpus_from_json(const nlohmann::json& json) {
  CorpusIdentity corpus = {.train = file_from_json(json.at("train")),
                           .train_tokens = json.at("train_tokens")};
  if (json.contains("validation")) corpus.validation = file_from_json(json.at("validation"));
  return corpus;
}

}  // namespace plimsoll::train

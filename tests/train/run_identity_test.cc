#include "plimsoll/train/run_identity.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <set>

#include "plimsoll/config/fields.h"
#include "plimsoll/train/run_checkpoints.h"
#include "tests/data/files.h"

namespace plimsoll::train {
namespace {

data::Dataset open(const std::filesystem::path& path, double fraction) {
  return data::open_dataset(
      {.train = path, .validation_fraction = fraction, .sequence_length = 8, .vocabulary = 264});
}

// Every key is either stated by the run or on the list: the list names no key that is not there.
TEST(RunIdentity, FixesEveryKeyThatIsNotSaidToBeFree) {
  config::Config config;
  config.model = {.layers = 1, .hidden = 32, .heads = 2};
  config.step.precision = step::Precision::bf16;
  config.recipe.name = step::Recipe::mxfp8;
  config.recipe.last_bf16 = 0;
  config = config::resolve(config);
  const Settings fixed = fixed_settings(config);
  std::set<std::string> all;
  for (const config::Table& table : config::tables(config)) {
    for (const config::Field& field : table.fields) {
      const std::string key = table.name + "." + field.key;
      all.insert(key);
      EXPECT_NE(fixed.contains(key), may_change(key)) << key;
    }
  }
  for (const char* key : {"model.heads", "model.rope_theta", "step.sequence_length", "train.seed",
                          "step.precision", "recipe.mx_rule", "optimizer.moments"}) {
    EXPECT_TRUE(fixed.contains(key)) << key;
  }
  for (const char* key : {"train.steps", "schedule.lr", "step.global_batch", "train.threads",
                          "checkpoint.directory", "train.eval_sequences", "data.train"}) {
    EXPECT_TRUE(may_change(key) && all.contains(key)) << key;
  }
}

TEST(RunIdentity, SaysWhichSettingDiffersAndBothValues) {
  const Settings saved = {{"model.heads", "2"}, {"model.gone", "1"}, {"train.seed", "1"}};
  require_same_settings(saved, {{"model.heads", "2"}, {"model.new", "7"}, {"train.seed", "1"}}, "r");
  const std::string error = data::error_of([&] {
    require_same_settings(saved, {{"model.heads", "4"}, {"train.seed", "1"}}, "runs/a b");
  });
  EXPECT_TRUE(error.starts_with("2: model.heads = 4, but the run in runs/a b has model.heads = 2."))
      << error;
  EXPECT_NE(error.find("'runs/a b/run.toml' --set model.heads=4"), std::string::npos) << error;
}

// Text is appended, cut or changed: a run reads what it began with, or refuses.
RC_GTEST_PROP(RunIdentity, KeepsToTheCorpusOrRefuses, ()) {
  const data::Folder folder;
  std::string text;
  for (int i = 0; i < 40; ++i) text += fmt::format("{} and {}; ", i, i * i);
  const double fraction = *rc::gen::element(0.1, 0.3, 0.5);
  const data::Dataset before = open(folder.write("c.txt", text), fraction);
  const CorpusIdentity saved = corpus_from_json(
      nlohmann::json::parse(to_json(identify(before)).dump()));
  std::string now = text;
  const int change = *rc::gen::inRange(0, 3);
  if (change == 0) now += std::string(*rc::gen::inRange<size_t>(0, 500), 'x');
  if (change == 1) now.resize(now.size() - *rc::gen::inRange<size_t>(1, 100));
  if (change == 2) now[*rc::gen::inRange<size_t>(0, text.size())] ^= 1;
  data::Dataset after = open(folder.write("c.txt", now), fraction);
  const std::string error = data::error_of([&] {
    RC_ASSERT(keep_to_corpus(saved, after) == static_cast<int64_t>(now.size() - text.size()));
  });
  if (change != 0) {
    RC_ASSERT(error.starts_with("3: data.train: "));
    return;
  }
  RC_ASSERT(error == "no error");
  RC_ASSERT(after.train.end == before.train.end);
  RC_ASSERT(after.validation.begin == before.validation.begin);
  RC_ASSERT(after.validation.end == before.validation.end);
  RC_ASSERT(to_json(identify(after)) == to_json(saved));
}

TEST(RunIdentity, OfALongFileSeesItsEndsAndItsLength) {
  const data::Folder folder;
  std::string text(5 << 20, 'a');
  for (size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>('a' + i % 23);
  const auto digest = [&](const std::string& contents, int64_t tokens) {
    return identify(data::open_tokens(folder.write("c.txt", contents)), tokens).sha256;
  };
  const auto tokens = static_cast<int64_t>(text.size());
  const std::string whole = digest(text, tokens);
  EXPECT_EQ(digest(text + "more", tokens), whole);
  EXPECT_NE(digest(text, tokens - 1), whole);
  for (const size_t at : {size_t{0}, text.size() - 1}) {
    std::string changed = text;
    changed[at] = '!';
    EXPECT_NE(digest(changed, tokens), whole) << at;
  }
}

TEST(RunState, SurvivesACheckpointAndOldOnesSayNothing) {
  const RunState state = {.settings = Settings{{"train.seed", "1"}},
                          .progress = RunProgress{.tokens = 640, .skipped_steps = 2, .train_loss = 3}};
  const RunState read = run_state_from_json(nlohmann::json::parse(to_json(state).dump()));
  EXPECT_EQ(read.settings, state.settings);
  EXPECT_EQ(read.progress->tokens, 640);
  EXPECT_EQ(read.progress->skipped_steps, 2);
  EXPECT_EQ(read.progress->train_loss, 3);
  EXPECT_TRUE(std::isnan(read.progress->validation_loss));
  for (const nlohmann::json& old : {nlohmann::json(), nlohmann::json::object()}) {
    const RunState nothing = run_state_from_json(old);
    EXPECT_FALSE(nothing.settings || nothing.corpus || nothing.progress);
  }
  EXPECT_TRUE(data::error_of([] { run_state_from_json({{"progress", 3}}); }).starts_with("3: "));
}

}  // namespace
}  // namespace plimsoll::train

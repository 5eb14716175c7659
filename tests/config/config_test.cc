#include "plimsoll/config/config.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "plimsoll/base/error.h"
#include "plimsoll/config/fields.h"
#include "plimsoll/numerics/bf16.h"
#include "tests/model/random_features.h"

namespace plimsoll::config {
namespace {

// A config file in its own directory, gone with the object.
class ConfigFile {
 public:
  explicit ConfigFile(const std::string& text) {
    std::string pattern = (std::filesystem::temp_directory_path() / "config-XXXXXX").string();
    directory_ = mkdtemp(pattern.data());
    std::ofstream(path()) << text;
  }
  ~ConfigFile() { std::filesystem::remove_all(directory_); }
  ConfigFile(const ConfigFile&) = delete;
  ConfigFile& operator=(const ConfigFile&) = delete;

  std::filesystem::path path() const { return directory_ / "config.toml"; }
  std::filesystem::path directory() const { return directory_; }

 private:
  std::filesystem::path directory_;
};

Config read(const std::string& text, const std::vector<std::string>& settings = {}) {
  return read_config(ConfigFile(text).path(), settings);
}

// The message without the directory of the file.
std::string refusal_of(const std::string& text, const std::vector<std::string>& settings = {}) {
  const ConfigFile file(text);
  try {
    read_config(file.path(), settings);
    return "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Exit::usage);
    std::string message = error.message();
    const std::string directory = file.directory().string() + "/";
    if (message.starts_with(directory)) message.erase(0, directory.size());
    return message;
  }
}

void expect_starts_with(const std::string& text, const std::string& start) {
  EXPECT_TRUE(text.starts_with(start)) << "got:      " << text << "\nexpected: " << start << "...";
}

const std::string kSmall = "[model]\npreset = \"llama-3m\"\n";

TEST(ConfigRead, RefusesWhatNestsTooDeeplyBeforeItIsParsed) {
  const auto brackets = [](int depth) { return std::string(static_cast<size_t>(depth), '['); };
  std::string key = "a";
  for (int i = 0; i < 100000; ++i) key += ".a";
  const std::string end = " nested more than 16 deep.\n  Write [table] lines, and key = value";
  expect_starts_with(refusal_of("[train]\nsteps = " + brackets(100000)),
                     "config.toml:2: a value is" + end);
  expect_starts_with(refusal_of("\n\n" + key + " = 1\n"),
                     "config.toml:3: the parts of a key are" + end);
  expect_starts_with(refusal_of("[" + key + "]\n"), "config.toml:1: the parts of a key are" + end);
  expect_starts_with(refusal_of(kSmall, {"train.steps=" + brackets(100000)}),
                     "--set:1: a value is" + end);
  // Brackets and points in strings and comments nest nothing.
  const std::string text = brackets(50) + std::string(50, '.');
  read(kSmall + "[data]\ntrain = \"\\\"" + text + "\" # " + text + "\nvalidation = '''" + text +
       "\n" + text + "'''\n");
}

TEST(ConfigRead, TakesLettersOutsideAsciiInQuotesAndCommentsOnly) {
  EXPECT_EQ(read("\xef\xbb\xbf" + kSmall + "[data]\ntrain = \"caf\u00e9\" # \u00e9\n").data.train,
            "caf\u00e9");
  expect_starts_with(refusal_of("[train]\nst\u02a8eps = 3\n"),
                     "config.toml:2: a letter outside ASCII stands outside quotes.");
}

TEST(ConfigRead, TakesNumbersAsTheStepComputesWithThem) {
  // In f32 these are 0, 1 or infinite.
  expect_starts_with(refusal_of("[optimizer]\neps = 1e-60\n"),
                     "config.toml:2: optimizer.eps = 1e-60 is out of range.");
  expect_starts_with(refusal_of("[model]\nnorm_eps = 1e-60\n"), "config.toml:2: model.norm_eps");
  expect_starts_with(refusal_of("[optimizer]\nbeta1 = 0.9999999999\n"),
                     "config.toml:2: optimizer.beta1");
  expect_starts_with(refusal_of("[schedule]\nlr = 1e39\n"), "config.toml:2: schedule.lr");
  EXPECT_EQ(read(kSmall + "[optimizer]\neps = 1e-30\n").optimizer.eps, 1e-30);
}

TEST(ConfigRead, GivenKeysOverrideDefaultsAndTheRestKeepsThem) {
  const Config config = read(
      "[step]\nprecision = \"fp32\"\nmicro_batch = 4\n"
      "[schedule]\nlr = 1\ndecay = \"wsd\"\n"
      "[data]\ntrain = \"a.txt\"\n"
      "[checkpoint]\nin_background = false\n"
      "[train]\nthreads = 2\n");
  EXPECT_EQ(config.step.precision, step::Precision::fp32);
  EXPECT_EQ(config.step.micro_batch, 4);
  EXPECT_EQ(config.schedule.lr, 1.0) << "an integer is a number";
  EXPECT_EQ(config.schedule.decay, Decay::wsd);
  EXPECT_EQ(config.data.train, "a.txt");
  EXPECT_EQ(config.checkpoint.in_background, InBackground::no);
  EXPECT_EQ(config.train.threads, 2);
  EXPECT_EQ(config.train.steps, TrainConfig{}.steps);
}

TEST(ConfigRead, KeysOverrideThePresetWhateverTheirOrder) {
  const Config config = read("[model]\nlayers = 3\npreset = \"gpt2-124m\"\nhidden = 384\n");
  EXPECT_EQ(config.model.preset, "gpt2-124m");
  EXPECT_EQ(config.model.family, model::Family::gpt2);
  EXPECT_EQ(config.model.layers, 3);
  EXPECT_EQ(config.model.hidden, 384);
  EXPECT_EQ(config.model.heads, 12);
}

TEST(ConfigRead, SettingsOverrideTheFile) {
  const Config config =
      read(kSmall + "[train]\nsteps = 50\n",
           {"train.steps=70", "schedule.lr = 3e-4", "schedule.decay=linear",
            "data.train=my file.txt", "data.validation=\"b.txt\"", "train.run_directory=2024",
            "checkpoint.in_background=false", "train.steps=80"});
  EXPECT_EQ(config.train.steps, 80) << "the last one wins";
  EXPECT_EQ(config.schedule.lr, 3e-4);
  EXPECT_EQ(config.schedule.decay, Decay::linear);
  EXPECT_EQ(config.data.train, "my file.txt") << "bare words are a string";
  EXPECT_EQ(config.data.validation, "b.txt");
  EXPECT_EQ(config.train.run_directory, "2024") << "digits where a string is wanted are a string";
  EXPECT_EQ(config.checkpoint.in_background, InBackground::no);
}

TEST(ConfigRead, APresetOnTheCommandLineReplacesTheModelOfTheFile) {
  const std::string run = to_toml(resolve(read(kSmall)));
  const Config config = read(run, {"model.layers=5", "model.preset=llama-10m"});
  EXPECT_EQ(config.model.preset, "llama-10m");
  EXPECT_EQ(config.model.hidden, 384);
  EXPECT_EQ(config.model.layers, 5) << "settings beside it override it";
}

TEST(ConfigRead, TheFamilyResetsTheFeaturesOfThePresetAndTheFile) {
  const Config qwen = read("[model]\nqkv_bias = false\npreset = \"qwen2.5-0.5b\"\n");
  EXPECT_EQ(qwen.model.qkv_bias, false) << "a key beside the preset overrides it";
  const Config llama = read("[model]\nfamily = \"llama\"\npreset = \"qwen2.5-0.5b\"\n");
  EXPECT_EQ(llama.model.qkv_bias, std::nullopt);
  const std::string run = to_toml(resolve(read(kSmall)));
  EXPECT_NE(run.find("\nnorm = \"rms\"\n"), std::string::npos) << "run.toml says every feature";
  EXPECT_NE(run.find("\nqkv_bias = false\n"), std::string::npos);
  EXPECT_EQ(resolve(read(run, {"model.family=gpt2"})).model.norm, model::Norm::layer);
  EXPECT_EQ(resolve(read(run, {"model.family=gpt2", "model.norm=rms"})).model.norm,
            model::Norm::rms);
  EXPECT_EQ(read(run, {"model.norm=family"}).model.norm, std::nullopt);
  EXPECT_EQ(read(run, {"model.mlp_bias=family"}).model.mlp_bias, std::nullopt);
}

// Written before there were scalings: its preset has one now, the run had none.
TEST(ConfigRead, AnOlderRunKeepsItsRope) {
  const std::string older =
      "[model]\npreset = \"llama-3.2-1b\"\nfamily = \"llama\"\nrope_theta = 500000.0\n";
  EXPECT_EQ(read(older).model.rope, (model::RopeConfig{.theta = 500000}));
  EXPECT_EQ(read("[model]\npreset = \"llama-3.2-1b\"\n").model.rope.factor, 32);
}

TEST(ConfigRead, AnUnknownKeyIsRefusedWithItsLineAndTheNearest) {
  EXPECT_EQ(
      refusal_of(kSmall + "\n# comment\n[train]\nseed = 2\nstepz = 5\n"),
      "config.toml:7: unknown key train.stepz.\n"
      "  Did you mean train.steps? The keys of [train] are steps, seed, perturb_weights, threads, "
      "eval_every, eval_sequences, eval_batches, memory_limit, run_directory.");
  expect_starts_with(refusal_of("[train]\nlr = 0.1\n"),
                     "config.toml:2: unknown key train.lr.\n  Did you mean schedule.lr? ");
  expect_starts_with(refusal_of("steps = 5\n"),
                     "config.toml:1: unknown key steps.\n  Did you mean train.steps? ");
  expect_starts_with(refusal_of("", {"model.head=3"}),
                     "--set model.head=3: unknown key model.head.\n  Did you mean model.heads? ");
  EXPECT_EQ(refusal_of("[checkpoint]\nqqqqqqqq = 1\n"),
            "config.toml:2: unknown key checkpoint.qqqqqqqq.\n"
            "  The keys of [checkpoint] are every, keep_last, in_background, directory.");
}

TEST(ConfigRead, AnUnknownTableIsRefusedWithTheNearest) {
  EXPECT_EQ(
      refusal_of("[trian]\nsteps = 5\n"),
      "config.toml:1: unknown table [trian].\n"
      "  Did you mean [train]? The tables are model, step, recipe, optimizer, schedule, data, "
      "train, checkpoint.");
  expect_starts_with(refusal_of("train = 3\n"), "config.toml:1: train is an integer, not a table.");
  expect_starts_with(refusal_of("[[train]]\nsteps = 3\n"),
                     "config.toml:1: train is an array, not a table.");
}

TEST(ConfigRead, TheFirstMistakeOfTheFileIsReported) {
  expect_starts_with(refusal_of("[train]\nsteps = 0\n[data]\nfoo = 1\n"),
                     "config.toml:2: train.steps = 0 is out of range.");
}

TEST(ConfigRead, AWrongTypeIsNamedBesideTheOneWanted) {
  EXPECT_EQ(refusal_of("[train]\nsteps = \"fifty\"\n"),
            "config.toml:2: train.steps = \"fifty\" is a string, not an integer from 1 to "
            "1000000000.\n"
            "  Write an integer from 1 to 1000000000: optimizer steps.");
  expect_starts_with(refusal_of("[train]\nsteps = 5.0\n"),
                     "config.toml:2: train.steps = 5.0 is a float, not an integer ");
  expect_starts_with(refusal_of("[train]\nsteps = [1, 2]\n"),
                     "config.toml:2: train.steps is an array, not an integer ");
  expect_starts_with(refusal_of("[train.steps]\nx = 1\n"),
                     "config.toml:1: train.steps is a table, not an integer ");
  expect_starts_with(refusal_of("[train]\nsteps = 2024-01-01\n"),
                     "config.toml:2: train.steps is a date or time, not an integer ");
  expect_starts_with(refusal_of("[data]\ntrain = 5\n"),
                     "config.toml:2: data.train = 5 is an integer, not a string.");
  expect_starts_with(refusal_of("[model]\nqk_norm = 1\n"),
                     "config.toml:2: model.qk_norm = 1 is an integer, not true or false.");
  expect_starts_with(refusal_of("[schedule]\ndecay = 1\n"),
                     "config.toml:2: schedule.decay = 1 is an integer, not one of constant, ");
  expect_starts_with(refusal_of("", {"model.heads=3.5"}),
                     "--set model.heads=3.5: model.heads = 3.5 is a float, not an integer ");
  expect_starts_with(refusal_of("", {"train.steps="}),
                     "--set train.steps=: train.steps = \"\" is a string, not an integer ");
}

TEST(ConfigRead, AnUnknownNameIsRefusedWithTheNearest) {
  EXPECT_EQ(refusal_of("[schedule]\ndecay = \"cosin\"\n"),
            "config.toml:2: schedule.decay = \"cosin\" is not one of constant, cosine, linear, "
            "wsd.\n  Did you mean \"cosine\"?");
  expect_starts_with(refusal_of("[model]\npreset = \"lama-3m\"\n"),
                     "config.toml:2: model.preset = \"lama-3m\" is not a preset.\n"
                     "  Did you mean llama-3m? ");
  expect_starts_with(refusal_of("", {"data.format=zip"}),
                     "--set data.format=zip: data.format = \"zip\" is not one of auto, ");
}

TEST(ConfigRead, NumbersOutOfRangeAreRefused) {
  EXPECT_EQ(refusal_of("[optimizer]\nbeta2 = 1\n"),
            "config.toml:2: optimizer.beta2 = 1 is out of range.\n"
            "  Write a number from 0 to below 1: decay of the second moment.");
  for (const char* setting : {"model.layers=0",
                              "model.hidden=-1",
                              "model.hidden=9223372036854775807",
                              "model.norm_eps=0",
                              "model.rope_theta=0.0",
                              "model.init_std=-0.1",
                              "step.micro_batch=0",
                              "optimizer.beta1=-0.1",
                              "optimizer.eps=0",
                              "optimizer.clip_norm=-1",
                              "schedule.lr=-1e-3",
                              "schedule.lr=inf",
                              "schedule.lr=nan",
                              "schedule.min_lr_fraction=1.1",
                              "data.validation_fraction=1",
                              "train.threads=-1",
                              "train.threads=4294967297",
                              "train.seed=-1",
                              "train.eval_sequences=0",
                              "checkpoint.every=-1"}) {
    EXPECT_NE(refusal_of("", {setting}).find("is out of range."), std::string::npos)
        << setting << ": " << refusal_of("", {setting});
  }
}

TEST(ConfigRead, ASyntaxErrorHasLineAndColumn) {
  expect_starts_with(refusal_of("[model]\nlayers = = 3\n"), "config.toml:2:10: ");
  expect_starts_with(refusal_of("[train]\nsteps = 1\nsteps = 2\n"), "config.toml:3:");
}

TEST(ConfigRead, ASettingWithoutValueIsRefused) {
  EXPECT_EQ(refusal_of("", {"train.steps"}),
            "--set train.steps gives no value.\n"
            "  Write --set table.key=value, for example --set train.steps=100.");
}

TEST(ConfigRead, ASettingCannotCarryASecondKey) {
  expect_starts_with(refusal_of("", {"train.steps=5\nseed = 6"}), "--set train.steps=5\nseed = 6");
}

TEST(ConfigRead, AMissingFileIsRefusedByName) {
  const ConfigFile file("");
  try {
    read_config(file.directory() / "none.toml", {});
    FAIL() << "a missing file was read";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Exit::usage);
    EXPECT_NE(
        std::string(error.what()).find("none.toml: the config file cannot be read: No such file"),
        std::string::npos);
  }
  EXPECT_THROW(read_config(file.directory(), {}), Error) << "a directory is not a file";
}

TEST(ConfigRead, KeysThatDoNotGoTogetherAreRefusedWithALine) {
  EXPECT_EQ(refusal_of("[model]\npreset = \"llama-3-8b\"\nquery_groups = 3\n"),
            "config.toml:3: model.query_groups = 3 does not divide model.heads = 32.\n"
            "  Use one of 1, 2, 4, 8, 16, 32.");
  expect_starts_with(refusal_of(kSmall + "[schedule]\nwarmup_steps = 20\n[train]\nsteps = 10\n"),
                     "config.toml:4: schedule.warmup_steps = 20 is more than train.steps = 10.");
  expect_starts_with(refusal_of("[train]\nmemory_limit = \"lots\"\n"),
                     "config.toml:2: train.memory_limit = \"lots\" is not a size.");
  expect_starts_with(refusal_of("[model]\npreset = \"gpt2-124m\"\n", {"step.sequence_length=2048"}),
                     "--set step.sequence_length=2048: step.sequence_length = 2048 is longer ");
}

void expect_refused(const Config& config, const std::string& message) {
  try {
    resolve(config);
    ADD_FAILURE() << "accepted; expected: " << message;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Exit::usage);
    EXPECT_EQ(error.message(), message);
  }
}

Config with_preset(const std::string& name) {
  Config config;
  config.model = model::preset(name);
  return config;
}

TEST(ConfigResolve, FillsInEveryDerivedValue) {
  Config config = with_preset("llama-3m");
  config.step.micro_batch = 8;
  config = resolve(config);
  EXPECT_EQ(config.model.vocab, 264);
  EXPECT_EQ(config.step.global_batch, 8);
  EXPECT_EQ(config.step.sequence_length, 256);
  EXPECT_EQ(config.step.head_chunk, 2048) << "all tokens: their logits take 2 MiB";

  config = with_preset("llama-3-8b");
  config.step.micro_batch = 8;
  EXPECT_EQ(resolve(config).step.head_chunk, 64) << "64 x 128256 x 4 = 31.3 MiB";

  config = with_preset("gpt2-124m");
  config.model.max_positions = 0;
  config.step.sequence_length = 300;
  EXPECT_EQ(resolve(config).model.max_positions, 300);
}

RC_GTEST_PROP(ConfigResolve, HeadChunkIsABoundedMultipleOf64OrAllTokens, ()) {
  Config config = with_preset("llama-3m");
  config.model.vocab = *rc::gen::inRange<int64_t>(1, 1 << 20);
  config.step.micro_batch = *rc::gen::inRange<int64_t>(1, 64);
  config.step.sequence_length = *rc::gen::inRange<int64_t>(1, 4096);
  const int64_t chunk = resolve(config).step.head_chunk;
  const int64_t tokens = config.step.micro_batch * config.step.sequence_length;
  RC_ASSERT(chunk >= 1);
  RC_ASSERT(chunk == tokens || (chunk < tokens && chunk % 64 == 0));
  // More than 64 tokens and 32 MiB of logits only where chunks would be more than 1024.
  RC_ASSERT(chunk <= 64 * std::max<int64_t>(1, (tokens + 65535) / 65536) ||
            chunk * config.model.vocab * 4 <= 32 << 20);
}

TEST(ConfigResolve, TheMicroBatchMustDivideTheGlobalBatch) {
  Config config = with_preset("llama-3m");
  config.step.micro_batch = 6;
  config.step.global_batch = 16;
  expect_refused(config,
                 "step.micro_batch = 6 does not divide step.global_batch = 16.\n"
                 "  Use step.global_batch = 12 or 18, or step.micro_batch = 4.");
  config.step.micro_batch = 20;
  expect_refused(config,
                 "step.micro_batch = 20 does not divide step.global_batch = 16.\n"
                 "  Use step.global_batch = 20, or step.micro_batch = 16.");
}

TEST(ConfigResolve, Gpt2CannotReadPastItsLearnedPositions) {
  Config config = with_preset("gpt2-124m");
  config.step.sequence_length = 1025;
  expect_refused(config,
                 "step.sequence_length = 1025 is longer than the learned positions, "
                 "model.max_positions = 1024.\n"
                 "  Use a sequence of at most 1024 tokens, or more model.max_positions.");
  config.model = model::preset("llama-3m");
  config.model.max_positions = 1024;
  EXPECT_EQ(resolve(config).step.sequence_length, 1025) << "rotary positions have no end";
}

TEST(ConfigResolve, TheWarmupEndsWithinTheRun) {
  Config config = with_preset("llama-3m");
  config.schedule.warmup_steps = 200;
  expect_refused(config,
                 "schedule.warmup_steps = 200 is more than train.steps = 100.\n"
                 "  Use at most 100 warm-up steps, or more train.steps.");
}

// Steps of zero gradient until a second moment of 1 is below 1e-6; 20,000 if it never is.
int steps_to_forget(float beta2) {
  bf16 v(1.0f);
  int step = 0;
  while (static_cast<float>(v) > 1e-6f && step < 20000) {
    v = bf16(beta2 * static_cast<float>(v));
    ++step;
  }
  return step;
}

TEST(ConfigResolve, RefusesBf16MomentsThatWouldNeverFall) {
  Config config = with_preset("llama-3m");
  config.optimizer.moments = step::Moments::bf16;
  config.optimizer.beta2 = 0.999;
  expect_refused(config,
                 "optimizer.beta2 = 0.999 with optimizer.moments = \"bf16\": bf16 rounds so slow a "
                 "decay away, and the moment would never fall.\n"
                 "  Use optimizer.beta2 up to 0.996, or optimizer.moments = \"fp32\".");
  config.optimizer.moments = step::Moments::fp32;
  EXPECT_NO_THROW(resolve(config));
  for (const double beta2 : {0.9, 0.95, 0.99, 0.995, 0.996, 0.9965, 0.997, 0.998, 0.999}) {
    EXPECT_EQ(step::decays_in_bf16(beta2), steps_to_forget(static_cast<float>(beta2)) < 20000)
        << beta2;
  }
}

TEST(ConfigResolve, RangesHoldForAConfigurationMadeInCode) {
  Config config = with_preset("llama-3m");
  config.optimizer.beta1 = 1.5;
  expect_refused(config,
                 "optimizer.beta1 = 1.5 is out of range.\n"
                 "  Write a number from 0 to below 1: decay of the first moment.");
  config = with_preset("llama-3m");
  config.train.steps = 0;
  config.schedule.warmup_steps = 0;
  expect_refused(config,
                 "train.steps = 0 is out of range.\n"
                 "  Write an integer from 1 to 1000000000: optimizer steps.");
}

// A configuration with random values under every key that resolves.
Config random_config() {
  Config config = with_preset(*rc::gen::element<std::string>("llama-3m", "gpt2-124m", "qwen3-8b"));
  const auto real = [](double low, double high) {
    return low + (high - low) * *rc::gen::inRange(0, 1 << 20) / (1 << 20);
  };
  config.model.rope.theta = real(1, 1e9);
  config.model.norm_eps = real(1e-12, 1e-3);
  if (*rc::gen::arbitrary<bool>()) {
    draw_features(config.model);
    config.model.max_positions = 1024;
  }
  config.step.precision = *rc::gen::element(step::Precision::fp32, step::Precision::bf16);
  config.step.micro_batch = *rc::gen::inRange(1, 100);
  config.step.global_batch = config.step.micro_batch * *rc::gen::inRange(1, 10);
  config.step.sequence_length = *rc::gen::inRange(1, 1024);
  config.optimizer.beta1 = real(0, 0.999);
  config.optimizer.eps = real(1e-20, 1e-6);
  config.schedule.lr = real(0, 1);
  config.schedule.decay =
      *rc::gen::element(Decay::constant, Decay::cosine, Decay::linear, Decay::wsd);
  // Everything ASCII, control characters and quotes among them, and beyond.
  config.data.train = *rc::gen::container<std::string>(rc::gen::inRange<char>(1, 127)) + "é\x7f";
  config.train.seed = *rc::gen::inRange<int64_t>(0, INT64_MAX);
  config.checkpoint.in_background =
      *rc::gen::element(InBackground::automatic, InBackground::yes, InBackground::no);
  return resolve(config);
}

// Values as text: doubles are written with every digit they need.
std::vector<std::string> values(Config config) {
  std::vector<std::string> all;
  for (const Table& table : tables(config)) {
    for (const Field& field : table.fields) {
      all.push_back(table.name + "." + field.key + " = " + toml_text(field));
    }
  }
  return all;
}

RC_GTEST_PROP(ConfigWrite, RunTomlReadsBackAsTheSameConfiguration, ()) {
  const Config config = random_config();
  const Config back = read(to_toml(config));
  const std::vector<std::string> expected = values(config);
  const std::vector<std::string> got = values(back);
  for (size_t i = 0; i < expected.size(); ++i) RC_ASSERT(got[i] == expected[i]);
  RC_ASSERT(back.data.train == config.data.train);
  RC_ASSERT(back.schedule.lr == config.schedule.lr);
}

TEST(ConfigWrite, EveryKeyStandsUnderItsDescription) {
  const std::string text = to_toml(resolve(with_preset("llama-3m")));
  EXPECT_NE(text.find("\n[train]\n# optimizer steps\nsteps = 100\n"), std::string::npos) << text;
  EXPECT_NE(text.find("\n# query heads\nheads = 8\n"), std::string::npos) << text;
}

TEST(ConfigReference, IsWhatTheDocumentationHolds) {
  std::ifstream file(PLIMSOLL_TEST_DATA "/../../docs/config.md");
  std::stringstream page;
  page << file.rdbuf();
  std::stringstream reference(config_reference());
  std::string expected, got;
  for (int line = 1; std::getline(reference, expected); ++line) {
    std::getline(page, got);
    ASSERT_EQ(got, expected) << "docs/config.md:" << line << " is not what config_reference() says";
  }
  EXPECT_EQ(page.str(), config_reference());
}

}  // namespace
}  // namespace plimsoll::config

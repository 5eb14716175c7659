#include "plimsoll/checkpoint/checkpoint.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <sys/stat.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "plimsoll/base/error.h"
#include "plimsoll/base/files.h"
#include "tests/checkpoint/fixture.h"

namespace plimsoll::checkpoint {
namespace {

namespace fs = std::filesystem;
using Names = std::vector<std::string>;

// Replaces a file in place, as a failing disk or a careless person would.
void overwrite(const fs::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

void expect_parts(const std::string& text, std::initializer_list<std::string> parts) {
  for (const std::string& part : parts) {
    EXPECT_NE(text.find(part), std::string::npos) << "wanted: " << part << "\ngot: " << text;
  }
}

using Checkpoint = ScratchFolder;

TEST_F(Checkpoint, GivesBackEveryTensorAndTheState) {
  const fs::path root = folder / "run" / "checkpoints";
  save_version(root, 200, 7);
  EXPECT_EQ(newest(root), "step 200, version 7");
  const Found found = *newest_valid(root);
  EXPECT_EQ(found.path, root / "step-200");
  EXPECT_EQ(found.state.samples, 1600);
  EXPECT_EQ(found.state.extra, (nlohmann::json{{"version", 7}, {"loader", {1, 2, 3}}}));
  EXPECT_EQ(sorted_names_in(root), Names{"step-200"});
  EXPECT_EQ(sorted_names_in(root / "step-200"),
            (Names{"manifest.json", "model.safetensors", "optimizer.safetensors"}));
}

TEST_F(Checkpoint, LoadsAShardAlone) {
  save_version(folder, 1, 3);
  SmallModel model(3), blank(-1);
  const std::vector<Shard> shards = blank.shards();
  load_checkpoint(*newest_valid(folder), std::span(shards).first(1));
  EXPECT_TRUE(bytes_of(blank.shards()[0].tensors[1]) == bytes_of(model.shards()[0].tensors[1]));
}

TEST_F(Checkpoint, NoneIsNotAnError) {
  EXPECT_FALSE(newest_valid(folder / "absent"));
  make_directories(folder / ".step-3.partial");
  make_directories(folder / "step-03");
  make_directories(folder / "step-x");
  make_directories(folder / "step--1");
  EXPECT_FALSE(newest_valid(folder));
}

TEST_F(Checkpoint, NewestIsByNumberNotByName) {
  for (const int step : {9, 10, 100, 11}) save_version(folder, step, step);
  EXPECT_EQ(newest(folder), "step 100, version 100");
}

TEST_F(Checkpoint, SavingAStepAgainReplacesIt) {
  save_version(folder, 5, 1);
  save_version(folder, 5, 2);
  EXPECT_EQ(newest(folder), "step 5, version 2");
  EXPECT_EQ(sorted_names_in(folder), Names{"step-5"});
}

// Any bit flipped, any file cut, grown or gone: reported by name, and the one before is used.
TEST_F(Checkpoint, AnyDamageIsFoundAndTheOneBeforeIsUsed) {
  save_version(folder, 1, 1);
  save_version(folder, 2, 2);
  const Names files = sorted_names_in(folder / "step-2");
  EXPECT_TRUE(rc::check([&] {
    const std::string file = *rc::gen::elementOf(files);
    const fs::path path = folder / "step-2" / file;
    const std::string intact = read_file(path);
    const auto position = *rc::gen::inRange<size_t>(0, intact.size());
    std::string damaged = intact;
    switch (*rc::gen::inRange(0, 4)) {
      case 0:
        damaged[position] ^= static_cast<char>(1 << *rc::gen::inRange(0, 8));
        overwrite(path, damaged);
        break;
      case 1:
        overwrite(path, intact.substr(0, position));
        break;
      case 2:
        overwrite(path, intact + std::string(1, *rc::gen::arbitrary<char>()));
        break;
      default:
        fs::remove(path);
    }
    const Found found = *newest_valid(folder);
    const std::string text = newest(folder);
    overwrite(path, intact);

    RC_ASSERT(found.state.step == 1);
    RC_ASSERT(found.damaged.size() == 1u);
    RC_ASSERT(found.damaged[0].starts_with((folder / "step-2").string() + " is damaged: "));
    RC_ASSERT(found.damaged[0].find(file) != std::string::npos);
    RC_ASSERT(text.starts_with("step 1, version 1; "));
    RC_ASSERT(newest(folder) == "step 2, version 2");
  }));
}

TEST_F(Checkpoint, SaysWhatIsWrongWithEachDamagedOne) {
  for (const int step : {1, 2, 3, 4, 5}) save_version(folder, step, step);
  fs::remove(folder / "step-5" / "manifest.json");
  overwrite(folder / "step-4" / "model.safetensors", "short");
  std::string manifest = read_file(folder / "step-3" / "manifest.json");
  manifest.replace(manifest.find("\"samples\": 24"), 13, "\"samples\": 25");
  overwrite(folder / "step-3" / "manifest.json", manifest);
  fs::rename(folder / "step-2", folder / "step-6");
  const Found found = *newest_valid(folder);
  EXPECT_EQ(found.state.step, 1);
  ASSERT_EQ(found.damaged.size(), 4u);
  expect_parts(found.damaged[0], {"step-6 is damaged", "manifest.json is of step 2"});
  expect_parts(found.damaged[1], {"step-5 is damaged", "manifest.json", "No such file"});
  expect_parts(found.damaged[2], {"step-4 is damaged", "model.safetensors has 5 bytes instead of"});
  expect_parts(found.damaged[3], {"step-3 is damaged", "manifest.json has been changed"});
}

TEST_F(Checkpoint, TakesWhatIsNoFileForDamagedAndNeverWaitsForIt) {
  for (const std::string name : {"manifest.json", "model.safetensors"}) {
    for (const bool endless : {false, true}) {
      for (const int step : {1, 2}) save_version(folder, step, step);
      const fs::path path = folder / "step-2" / name;
      fs::remove(path);
      if (endless) {
        fs::create_symlink("/dev/zero", path);
      } else {
        ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
      }
      const Found found = *newest_valid(folder);
      EXPECT_EQ(found.state.step, 1);
      ASSERT_EQ(found.damaged.size(), 1u);
      expect_parts(found.damaged[0], {"step-2 is damaged", name, endless ? "a device" : "a pipe"});
    }
  }
}

TEST_F(Checkpoint, HoldsOnlyFiniteNumbers) {
  for (const float bad : {NAN, INFINITY, -INFINITY}) {
    SmallModel model(1);
    std::vector<Shard> shards = model.shards();
    NamedTensor& embedding = shards[0].tensors[1];
    embedding.write(4 * 300, std::as_bytes(std::span(&bad, 1)));
    save_checkpoint(folder, {1, 8, {}}, shards);
    expect_parts(error_of([&] { load_checkpoint(*newest_valid(folder), shards); }),
                 {"3: ", "tensor embedding holds Inf or NaN (element 300)"});
    NamedTensor& norm = shards[0].tensors[0];
    const bf16 narrow(bad);
    norm.write(2, std::as_bytes(std::span(&narrow, 1)));
    save_checkpoint(folder, {1, 8, {}}, shards);
    expect_parts(error_of([&] { load_checkpoint(*newest_valid(folder), shards); }),
                 {"tensor norm holds Inf or NaN (element 1)"});
  }
}

TEST_F(Checkpoint, TakesAManifestThatOthersWroteForDamaged) {
  save_version(folder, 1, 1);
  const std::string manifest = read_file(folder / "step-1" / "manifest.json");
  std::string escaped = manifest;  // the same hash, in another spelling
  const size_t hash = escaped.find("sha256\": \"") + 10;
  escaped.replace(hash, 1, fmt::format("\\u{:04x}", escaped[hash]));
  overwrite(folder / "step-1" / "manifest.json", escaped);
  expect_parts(error_of([&] { newest_valid(folder); }),
               {"3: No checkpoint", "not written plainly"});
  overwrite(folder / "step-1" / "manifest.json", std::string(100000, '['));
  expect_parts(error_of([&] { newest_valid(folder); }), {"3: No checkpoint", "nests too deeply"});
}

TEST_F(Checkpoint, RefusesToGuessWhenNoneIsWhole) {
  for (const int step : {1, 2}) {
    save_version(folder, step, step);
    overwrite(folder / fmt::format("step-{}", step) / "optimizer.safetensors", "");
  }
  expect_parts(error_of([&] { newest_valid(folder); }),
               {"3: No checkpoint in", "step-2 is damaged: optimizer.safetensors has 0 bytes",
                "step-1 is damaged: optimizer.safetensors has 0 bytes"});
}

TEST_F(Checkpoint, LeavesAManifestOfALaterVersionAlone) {
  save_version(folder, 1, 1);
  std::string manifest = read_file(folder / "step-1" / "manifest.json");
  manifest.replace(manifest.find("\"format_version\": 1"), 19, "\"format_version\": 2");
  overwrite(folder / "step-1" / "manifest.json", manifest);
  expect_parts(error_of([&] { newest_valid(folder); }),
               {"has format version 2; this Plimsoll reads up to 1"});
}

TEST_F(Checkpoint, NamesTheTensorThatTheModelSeesDifferently) {
  save_version(folder, 1, 1);
  const Found found = *newest_valid(folder);
  const auto load_with = [&](auto&& change) {
    SmallModel model;
    std::vector<Shard> shards = model.shards();
    change(shards[0].tensors);
    return error_of([&] { load_checkpoint(found, shards); });
  };
  using Tensors = std::vector<NamedTensor>;
  expect_parts(
      load_with([](Tensors& t) { t[0].name = "bias"; }),
      {"3: ", "model.safetensors", "tensor bias: the file has none, the model wants BF16 [3]"});
  expect_parts(
      load_with([](Tensors& t) {
        t[1].shape = {30, 512};
      }),
      {"3: ", "tensor embedding: the file has F32 [60, 256], the model wants F32 [30, 512]"});
  expect_parts(
      load_with([](Tensors& t) { t[1].format = Format::i32; }),
      {"3: ", "tensor embedding: the file has F32 [60, 256], the model wants I32 [60, 256]"});
  expect_parts(load_with([](Tensors& t) { t.pop_back(); }),
               {"3: ", "tensor embedding: the file has F32 [60, 256], the model wants none"});
  EXPECT_EQ(load_with([](Tensors& t) { std::swap(t[0], t[1]); }), "none");
}

TEST_F(Checkpoint, MismatchLeavesTheModelAsItWas) {
  save_version(folder, 1, 1);
  SmallModel model(9);
  std::vector<Shard> shards = model.shards();
  shards[0].tensors[1].shape = {30, 512};
  EXPECT_NE(error_of([&] { load_checkpoint(*newest_valid(folder), shards); }), "none");
  EXPECT_EQ(model.difference_from(9), "");
}

TEST_F(Checkpoint, KeepLastKeepsTheNewestAndRemovesLeftovers) {
  for (const int step : {5, 10, 15, 20}) save_version(folder, step, step);
  make_directories(folder / ".step-25.partial");
  make_directories(folder / ".step-1.removed");
  write_file_atomically(folder / "notes.txt", std::string_view("the user's"));
  keep_last(folder, 2, 20);
  EXPECT_EQ(sorted_names_in(folder), (Names{"notes.txt", "step-15", "step-20"}));
  keep_last(folder, 0, 20);
  EXPECT_EQ(sorted_names_in(folder), (Names{"notes.txt", "step-15", "step-20"}));
}

// A run that went back to step 5 because 10 and 15 were damaged must not lose 5 and 6 to them.
TEST_F(Checkpoint, KeepLastDoesNotCountCheckpointsAfterTheOneSaved) {
  for (const int step : {4, 5, 6, 10, 15}) save_version(folder, step, step);
  keep_last(folder, 2, 6);
  EXPECT_EQ(sorted_names_in(folder), (Names{"step-10", "step-15", "step-5", "step-6"}));
}

TEST_F(Checkpoint, ModelShardsOpenAsOrdinarySafetensors) {
  save_version(folder, 1, 1);
  const SafetensorsFile file(folder / "step-1" / "model.safetensors");
  EXPECT_EQ(file.metadata(), (Metadata{{"format", "pt"}}));
  ASSERT_NE(file.find("norm"), nullptr);
  EXPECT_EQ(file.find("norm")->dtype, Dtype::bf16);
}

}  // namespace
}  // namespace plimsoll::checkpoint

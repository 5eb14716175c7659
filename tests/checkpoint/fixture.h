// A small model whose values tell which save they come from, in a folder of its own.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "plimsoll/base/error.h"
#include "plimsoll/base/files.h"
#include "plimsoll/checkpoint/checkpoint.h"
#include "plimsoll/numerics/bf16.h"

namespace plimsoll::checkpoint {

inline std::vector<std::byte> bytes_of(const NamedTensor& tensor) {
  std::vector<std::byte> bytes(static_cast<size_t>(tensor.size.count));
  tensor.read(0, bytes);
  return bytes;
}

// The error that `act` raises, with its code and advice; "none" without.
template <typename Act>
std::string error_of(Act act) {
  try {
    act();
  } catch (const Error& error) {
    return fmt::format("{}: {}", static_cast<int>(error.code()), error.message());
  }
  return "none";
}

class SmallModel {
 public:
  // `rows`: rows of the embedding, 1 KiB each; `version`: makes the values of a save its own.
  explicit SmallModel(int version = 0, int64_t rows = 60)
      : embedding_(rows * 256), norm_(3), moment_(rows * 256), count_(1) {
    for (size_t i = 0; i < embedding_.size(); ++i) {
      embedding_[i] = static_cast<float>(version) + static_cast<float>(i % 97) / 97;
      moment_[i] = -embedding_[i];
    }
    for (size_t i = 0; i < norm_.size(); ++i) norm_[i] = bf16(static_cast<float>(version + i));
    count_[0] = version;
  }

  std::vector<Shard> shards() {
    const auto bytes = [](auto& values) { return std::as_writable_bytes(std::span(values)); };
    const auto rows = static_cast<int64_t>(embedding_.size() / 256);
    return {{"model.safetensors",
             {in_memory("norm", {3}, Format::bf16, bytes(norm_)),
              in_memory("embedding", {rows, 256}, Format::f32, bytes(embedding_))}},
            {"optimizer.safetensors",
             {in_memory("embedding.m", {rows, 256}, Format::f32, bytes(moment_)),
              in_memory("count", {}, Format::i32, bytes(count_))}}};
  }

  // Empty when all values are those of `version`; else the first that is not.
  std::string difference_from(int version) {
    SmallModel wanted(version, static_cast<int64_t>(embedding_.size() / 256));
    const std::vector<Shard> mine = shards(), theirs = wanted.shards();
    for (size_t s = 0; s < mine.size(); ++s) {
      for (size_t t = 0; t < mine[s].tensors.size(); ++t) {
        const auto a = bytes_of(mine[s].tensors[t]), b = bytes_of(theirs[s].tensors[t]);
        const auto at = std::ranges::mismatch(a, b).in1 - a.begin();
        if (static_cast<size_t>(at) == a.size()) continue;
        return fmt::format("{} byte {}: {:#04x}, not {:#04x} of version {}",
                           mine[s].tensors[t].name, at, static_cast<int>(a[at]),
                           static_cast<int>(b[at]), version);
      }
    }
    return {};
  }

 private:
  std::vector<float> embedding_;
  std::vector<bf16> norm_;
  std::vector<float> moment_;
  std::vector<int32_t> count_;
};

// Saves the model of `version` as the checkpoint of `step`.
inline void save_version(const std::filesystem::path& root, int64_t step, int version,
                         int64_t rows = 60) {
  save_checkpoint(root, {step, step * 8, {{"version", version}, {"loader", {1, 2, 3}}}},
                  SmallModel(version, rows).shards());
}

// "step 2, version 7" for the newest whole checkpoint, whose values are checked against the version
// that its manifest states.
inline std::string newest(const std::filesystem::path& root, int64_t rows = 60) {
  const std::optional<Found> found = newest_valid(root);
  if (!found) return "none";
  SmallModel model(-1, rows);
  load_checkpoint(*found, model.shards());
  const int version = found->state.extra.at("version");
  const std::string difference = model.difference_from(version);
  if (!difference.empty()) return difference;
  std::string text = fmt::format("step {}, version {}", found->state.step, version);
  for (const std::string& damaged : found->damaged) text += "; " + damaged;
  return text;
}

inline std::vector<std::string> sorted_names_in(const std::filesystem::path& path) {
  std::vector<std::string> names = names_in(path);
  std::ranges::sort(names);
  return names;
}

// In memory where the system offers it: these tests save often, and do not test the disk.
inline std::filesystem::path scratch_folder(const std::string& name) {
  const std::filesystem::path memory = "/dev/shm";
  const std::filesystem::path parent =
      ::access(memory.c_str(), W_OK) == 0 ? memory : std::filesystem::path(testing::TempDir());
  return parent / fmt::format("plimsoll_{}_{}", name, ::getpid());
}

class ScratchFolder : public testing::Test {
 protected:
  ScratchFolder()
      : folder(scratch_folder(testing::UnitTest::GetInstance()->current_test_info()->name())) {
    make_directories(folder);
  }
  ~ScratchFolder() override { remove_tree(folder); }

  std::filesystem::path folder;
};

}  // namespace plimsoll::checkpoint

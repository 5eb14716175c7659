// Checkpoints: one folder a checkpoint, whole or absent, each byte under a hash.
//
//   <root>/step-200/manifest.json         written last; see manifest.h
//                   model.safetensors     one safetensors file a shard
//                   optimizer.safetensors
//
// Saving builds <root>/.step-200.partial, syncs it and renames it, so a kill at any moment leaves
// the checkpoints that were complete. One process at a time saves under a root (the run
// directory's lock sees to that); hidden folders it finds there are what a killed one left.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "plimsoll/base/units.h"
#include "plimsoll/checkpoint/manifest.h"
#include "plimsoll/checkpoint/safetensors.h"
#include "plimsoll/numerics/format.h"

namespace plimsoll::checkpoint {

// Copies bytes of a tensor from byte `offset` on, wherever it lives, to memory of the host.
using ReadBytes = std::function<void(int64_t offset, std::span<std::byte> to)>;
// And the other way.
using WriteBytes = std::function<void(int64_t offset, std::span<const std::byte> from)>;

// A tensor of a model: saving reads it, loading writes it.
struct NamedTensor {
  std::string name;
  std::vector<int64_t> shape;
  Format format = Format::f32;
  Bytes size;
  ReadBytes read;
  WriteBytes write;
};

// One whose bytes are in the host's memory.
NamedTensor in_memory(std::string name, std::vector<int64_t> shape, Format format,
                      std::span<std::byte> bytes);

// The tensors of one file: {"model.safetensors", ...}.
struct Shard {
  std::string file;
  std::vector<NamedTensor> tensors;
};

// Shards with their headers serialised, to be saved many times from the same tensors: saving
// allocates nothing that grows with the model.
struct PreparedShard {
  struct Data {
    Bytes size;
    ReadBytes read;
  };
  std::string file;
  SafetensorsLayout layout;
  std::vector<Data> data;  // in the order they are written
};
std::vector<PreparedShard> prepare_shards(std::span<const Shard> shards);

// Saves <root>/step-N, durably when it returns; replaces a checkpoint of the same step. On any
// failure removes what it began and leaves the others as they were. When the disk fails, raises
// Exit::data with the path, the system's reason, and the bytes needed and available.
void save_checkpoint(const std::filesystem::path& root, const CheckpointState& state,
                     std::span<const PreparedShard> shards);
void save_checkpoint(const std::filesystem::path& root, const CheckpointState& state,
                     std::span<const Shard> shards);

// Keeps the `count` newest checkpoints up to `step`, the one just saved (0: all of them), removes
// older ones and what a killed save left behind. Checkpoints after `step` stay and do not count:
// a run that resumed from `step` or before found them damaged.
void keep_last(const std::filesystem::path& root, int64_t count, int64_t step);

struct Found {
  std::filesystem::path path;
  CheckpointState state;
  // One sentence for each newer checkpoint that was passed over: which, which file, what is wrong.
  std::vector<std::string> damaged;
};

// The newest checkpoint whose every file has the size and the hash its manifest states; empty when
// there are no checkpoints. Raises Exit::data when there are some and none is whole. One that is
// removed meanwhile, by the retention of a run that goes on, is looked for no longer.
std::optional<Found> newest_valid(const std::filesystem::path& root);

// Fills the tensors of `shards`, which may be some of the checkpoint's. Within a shard the names,
// shapes and formats must be those of the file; raises Exit::data naming the tensor, what the file
// has and what the model wants. Inf and NaN are no state to go on from: Exit::data.
void load_checkpoint(const Found& found, std::span<const Shard> shards);

}  // namespace plimsoll::checkpoint

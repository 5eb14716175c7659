#include "plimsoll/checkpoint/checkpoint.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <set>

#include "plimsoll/base/error.h"
#include "plimsoll/base/files.h"
#include "plimsoll/base/hash.h"

namespace plimsoll::checkpoint {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view prefix = "step-";
constexpr size_t chunk_bytes = 64 * 1024;  // hashed, then written, while it is in the cache

fs::path checkpoint_path(const fs::path& root, int64_t step) {
  return root / fmt::format("{}{}", prefix, step);
}

fs::path hidden_path(const fs::path& root, int64_t step, std::string_view suffix) {
  return root / fmt::format(".{}{}.{}", prefix, step, suffix);
}

// The N of "step-N" as fmt writes it; empty for every other name.
std::optional<int64_t> step_of(std::string_view name) {
  if (!name.starts_with(prefix)) return std::nullopt;
  const std::string_view digits = name.substr(prefix.size());
  int64_t step = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), step);
  if (step < 0 || fmt::to_string(step) != digits) return std::nullopt;
  return step;
}

// Newest first.
std::vector<int64_t> steps_in(const fs::path& root) {
  std::vector<int64_t> steps;
  for (const std::string& name : names_in(root)) {
    if (const auto step = step_of(name)) steps.push_back(*step);
  }
  std::ranges::sort(steps, std::greater{});
  return steps;
}

void remove_leftovers(const fs::path& root) {
  for (const std::string& name : names_in(root)) {
    if (name.starts_with(fmt::format(".{}", prefix))) remove_tree(root / name);
  }
}

// The file's size and hash go into the manifest from the bytes in memory, not from what the disk
// gives back: so a later check finds what the disk got wrong.
ManifestFile write_shard(const fs::path& folder, const PreparedShard& shard) {
  OutputFile file(folder / shard.file);
  Sha256 hash;
  Bytes total;
  const auto write = [&](std::span<const std::byte> bytes) {
    total.count += static_cast<int64_t>(bytes.size());
    while (!bytes.empty()) {
      const auto chunk = bytes.first(std::min(bytes.size(), chunk_bytes));
      hash.update(chunk);
      file.write(chunk);
      bytes = bytes.subspan(chunk.size());
    }
  };
  write(std::as_bytes(std::span(shard.layout.header)));
  std::vector<std::byte> staging(chunk_bytes);  // a device's memory is read in pieces
  for (const PreparedShard::Data& data : shard.data) {
    for (int64_t offset = 0; offset < data.size.count;) {
      const auto rest = static_cast<size_t>(data.size.count - offset);
      const auto chunk = std::span(staging).first(std::min(rest, chunk_bytes));
      data.read(offset, chunk);
      write(chunk);
      offset += static_cast<int64_t>(chunk.size());
    }
  }
  file.close_durably();
  return {shard.file, total, hash.hex()};
}

void write_folder(const fs::path& folder, const CheckpointState& state,
                  std::span<const PreparedShard> shards) {
  if (::mkdir(folder.c_str(), 0777) != 0) throw FileError("create folder", folder, errno);
  Manifest manifest{state, {}};
  for (const PreparedShard& shard : shards) manifest.files.push_back(write_shard(folder, shard));
  OutputFile file(folder / "manifest.json");
  file.write(to_text(manifest));
  file.close_durably();
  sync_directory(folder);
}

// Gives the folder `partial` its final name. A checkpoint that has this name already is exchanged
// in one step where the file system can, and ends as `partial`.
void publish(const fs::path& root, int64_t step, const fs::path& partial) {
  const fs::path target = checkpoint_path(root, step);
  if (::renameat2(AT_FDCWD, partial.c_str(), AT_FDCWD, target.c_str(), RENAME_EXCHANGE) == 0)
    return;
  // No checkpoint there, or a file system that cannot exchange: then for a moment only the hidden
  // name holds the old one.
  if (errno != ENOENT) {
    const fs::path replaced = hidden_path(root, step, "replaced");
    if (::rename(target.c_str(), replaced.c_str()) != 0 && errno != ENOENT) {
      throw FileError("rename", target, errno);
    }
  }
  if (::rename(partial.c_str(), target.c_str()) != 0) throw FileError("rename", partial, errno);
}

Bytes bytes_needed(std::span<const PreparedShard> shards) {
  Bytes total;
  for (const PreparedShard& shard : shards) total += shard.layout.file;
  return total;
}

// What is wrong with the checkpoint in `folder`: raises it as an Error, or gives its manifest.
Manifest verify(const fs::path& folder, int64_t step) {
  Manifest manifest = parse_manifest(read_file(folder / "manifest.json"));
  if (manifest.state.step != step) {
    throw Error(Exit::data, fmt::format("manifest.json is of step {}.", manifest.state.step));
  }
  for (const ManifestFile& file : manifest.files) {
    if (fs::path(file.name).has_parent_path()) {
      throw Error(Exit::data, fmt::format("{} lies outside the checkpoint.", file.name));
    }
    const FileHash found = hash_file(folder / file.name);
    if (found.bytes != file.bytes) {
      throw Error(Exit::data, fmt::format("{} has {} bytes instead of {}.", file.name,
                                          found.bytes.count, file.bytes.count));
    }
    if (found.sha256 != file.sha256) {
      throw Error(Exit::data, fmt::format("{} has been changed: its SHA-256 is {}, not {}.",
                                          file.name, found.sha256, file.sha256));
    }
  }
  return manifest;
}

std::string describe(Dtype dtype, std::span<const int64_t> shape) {
  return fmt::format("{} [{}]", name(dtype), fmt::join(shape, ", "));
}

// Index of the first element that is Inf or NaN; -1 when there is none.
int64_t first_non_finite(Format format, std::span<const std::byte> bytes) {
  const auto find = [&](auto exponent) -> int64_t {
    using Bits = decltype(exponent);
    for (size_t at = 0; at < bytes.size(); at += sizeof(Bits)) {
      Bits bits;
      std::memcpy(&bits, bytes.data() + at, sizeof(bits));
      if ((bits & exponent) == exponent) return static_cast<int64_t>(at / sizeof(bits));
    }
    return -1;
  };
  if (format == Format::f32) return find(uint32_t{0x7f800000});
  if (format == Format::bf16) return find(uint16_t{0x7f80});
  return -1;
}

void load_shard(const fs::path& path, const Shard& shard) {
  const SafetensorsFile file(path);
  const auto mismatch = [&](const std::string& name, const std::string& has,
                            const std::string& wants) {
    throw Error(Exit::data,
                fmt::format("{}: tensor {}: the file has {}, the model wants {}.", path.string(),
                            name, has, wants),
                "Resume with the [model] and [optimizer] tables that the checkpoint was saved "
                "with (run.toml holds them), or start another run directory.");
  };
  std::set<std::string_view> wanted;
  for (const NamedTensor& tensor : shard.tensors) {
    wanted.insert(tensor.name);
    const std::string wants = describe(dtype_of(tensor.format), tensor.shape);
    const StoredTensor* stored = file.find(tensor.name);
    if (!stored) mismatch(tensor.name, "none", wants);
    if (stored->shape != tensor.shape || stored->dtype != dtype_of(tensor.format)) {
      mismatch(tensor.name, describe(stored->dtype, stored->shape), wants);
    }
    check(static_cast<int64_t>(stored->bytes.size()) == tensor.size.count,
          fmt::format("the memory of tensor {} does not match its shape", tensor.name));
  }
  for (const StoredTensor& stored : file.tensors()) {
    if (!wanted.contains(stored.name)) {
      mismatch(stored.name, describe(stored.dtype, stored.shape), "none");
    }
  }
  for (const NamedTensor& tensor : shard.tensors) {
    const int64_t bad = first_non_finite(tensor.format, file.find(tensor.name)->bytes);
    if (bad < 0) continue;
    throw Error(Exit::data,
                fmt::format("{}: tensor {} holds Inf or NaN (element {}).", path.string(),
                            tensor.name, bad),
                "The training had diverged when it was saved. Remove this checkpoint, so that an "
                "earlier one is used, and lower schedule.lr.");
  }
  for (const NamedTensor& tensor : shard.tensors) {
    tensor.write(0, file.find(tensor.name)->bytes);
  }
}

}  // namespace

NamedTensor in_memory(std::string name, std::vector<int64_t> shape, Format format,
                      std::span<std::byte> bytes) {
  return {.name = std::move(name),
          .shape = std::move(shape),
          .format = format,
          .size = {static_cast<int64_t>(bytes.size())},
          .read =
              [bytes](int64_t offset, std::span<std::byte> to) {
                std::ranges::copy(bytes.subspan(static_cast<size_t>(offset), to.size()),
                                  to.begin());
              },
          .write =
              [bytes](int64_t offset, std::span<const std::byte> from) {
                std::ranges::copy(from, bytes.subspan(static_cast<size_t>(offset)).begin());
              }};
}

std::vector<PreparedShard> prepare_shards(std::span<const Shard> shards) {
  std::vector<PreparedShard> prepared;
  for (const Shard& shard : shards) {
    std::vector<StoredTensor> tensors;
    for (const NamedTensor& tensor : shard.tensors) {
      // Only the length is read.
      const std::span bytes(static_cast<const std::byte*>(nullptr),
                            static_cast<size_t>(tensor.size.count));
      tensors.push_back({tensor.name, dtype_of(tensor.format), tensor.shape, bytes});
    }
    // Hugging Face's loaders refuse a file whose metadata lack this.
    PreparedShard& result = prepared.emplace_back(
        PreparedShard{shard.file, lay_out_safetensors(tensors, {{"format", "pt"}}), {}});
    for (const size_t i : result.layout.order) {
      result.data.push_back({shard.tensors[i].size, shard.tensors[i].read});
    }
  }
  return prepared;
}

void save_checkpoint(const fs::path& root, const CheckpointState& state,
                     std::span<const PreparedShard> shards) {
  const fs::path partial = hidden_path(root, state.step, "partial");
  std::error_code ignored;  // a folder that cannot be removed must not hide why saving failed
  try {
    make_directories(root);
    remove_leftovers(root);  // before, not after: they may hold the space this one needs
    write_folder(partial, state, shards);
    publish(root, state.step, partial);
    sync_directory(root);
  } catch (const FileError& error) {
    fs::remove_all(partial, ignored);
    throw Error(Exit::data,
                fmt::format("Cannot save the checkpoint of step {}: {}: {} ({} needed, {} "
                            "available on that disk).",
                            state.step, error.path().string(), error.reason(),
                            to_text(bytes_needed(shards)), to_text(available_on_disk(root))),
                fmt::format("{}{}Checkpoints saved before are intact; `--resume` continues from "
                            "the newest.",
                            error.advice(), error.advice().empty() ? "" : "\n"));
  } catch (...) {
    fs::remove_all(partial, ignored);
    throw;
  }
  fs::remove_all(partial, ignored);  // what an exchange left; the next save would remove it too
}

void save_checkpoint(const fs::path& root, const CheckpointState& state,
                     std::span<const Shard> shards) {
  save_checkpoint(root, state, prepare_shards(shards));
}

void keep_last(const fs::path& root, int64_t count, int64_t step) {
  int64_t kept = 0;
  for (const int64_t old : steps_in(root)) {
    if (count <= 0 || old > step || ++kept <= count) continue;
    // Hidden first: a kill while deleting must not leave a checkpoint that looks damaged.
    const fs::path path = checkpoint_path(root, old);
    if (::rename(path.c_str(), hidden_path(root, old, "removed").c_str()) != 0) {
      throw FileError("remove", path, errno);
    }
  }
  remove_leftovers(root);
}

std::optional<Found> newest_valid(const fs::path& root) {
  for (bool removed = true; removed;) {
    removed = false;
    std::vector<std::string> damaged;
    for (const int64_t step : steps_in(root)) {
      const fs::path path = checkpoint_path(root, step);
      try {
        return Found{path, verify(path, step).state, std::move(damaged)};
      } catch (const Error& error) {
        if (error.code() != Exit::data) throw;
        damaged.push_back(fmt::format("{} is damaged: {}", path.string(), error.what()));
      }
      // Gone while it was read: a run that goes on here has made a newer one. Look again.
      removed = !fs::exists(fs::symlink_status(path));
      if (removed) break;
    }
    if (removed) continue;
    if (damaged.empty()) return std::nullopt;
    throw Error(Exit::data, fmt::format("No checkpoint in {} is whole.", root.string()),
                fmt::format("{}\nRestore one from a copy, or start another run directory.",
                            fmt::join(damaged, "\n")));
  }
  return std::nullopt;
}

void load_checkpoint(const Found& found, std::span<const Shard> shards) {
  for (const Shard& shard : shards) load_shard(found.path / shard.file, shard);
}

}  // namespace plimsoll::checkpoint

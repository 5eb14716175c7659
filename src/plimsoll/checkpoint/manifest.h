// manifest.json of a checkpoint: what it is a checkpoint of, and what its files must be.
//
//   {
//     "manifest_sha256": "...",      of this file, with these 64 digits replaced by zeros
//     "format_version": 1,
//     "step": 200, "samples": 6400,
//     "files": [{"name": "model.safetensors", "bytes": 4096, "sha256": "..."}],
//     "extra": {...}                 whatever else the run needs to continue
//   }
//
// It is written last: a checkpoint with a manifest that agrees with itself and its files is whole.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "plimsoll/base/units.h"

namespace plimsoll::checkpoint {

// What a run needs besides its tensors to continue after `step`.
struct CheckpointState {
  int64_t step = 0;
  int64_t samples = 0;  // sequences consumed
  nlohmann::json extra;
};

struct ManifestFile {
  std::string name;
  Bytes bytes;
  std::string sha256;
};

struct Manifest {
  CheckpointState state;
  std::vector<ManifestFile> files;
};

std::string to_text(const Manifest& manifest);

// Raises Exit::data with a sentence whose subject is manifest.json, for any byte that differs from
// what to_text() wrote.
Manifest parse_manifest(const std::string& text);

}  // namespace plimsoll::checkpoint

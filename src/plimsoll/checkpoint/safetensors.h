// The safetensors format (huggingface/safetensors, format description in its README):
//
//   8 bytes   N, little-endian
//   N bytes   JSON: {"name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [begin, end]}, ...,
//             "__metadata__": {"key": "value"}}, padded with spaces so that the data is 8-aligned
//   the rest  the tensors' bytes, row-major, little-endian, without gaps
//
// Files written here hold the tensors in order of falling element size, so every tensor is
// aligned to its element.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "plimsoll/base/files.h"
#include "plimsoll/base/units.h"
#include "plimsoll/numerics/format.h"

namespace plimsoll::checkpoint {

// The element types that are read and written.
enum class Dtype : uint8_t { f64, f32, bf16, i64, i32, u8 };

// As in the file: "F32".
std::string_view name(Dtype dtype);
int64_t bytes_per_element(Dtype dtype);
Dtype dtype_of(Format format);

struct StoredTensor {
  std::string name;
  Dtype dtype = Dtype::f32;
  std::vector<int64_t> shape;  // empty: a scalar
  std::span<const std::byte> bytes;
};

using Metadata = std::map<std::string, std::string>;

// What precedes the data, and in which order the data follows.
struct SafetensorsLayout {
  std::string header;         // the length, the JSON and its padding
  std::vector<size_t> order;  // indices into the tensors given
  Bytes file;                 // header and data
};

// Names must differ and bytes must match shapes (Exit::bug).
SafetensorsLayout lay_out_safetensors(std::span<const StoredTensor> tensors,
                                      const Metadata& metadata);

// A safetensors file, mapped. Opening it checks every statement of the header against the format
// and the file's size, and raises Exit::data saying which one is wrong. The tensors' bytes are
// views into the mapping, possibly unaligned in files that others wrote.
class SafetensorsFile {
 public:
  explicit SafetensorsFile(const std::filesystem::path& path);

  // In the order of their data.
  std::span<const StoredTensor> tensors() const { return tensors_; }
  // Null when there is none of that name.
  const StoredTensor* find(std::string_view name) const;
  const Metadata& metadata() const { return metadata_; }

 private:
  MappedFile file_;
  std::vector<StoredTensor> tensors_;
  std::map<std::string, size_t, std::less<>> index_;
  Metadata metadata_;
};

}  // namespace plimsoll::checkpoint

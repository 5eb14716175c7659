#include "plimsoll/checkpoint/safetensors.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <set>

#include "plimsoll/base/error.h"

namespace plimsoll::checkpoint {

using nlohmann::json;

static_assert(std::endian::native == std::endian::little, "the format is little-endian");

namespace {

constexpr uint64_t max_header_bytes = 100'000'000;  // the limit of the reference implementation
constexpr std::string_view metadata_key = "__metadata__";
constexpr size_t length_bytes = sizeof(uint64_t);
constexpr std::array all_dtypes = {Dtype::f64, Dtype::f32, Dtype::bf16,
                                   Dtype::i64, Dtype::i32, Dtype::u8};

// Bytes of a tensor; empty when they do not fit 64 bits.
std::optional<int64_t> tensor_bytes(Dtype dtype, std::span<const int64_t> shape) {
  int64_t bytes = bytes_per_element(dtype);
  // A zero anywhere makes the tensor empty, whatever the other dimensions would overflow to.
  if (std::ranges::find(shape, 0) != shape.end()) return 0;
  for (const int64_t dimension : shape) {
    if (__builtin_mul_overflow(bytes, dimension, &bytes)) return std::nullopt;
  }
  return bytes;
}

// In quotes, with control characters escaped: names come from files of unknown origin.
std::string in_quotes(std::string_view text) {
  return json(text).dump(-1, ' ', false, json::error_handler_t::replace);
}

// One reader of one file: knows the path that its errors name.
class HeaderReader {
 public:
  HeaderReader(const std::filesystem::path& path, std::span<const std::byte> file)
      : path_(path), file_(file) {}

  void read(std::vector<StoredTensor>& tensors, Metadata& metadata) const {
    const std::string_view text = header_text();
    const auto data = file_.subspan(length_bytes + text.size());
    const json header = parse(text);
    if (!header.is_object()) fail("the header is not a JSON object");
    for (const auto& [key, value] : header.items()) {
      if (key == metadata_key) {
        metadata = read_metadata(value);
      } else {
        tensors.push_back(read_tensor(key, value, data));
      }
    }
    // By position; an empty tensor lies before the one that starts where it is.
    std::ranges::sort(tensors, [](const StoredTensor& a, const StoredTensor& b) {
      return std::pair(a.bytes.data(), a.bytes.size()) < std::pair(b.bytes.data(), b.bytes.size());
    });
    check_coverage(tensors, data);
  }

 private:
  [[noreturn]] void fail(const std::string& problem) const {
    throw Error(Exit::data,
                fmt::format("{} is not a valid safetensors file: {}.", path_.string(), problem),
                "The file is damaged, incomplete or of another kind; get or write it again.");
  }

  std::string_view header_text() const {
    if (file_.size() < length_bytes) {
      fail(fmt::format("it has {} bytes, its header length alone takes 8", file_.size()));
    }
    uint64_t length = 0;
    std::memcpy(&length, file_.data(), length_bytes);
    if (length > max_header_bytes) {
      fail(fmt::format("its header of {} bytes exceeds the limit of {}", length, max_header_bytes));
    }
    if (length > file_.size() - length_bytes) {
      fail(fmt::format("its header of {} bytes goes beyond the end of the file ({} bytes)", length,
                       file_.size()));
    }
    return {reinterpret_cast<const char*>(file_.data()) + length_bytes, length};
  }

  json parse(std::string_view text) const {
    // JSON leaves open which of two equal keys counts, so two readers could see two files.
    std::array<std::set<std::string>, 3> keys;
    const auto watch = [&](int depth, json::parse_event_t event, json& value) {
      using Event = json::parse_event_t;
      // No valid header nests deeper than name, field, number; the check bounds what a bad one
      // costs.
      if ((event == Event::object_start && depth > 1) || (event == Event::array_start && depth > 2))
        fail("its header nests too deeply");
      if (event == Event::object_start) keys[depth + 1].clear();
      if (event == Event::key && !keys[depth].insert(value.get<std::string>()).second)
        fail(fmt::format("its header has {} twice", in_quotes(value.get<std::string>())));
      return true;
    };
    try {
      return json::parse(text.begin(), text.end(), watch);
    } catch (const json::exception& error) {
      fail(fmt::format("its header is not JSON ({})", error.what()));
    }
  }

  Metadata read_metadata(const json& value) const {
    const auto is_text = [](const json& entry) { return entry.is_string(); };
    if (!value.is_object() || !std::all_of(value.begin(), value.end(), is_text)) {
      fail("__metadata__ is not a table of strings");
    }
    return value.get<Metadata>();
  }

  StoredTensor read_tensor(const std::string& key, const json& value,
                           std::span<const std::byte> data) const {
    const auto fail_tensor = [&](const std::string& problem) {
      fail(fmt::format("tensor {} {}", in_quotes(key), problem));
    };
    const auto integers = [&](const char* field) {
      std::vector<int64_t> numbers;
      if (!value.contains(field) || !value[field].is_array()) {
        fail_tensor(fmt::format("has no {}", field));
      }
      for (const json& number : value[field]) {
        if (!number.is_number_unsigned() ||
            number.get<uint64_t>() > std::numeric_limits<int64_t>::max()) {
          fail_tensor(fmt::format("has a {} that is not made of whole numbers", field));
        }
        numbers.push_back(number.get<int64_t>());
      }
      return numbers;
    };

    if (!value.is_object()) fail_tensor("is not described by a JSON object");
    if (!value.contains("dtype") || !value["dtype"].is_string()) fail_tensor("has no dtype");
    StoredTensor tensor{
        key, read_dtype(key, value["dtype"].get<std::string>()), integers("shape"), {}};
    const std::vector<int64_t> offsets = integers("data_offsets");
    if (offsets.size() != 2) fail_tensor("has data_offsets that are not a pair");
    const int64_t begin = offsets[0], end = offsets[1];
    if (begin > end || end > static_cast<int64_t>(data.size())) {
      fail_tensor(fmt::format("has data_offsets [{}, {}], outside the {} bytes of data", begin, end,
                              data.size()));
    }
    const std::optional<int64_t> needed = tensor_bytes(tensor.dtype, tensor.shape);
    if (needed != end - begin) {
      fail_tensor(fmt::format("holds {} bytes, its shape [{}] in {} needs {}", end - begin,
                              fmt::join(tensor.shape, ", "), name(tensor.dtype),
                              needed ? fmt::to_string(*needed) : "more than can be addressed"));
    }
    tensor.bytes = data.subspan(begin, end - begin);
    return tensor;
  }

  Dtype read_dtype(const std::string& tensor, const std::string& text) const {
    for (const Dtype dtype : all_dtypes) {
      if (name(dtype) == text) return dtype;
    }
    throw Error(Exit::data,
                fmt::format("{}: tensor {} has dtype {}, which Plimsoll does not read.",
                            path_.string(), in_quotes(tensor), in_quotes(text)),
                "Convert the tensors to F32 or BF16; F64, I64, I32 and U8 are read too.");
  }

  void check_coverage(std::span<const StoredTensor> tensors,
                      std::span<const std::byte> data) const {
    const std::byte* end = data.data();
    for (const StoredTensor& tensor : tensors) {
      if (tensor.bytes.data() < end) {
        fail(fmt::format("tensor {} overlaps the one before it", in_quotes(tensor.name)));
      }
      if (tensor.bytes.data() > end) {
        fail(fmt::format("{} bytes before tensor {} belong to no tensor", tensor.bytes.data() - end,
                         in_quotes(tensor.name)));
      }
      end = tensor.bytes.data() + tensor.bytes.size();
    }
    if (const auto rest = data.data() + data.size() - end; rest != 0) {
      fail(fmt::format("the last {} bytes belong to no tensor", rest));
    }
  }

  const std::filesystem::path& path_;
  std::span<const std::byte> file_;
};

}  // namespace

std::string_view name(Dtype dtype) {
  switch (dtype) {
    case Dtype::f64:
      return "F64";
    case Dtype::f32:
      return "F32";
    case Dtype::bf16:
      return "BF16";
    case Dtype::i64:
      return "I64";
    case Dtype::i32:
      return "I32";
    case Dtype::u8:
      return "U8";
  }
  return "?";
}

int64_t bytes_per_element(Dtype dtype) {
  switch (dtype) {
    case Dtype::f64:
    case Dtype::i64:
      return 8;
    case Dtype::f32:
    case Dtype::i32:
      return 4;
    case Dtype::bf16:
      return 2;
    case Dtype::u8:
      return 1;
  }
  return 0;
}

Dtype dtype_of(Format format) {
  switch (format) {
    case Format::f32:
      return Dtype::f32;
    case Format::bf16:
      return Dtype::bf16;
    default:
      check(false, fmt::format("{} is not stored in safetensors files here", name(format)));
      [[fallthrough]];
    case Format::i32:
      return Dtype::i32;
  }
  check(false, "a number format has no safetensors dtype");
  return Dtype::u8;
}

SafetensorsLayout lay_out_safetensors(std::span<const StoredTensor> tensors,
                                      const Metadata& metadata) {
  SafetensorsLayout layout;
  layout.order.resize(tensors.size());
  std::iota(layout.order.begin(), layout.order.end(), size_t{0});
  std::ranges::stable_sort(layout.order, std::greater{},
                           [&](size_t i) { return bytes_per_element(tensors[i].dtype); });

  json header = json::object();
  if (!metadata.empty()) header[metadata_key] = metadata;
  int64_t offset = 0;
  for (const size_t i : layout.order) {
    const StoredTensor& tensor = tensors[i];
    const auto bytes = static_cast<int64_t>(tensor.bytes.size());
    check(tensor.name != metadata_key && !header.contains(tensor.name),
          fmt::format("tensor name {} is taken", in_quotes(tensor.name)));
    check(tensor_bytes(tensor.dtype, tensor.shape) == bytes,
          fmt::format("tensor {} has {} bytes, which its shape [{}] does not need", tensor.name,
                      bytes, fmt::join(tensor.shape, ", ")));
    header[tensor.name] = {{"dtype", name(tensor.dtype)},
                           {"shape", tensor.shape},
                           {"data_offsets", {offset, offset + bytes}}};
    offset += bytes;
  }

  const std::string text = header.dump();
  const uint64_t length = (text.size() + 7) / 8 * 8;
  check(length <= max_header_bytes, "a safetensors header exceeds 100 MB");
  layout.header.assign(length_bytes + length, ' ');
  std::memcpy(layout.header.data(), &length, length_bytes);
  text.copy(layout.header.data() + length_bytes, text.size());
  layout.file = {static_cast<int64_t>(layout.header.size()) + offset};
  return layout;
}

SafetensorsFile::SafetensorsFile(const std::filesystem::path& path) : file_(path) {
  HeaderReader(path, file_.bytes()).read(tensors_, metadata_);
  for (size_t i = 0; i < tensors_.size(); ++i) index_.emplace(tensors_[i].name, i);
}

const StoredTensor* SafetensorsFile::find(std::string_view name) const {
  const auto found = index_.find(name);
  return found == index_.end() ? nullptr : &tensors_[found->second];
}

}  // namespace plimsoll::checkpoint

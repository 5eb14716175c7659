#include "plimsoll/checkpoint/safetensors.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "plimsoll/base/error.h"
#include "plimsoll/base/files.h"
#include "tests/checkpoint/fixture.h"

namespace plimsoll::checkpoint {
namespace {

void write_safetensors(const std::filesystem::path& path, std::span<const StoredTensor> tensors,
                       const Metadata& metadata) {
  const SafetensorsLayout layout = lay_out_safetensors(tensors, metadata);
  AtomicFile file(path);
  file.write(layout.header);
  for (const size_t i : layout.order) file.write(tensors[i].bytes);
  file.commit();
}

namespace fs = std::filesystem;

constexpr std::array all_dtypes = {Dtype::u8,  Dtype::bf16, Dtype::f32,
                                   Dtype::i32, Dtype::f64,  Dtype::i64};

// A file that goes with the object.
struct ScratchFile {
  fs::path path = scratch_folder("safetensors");
  ~ScratchFile() { remove_tree(path); }
};

// A file made of any header and `data_bytes` of data; `length` overrides the header's length.
std::string raw_file(const std::string& header, size_t data_bytes,
                     std::optional<uint64_t> length = {}) {
  const uint64_t stated = length.value_or(header.size());
  std::string file(8, '\0');
  std::memcpy(file.data(), &stated, 8);
  return file + header + std::string(data_bytes, 'd');
}

// What opening the file says; "opens" when it does.
std::string error_of(const std::string& file) {
  const ScratchFile scratch;
  std::ofstream(scratch.path, std::ios::binary) << file;
  try {
    const SafetensorsFile opened(scratch.path);
    return "opens";
  } catch (const Error& error) {
    if (error.code() != Exit::data) return "wrong exit code";
    if (error.advice().empty()) return "no advice";
    return error.what();
  }
}

void expect_error(const std::string& file, const std::string& part) {
  const std::string error = error_of(file);
  EXPECT_NE(error.find(part), std::string::npos) << "wanted: " << part << "\ngot: " << error;
}

std::string one_tensor(const std::string& dtype, const std::string& shape,
                       const std::string& offsets) {
  return fmt::format(R"({{"w":{{"dtype":{},"shape":{},"data_offsets":{}}}}})", dtype, shape,
                     offsets);
}

// The layout of the format's description, byte for byte.
TEST(Safetensors, WritesTheDocumentedBytes) {
  const ScratchFile scratch;
  const std::array<float, 2> values = {1.0f, -2.0f};
  write_safetensors(
      scratch.path,
      std::array{StoredTensor{"w", Dtype::f32, {2}, std::as_bytes(std::span(values))}}, {});
  std::string header = R"({"w":{"data_offsets":[0,8],"dtype":"F32","shape":[2]}})";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  std::string expected = raw_file(header, 0);
  expected.append(reinterpret_cast<const char*>(values.data()), sizeof(values));
  EXPECT_EQ(read_file(scratch.path), expected);
}

RC_GTEST_PROP(Safetensors, ReadsBackWhatWasWritten, ()) {
  struct Drawn {
    std::string name;
    Dtype dtype;
    std::vector<int64_t> shape;
    std::vector<uint8_t> bytes;
  };
  std::vector<Drawn> drawn;
  std::vector<StoredTensor> tensors;
  const int count = *rc::gen::inRange(0, 6);
  for (int i = 0; i < count; ++i) {
    Drawn& tensor = drawn.emplace_back();
    tensor.name = fmt::format("layers.{}.\"w\"\n", i);
    tensor.dtype = *rc::gen::elementOf(all_dtypes);
    const auto rank = *rc::gen::inRange<size_t>(0, 4);
    tensor.shape = *rc::gen::container<std::vector<int64_t>>(rank, rc::gen::inRange(0, 5));
    int64_t bytes = bytes_per_element(tensor.dtype);
    for (const int64_t dimension : tensor.shape) bytes *= dimension;
    tensor.bytes = *rc::gen::container<std::vector<uint8_t>>(static_cast<size_t>(bytes),
                                                             rc::gen::arbitrary<uint8_t>());
  }
  for (const Drawn& tensor : drawn) {
    tensors.push_back(
        {tensor.name, tensor.dtype, tensor.shape, std::as_bytes(std::span(tensor.bytes))});
  }
  const Metadata metadata = {{"format", "pt"}, {"made by", "\"test\""}};

  const ScratchFile scratch;
  write_safetensors(scratch.path, tensors, metadata);
  const SafetensorsFile file(scratch.path);
  RC_ASSERT(file.metadata() == metadata);
  RC_ASSERT(file.tensors().size() == tensors.size());
  for (const StoredTensor& tensor : tensors) {
    const StoredTensor* found = file.find(tensor.name);
    RC_ASSERT(found != nullptr);
    RC_ASSERT(found->dtype == tensor.dtype);
    RC_ASSERT(found->shape == tensor.shape);
    RC_ASSERT(std::ranges::equal(found->bytes, tensor.bytes));
    RC_ASSERT(reinterpret_cast<uintptr_t>(found->bytes.data()) %
                  static_cast<uintptr_t>(bytes_per_element(tensor.dtype)) ==
              0u);
  }
  RC_ASSERT(file.find("absent") == nullptr);
}

TEST(Safetensors, RefusesAHeaderThatTheFileCannotHold) {
  expect_error("", "its header length alone takes 8");
  expect_error("1234567", "has 7 bytes");
  expect_error(raw_file("{}", 0, 3), "goes beyond the end of the file");
  expect_error(raw_file("{}", 0, 100'000'001), "exceeds the limit");
  expect_error(raw_file("{}", 0, ~uint64_t{0}), "exceeds the limit");
}

TEST(Safetensors, RefusesAHeaderThatIsNotTheFormatsJson) {
  expect_error(raw_file("", 0), "not JSON");
  expect_error(raw_file("{\"w\":", 0), "not JSON");
  expect_error(raw_file("{} {}", 0), "not JSON");
  expect_error(raw_file("\"\xff\"", 0), "not JSON");
  expect_error(raw_file("[]", 0), "not a JSON object");
  expect_error(raw_file("7", 0), "not a JSON object");
  expect_error(raw_file(R"({"w":[]})", 0), "tensor \"w\" is not described by a JSON object");
  expect_error(raw_file(R"({"__metadata__":{"a":1}})", 0), "not a table of strings");
  expect_error(raw_file(R"({"__metadata__":"a"})", 0), "not a table of strings");
  expect_error(raw_file(R"({"w":{"shape":[],"data_offsets":[0,4]}})", 4), "no dtype");
  expect_error(raw_file(R"({"w":{"dtype":"F32","data_offsets":[0,4]}})", 4), "no shape");
  expect_error(raw_file(R"({"w":{"dtype":"F32","shape":[]}})", 4), "no data_offsets");
}

TEST(Safetensors, RefusesANameOrFieldGivenTwice) {
  const std::string w = R"("w":{"dtype":"U8","shape":[1],"data_offsets":[0,1]})";
  expect_error(raw_file("{" + w + "," + w + "}", 1), "has \"w\" twice");
  expect_error(raw_file(R"({"w":{"dtype":"U8","dtype":"I8","shape":[1],"data_offsets":[0,1]}})", 1),
               "has \"dtype\" twice");
}

TEST(Safetensors, RefusesDeepNestingWithoutFollowingIt) {
  std::string objects, arrays(2'000'000, '[');
  for (int i = 0; i < 200'000; ++i) objects += "{\"a\":";
  expect_error(raw_file(objects, 0), "nests too deeply");
  expect_error(raw_file(arrays, 0), "nests too deeply");
}

TEST(Safetensors, RefusesShapesAndOffsetsThatDisagree) {
  const auto file = [](const char* dtype, const char* shape, const char* offsets, size_t bytes) {
    return raw_file(one_tensor(dtype, shape, offsets), bytes);
  };
  EXPECT_EQ(error_of(file("\"F32\"", "[2]", "[0,8]", 8)), "opens");
  EXPECT_EQ(error_of(file("\"F32\"", "[]", "[0,4]", 4)), "opens");
  EXPECT_EQ(error_of(file("\"F32\"", "[4611686018427387904,4,0]", "[0,0]", 0)), "opens");
  expect_error(file("\"F32\"", "[2]", "[0,7]", 7), "holds 7 bytes, its shape [2] in F32 needs 8");
  expect_error(file("\"F32\"", "[4611686018427387904,4]", "[0,0]", 0), "more than can be");
  expect_error(file("\"F32\"", "[-2]", "[0,8]", 8), "shape that is not made of whole numbers");
  expect_error(file("\"F32\"", "[2.0]", "[0,8]", 8), "shape that is not made of whole numbers");
  expect_error(file("\"F32\"", "[18446744073709551615]", "[0,8]", 8), "not made of whole numbers");
  expect_error(file("\"F32\"", "[2]", "[0,8,8]", 8), "not a pair");
  expect_error(file("\"F32\"", "[2]", "[8,0]", 8), "outside the 8 bytes of data");
  expect_error(file("\"F32\"", "[2]", "[0,8]", 7), "outside the 7 bytes of data");
  expect_error(file("\"F32\"", "[2]", "[4,12]", 8), "outside the 8 bytes of data");
  expect_error(file("\"F32\"", "[2]", "[0,8]", 9), "the last 1 bytes belong to no tensor");
  expect_error(file("\"F32\"", "[2]", "[1,9]", 9), "1 bytes before tensor \"w\"");
  expect_error(raw_file("{}", 1), "the last 1 bytes belong to no tensor");
}

TEST(Safetensors, RefusesOverlapsAndGaps) {
  const auto two = [](int begin, int end, size_t bytes) {
    return raw_file(fmt::format(R"({{"a":{{"dtype":"U8","shape":[4],"data_offsets":[0,4]}},)"
                                R"("b":{{"dtype":"U8","shape":[{}],"data_offsets":[{},{}]}}}})",
                                end - begin, begin, end),
                    bytes);
  };
  EXPECT_EQ(error_of(two(4, 6, 6)), "opens");
  EXPECT_EQ(error_of(two(0, 0, 4)), "opens");
  EXPECT_EQ(error_of(two(4, 4, 4)), "opens");
  expect_error(two(3, 6, 6), "tensor \"b\" overlaps the one before it");
  expect_error(two(0, 4, 4), "overlaps the one before it");
  expect_error(two(2, 2, 4), "tensor \"b\" overlaps the one before it");
  expect_error(two(5, 6, 6), "1 bytes before tensor \"b\" belong to no tensor");
}

TEST(Safetensors, NamesADtypeThatItDoesNotRead) {
  expect_error(raw_file(one_tensor("\"F16\"", "[2]", "[0,4]"), 4),
               "tensor \"w\" has dtype \"F16\", which Plimsoll does not read");
}

TEST(Safetensors, EscapesNamesInErrors) {
  expect_error(raw_file("{\"\\u001b[2J\":{}}", 0), "tensor \"\\u001b[2J\" has no dtype");
}

// Whatever the bytes are, opening the file ends, and ends in tensors or in Exit::data.
RC_GTEST_PROP(Safetensors, SurvivesAnyDamageToTheHeader, ()) {
  const std::string valid = raw_file(R"({"__metadata__":{"format":"pt"},)"
                                     R"("a":{"dtype":"BF16","shape":[2,3],"data_offsets":[0,12]},)"
                                     R"("b":{"dtype":"I64","shape":[1],"data_offsets":[12,20]}})",
                                     20);
  std::string damaged = valid;
  const int changes = *rc::gen::inRange(1, 4);
  for (int i = 0; i < changes; ++i) {
    damaged[*rc::gen::inRange<size_t>(0, damaged.size() - 20)] = *rc::gen::arbitrary<char>();
  }
  if (*rc::gen::arbitrary<bool>()) damaged.resize(*rc::gen::inRange<size_t>(0, damaged.size()));
  const std::string error = error_of(damaged);
  RC_ASSERT(error != "wrong exit code");
  RC_ASSERT(error != "no advice");
}

TEST(Safetensors, WriterRefusesTensorsThatContradictThemselves) {
  const std::array<std::byte, 8> data{};
  const auto code_of = [](std::vector<StoredTensor> tensors) {
    try {
      lay_out_safetensors(tensors, {});
    } catch (const Error& error) {
      return error.code();
    }
    return Exit::done;
  };
  EXPECT_EQ(code_of({{"a", Dtype::f32, {2}, data}}), Exit::done);
  EXPECT_EQ(code_of({{"a", Dtype::f32, {3}, data}}), Exit::bug);
  EXPECT_EQ(code_of({{"a", Dtype::f32, {2}, data}, {"a", Dtype::f32, {2}, data}}), Exit::bug);
  EXPECT_EQ(code_of({{"__metadata__", Dtype::f32, {2}, data}}), Exit::bug);
}

}  // namespace
}  // namespace plimsoll::checkpoint

// What the tests of the data room share: a folder that removes itself, files of every format, and
// errors as values.
#pragma once

#include <zlib.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "plimsoll/base/error.h"

namespace plimsoll::data {

class Folder {
 public:
  Folder() {
    std::string pattern =
        (std::filesystem::temp_directory_path() / "plimsoll-data-XXXXXX").string();
    check(mkdtemp(pattern.data()) != nullptr, "a temporary folder can be made");
    path_ = pattern;
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }

  std::filesystem::path write(const std::string& name, const std::string& bytes) const {
    std::ofstream(path_ / name, std::ios::binary) << bytes;
    return path_ / name;
  }

  std::filesystem::path write_gzip(const std::string& name, const std::string& bytes) const {
    const gzFile file = gzopen((path_ / name).c_str(), "wb");
    if (!bytes.empty()) gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size()));
    gzclose_w(file);
    return path_ / name;
  }

 private:
  std::filesystem::path path_;
};

// The numbers as they lie in a file.
template <class T>
std::string bytes_of(const std::vector<T>& numbers) {
  return std::string(reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(T));
}

inline std::string llmc_header(int32_t magic, int32_t version, int32_t count) {
  std::vector<int32_t> header(256);
  header[0] = magic;
  header[1] = version;
  header[2] = count;
  return bytes_of(header);
}

// A plimsoll token file, as a tool would write it: ids of 16 bits where the vocabulary allows.
inline std::string plimsoll_file(const std::vector<int32_t>& ids, int64_t vocabulary) {
  const bool narrow = vocabulary <= int64_t{1} << 16;
  return "PLIMTOK\n" + bytes_of(std::vector<uint32_t>{1, narrow ? 16u : 32u}) +
         bytes_of(std::vector<int64_t>{static_cast<int64_t>(ids.size()), vocabulary}) +
         (narrow ? bytes_of(std::vector<uint16_t>(ids.begin(), ids.end())) : bytes_of(ids));
}

inline std::string slurp(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// What `action` raised, to compare and to print: "3: sentence\n  advice"; "no error" when nothing.
template <class Action>
std::string error_of(Action action) {
  try {
    action();
  } catch (const Error& error) {
    return fmt::format("{}: {}", static_cast<int>(error.code()), error.message());
  }
  return "no error";
}

}  // namespace plimsoll::data

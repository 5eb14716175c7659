// SHA-256 (FIPS 180-4), streamed, as lower-case hexadecimal text.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "plimsoll/base/units.h"

namespace plimsoll {

class Sha256 {
 public:
  Sha256();
  Sha256(Sha256&&) noexcept;
  Sha256& operator=(Sha256&&) noexcept;
  ~Sha256();

  void update(std::span<const std::byte> bytes);
  void update(std::string_view text) { update(std::as_bytes(std::span(text))); }

  // The 64 digits of everything so far. Ends the stream: call it once.
  std::string hex();

 private:
  struct Context;
  std::unique_ptr<Context> context_;
};

std::string sha256_hex(std::span<const std::byte> bytes);
std::string sha256_hex(std::string_view text);

struct FileHash {
  Bytes bytes;
  std::string sha256;
};

// Reads the file once, in small chunks. Raises FileError.
FileHash hash_file(const std::filesystem::path& path);

}  // namespace plimsoll

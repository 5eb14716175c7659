#include "plimsoll/base/hash.h"

#include <openssl/evp.h>

#include <array>

#include "plimsoll/base/error.h"
#include "plimsoll/base/files.h"

namespace plimsoll {

struct Sha256::Context {
  EVP_MD_CTX* handle = EVP_MD_CTX_new();
  ~Context() { EVP_MD_CTX_free(handle); }
};

Sha256::Sha256() : context_(std::make_unique<Context>()) {
  check(context_->handle && EVP_DigestInit_ex(context_->handle, EVP_sha256(), nullptr) == 1,
        "OpenSSL offers no SHA-256");
}

Sha256::Sha256(Sha256&&) noexcept = default;
Sha256& Sha256::operator=(Sha256&&) noexcept = default;
Sha256::~Sha256() = default;

void Sha256::update(std::span<const std::byte> bytes) {
  check(EVP_DigestUpdate(context_->handle, bytes.data(), bytes.size()) == 1, "SHA-256 failed");
}

std::string Sha256::hex() {
  std::array<unsigned char, 32> digest;
  check(EVP_DigestFinal_ex(context_->handle, digest.data(), nullptr) == 1, "SHA-256 failed");
  std::string text;
  for (const unsigned char byte : digest) text += fmt::format("{:02x}", byte);
  return text;
}

std::string sha256_hex(std::span<const std::byte> bytes) {
  Sha256 hash;
  hash.update(bytes);
  return hash.hex();
}

std::string sha256_hex(std::string_view text) { return sha256_hex(std::as_bytes(std::span(text))); }

FileHash hash_file(const std::filesystem::path& path) {
  Sha256 hash;
  const Bytes bytes =
      read_in_chunks(path, [&](std::span<const std::byte> chunk) { hash.update(chunk); });
  return {bytes, hash.hex()};
}

}  // namespace plimsoll

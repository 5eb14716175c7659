// The manifest of a checkpoint. 64 zeros stand for its hash, as when it is written: what is behind
// the check of the hash is reached too.
#include "plimsoll/checkpoint/manifest.h"

#include "plimsoll/base/hash.h"
#include "tests/fuzz/target.h"

using namespace plimsoll;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string text(text_of(data, size));
  const std::string no_hash(64, '0');
  if (const size_t at = text.find(no_hash); at != std::string::npos) {
    text.replace(at, no_hash.size(), sha256_hex(text));
  }
  expect_value_or_error([&] {
    const checkpoint::Manifest manifest = checkpoint::parse_manifest(text);
    const checkpoint::Manifest again = checkpoint::parse_manifest(to_text(manifest));
    require(again.state.step == manifest.state.step && again.state.extra == manifest.state.extra,
            "a manifest does not read back as it was written");
  });
  return 0;
}

#include "plimsoll/data/utf8.h"

#include <cstdint>

namespace plimsoll::data {

namespace {

constexpr std::string_view kReplacement = "\xef\xbf\xbd";

// Bytes of the character that `lead` begins; 0 when it begins none.
size_t length_of(uint8_t lead) {
  if (lead < 0x80) return 1;
  if (lead >= 0xc2 && lead <= 0xdf) return 2;
  if (lead >= 0xe0 && lead <= 0xef) return 3;
  if (lead >= 0xf0 && lead <= 0xf4) return 4;
  return 0;
}

// Whether `next` may follow `begun`. The second byte's range depends on the first: overlong forms,
// surrogates and what lies beyond U+10FFFF are none.
bool continues(std::string_view begun, uint8_t next) {
  const auto lead = static_cast<uint8_t>(begun.front());
  uint8_t least = 0x80, most = 0xbf;
  if (begun.size() == 1) {
    if (lead == 0xe0) least = 0xa0;
    if (lead == 0xed) most = 0x9f;
    if (lead == 0xf0) least = 0x90;
    if (lead == 0xf4) most = 0x8f;
  }
  return next >= least && next <= most;
}

}  // namespace

std::string Utf8Stream::push(std::string_view bytes) {
  std::string whole;
  for (const char byte : bytes) {
    const auto code = static_cast<uint8_t>(byte);
    if (!begun_.empty() && !continues(begun_, code)) {
      whole += kReplacement;
      begun_.clear();
    }
    if (begun_.empty() && length_of(code) == 0) {
      whole += kReplacement;
      continue;
    }
    begun_ += byte;
    if (begun_.size() == length_of(static_cast<uint8_t>(begun_.front()))) {
      whole += begun_;
      begun_.clear();
    }
  }
  return whole;
}

std::string Utf8Stream::finish() {
  const bool incomplete = !begun_.empty();
  begun_.clear();
  return incomplete ? std::string(kReplacement) : std::string();
}

}  // namespace plimsoll::data

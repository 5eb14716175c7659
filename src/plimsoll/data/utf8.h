// Bytes that come one after the other, as UTF-8 that any reader takes.
#pragma once

#include <string>
#include <string_view>

namespace plimsoll::data {

// Passes whole characters on as they are complete; what can be none (Unicode 15.0, table 3-7)
// becomes U+FFFD, one for each longest beginning of a character.
class Utf8Stream {
 public:
  // The characters that `bytes` complete.
  std::string push(std::string_view bytes);
  // At the end: U+FFFD when a character is incomplete, else nothing.
  std::string finish();

 private:
  std::string begun_;  // a beginning of a character, 0 to 3 bytes
};

}  // namespace plimsoll::data

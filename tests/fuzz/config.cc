// A configuration file, then settings, with NUL between them.
#include "plimsoll/config/config.h"
#include "tests/fuzz/target.h"

using namespace plimsoll;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view rest = text_of(data, size);
  const std::string_view file_text = rest.substr(0, rest.find('\0'));
  rest.remove_prefix(std::min(rest.size(), file_text.size() + 1));
  std::vector<std::string> settings;
  while (!rest.empty()) {
    settings.emplace_back(rest.substr(0, rest.find('\0')));
    rest.remove_prefix(std::min(rest.size(), settings.back().size() + 1));
  }
  expect_value_or_error([&] {
    const MemoryFile file(file_text);
    const std::string text =
        config::to_toml(config::resolve(config::read_config(file.path(), settings)));
    const MemoryFile written(text);
    require(config::to_toml(config::resolve(config::read_config(written.path(), {}))) == text,
            "run.toml does not read back as it was written");
  });
  return 0;
}

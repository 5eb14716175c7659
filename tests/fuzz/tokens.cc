// A corpus: a byte that chooses the format, one the vocabulary, then the file.
#include <algorithm>
#include <array>
#include <vector>

#include "plimsoll/data/loader.h"
#include "tests/fuzz/target.h"

using namespace plimsoll;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  constexpr std::array formats = {"auto", "text", "llmc", "nanogpt", "plimsoll"};
  constexpr std::array<int64_t, 5> vocabularies = {0, 100, 264, 50257, int64_t{1} << 24};
  const std::string_view bytes = text_of(data, size).substr(2);
  expect_value_or_error([&] {
    const MemoryFile file(bytes);
    const data::Dataset dataset =
        data::open_dataset({.train = file.path(),
                            .validation_fraction = 0.3,
                            .format = formats[data[0] % formats.size()],
                            .sequence_length = 3,
                            .vocabulary = vocabularies[data[1] % vocabularies.size()],
                            .most = {1 << 20}});
    std::vector<int32_t> tokens(3), targets(3);
    data::Loader loader(dataset, 1);
    for (int64_t i = std::min<int64_t>(loader.samples_per_epoch(), 1000); i > 0; --i) {
      loader.next(tokens, targets);
      for (const int32_t id : targets) {
        require(id >= 0 && id < dataset.vocabulary, "an id outside the vocabulary was read");
      }
    }
  });
  return 0;
}

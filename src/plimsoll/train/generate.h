// Continues a text with a trained model, so that a person can see what it learned.
#pragma once

#include <cstdint>
#include <filesystem>
#include <ostream>
#include <span>
#include <string>

namespace plimsoll::train {

struct GenerateOptions {
  std::string prompt;
  int64_t tokens = 400;
  double temperature = 0.8;
  int64_t top_k = 40;
  uint64_t seed = 1;
  int threads = 0;
};

// Writes the prompt and its continuation to `out` as it goes, as valid UTF-8. Computes in f32 from
// the master weights of the newest whole checkpoint; what is passed over is said in `notes`. The
// context is the run's sequence length: when it is full, the older half is dropped.
// Raises Exit::usage for an empty prompt, for options out of range, and for a run whose tokens are
// not bytes; Exit::data for a run without a checkpoint and for weights that are not finite;
// Exit::does_not_fit when there is less memory than it takes.
void generate(const std::filesystem::path& run, const GenerateOptions& options, std::ostream& out,
              std::ostream& notes);

// Index drawn from softmax(logits / temperature) over the `top_k` largest (0: all), by `uniform` in
// (0, 1). Temperature 0 gives the first of the largest.
int32_t draw(std::span<const float> logits, double temperature, int64_t top_k, double uniform);

}  // namespace plimsoll::train

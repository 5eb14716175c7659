// tests/golden/numerics_codes.txt: what the bit-exact reference says; numerics_codes.py there
// writes and describes it.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cstdint>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "plimsoll/numerics/bf16.h"
#include "plimsoll/numerics/stochastic.h"

namespace plimsoll {

// Codes of floats >= 0: `code` from the float with `bits` on, up to the next step.
struct CodeStep {
  uint32_t bits;
  uint8_t code;
};
struct CodeSteps {
  uint8_t nan;
  std::vector<CodeStep> steps;
};

struct GoldenStream {
  StreamKey key;
  uint64_t group;
  std::string bytes;  // hexadecimal
};

struct GoldenCodes {
  std::map<std::string, CodeSteps> codes;
  std::map<std::string, std::vector<uint32_t>> values;
  std::vector<GoldenStream> streams;
  std::vector<std::array<uint32_t, 7>> blocks;
};

inline GoldenCodes read_golden_codes() {
  GoldenCodes golden;
  std::ifstream file(PLIMSOLL_TEST_DATA "/numerics_codes.txt");
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string kind, name, word;
    words >> kind;
    if (kind == "codes") {
      words >> name >> word;
      CodeSteps& codes = golden.codes[name];
      codes.nan = static_cast<uint8_t>(std::stoul(word, nullptr, 16));
      while (words >> word) {
        codes.steps.push_back(
            {static_cast<uint32_t>(std::stoul(word, nullptr, 16)),
             static_cast<uint8_t>(std::stoul(word.substr(word.find(':') + 1), nullptr, 16))});
      }
    } else if (kind == "values") {
      words >> name;
      while (words >> word) {
        golden.values[name].push_back(static_cast<uint32_t>(std::stoul(word, nullptr, 16)));
      }
    } else if (kind == "stream") {
      GoldenStream& stream = golden.streams.emplace_back();
      words >> stream.key.seed >> stream.key.step >> stream.key.micro_step >> stream.key.layer >>
          stream.key.tensor >> stream.group >> stream.bytes;
    } else if (kind == "block") {
      for (uint32_t& hash : golden.blocks.emplace_back()) words >> std::hex >> hash;
    }
  }
  return golden;
}

inline const GoldenCodes& golden_codes() {
  static const GoldenCodes golden = read_golden_codes();
  return golden;
}

// Expects `code_of` to give the golden codes for every bf16 value and for the floats around every
// step. `sign_bit` is what a negative sign adds to a code.
template <typename CodeOf>
void expect_golden_codes(const std::string& name, uint8_t sign_bit, CodeOf code_of) {
  const CodeSteps& golden = golden_codes().codes.at(name);
  ASSERT_FALSE(golden.steps.empty());
  size_t step = 0;
  for (uint32_t magnitude = 0; magnitude <= 0x7fff; ++magnitude) {
    const uint32_t bits = magnitude << 16;
    if (step + 1 < golden.steps.size() && golden.steps[step + 1].bits <= bits) ++step;
    const bool nan = magnitude > 0x7f80;
    const int code = nan ? golden.nan : golden.steps[step].code;
    ASSERT_EQ(code_of(std::bit_cast<float>(bits)), code) << name << " of bf16 " << magnitude;
    ASSERT_EQ(code_of(std::bit_cast<float>(bits | 0x80000000u)), nan ? code : code | sign_bit)
        << name << " of negative bf16 " << magnitude;
  }
  for (size_t i = 1; i < golden.steps.size(); ++i) {
    const auto [bits, code] = golden.steps[i];
    ASSERT_EQ(code_of(std::bit_cast<float>(bits - 1)), golden.steps[i - 1].code) << name << bits;
    ASSERT_EQ(code_of(std::bit_cast<float>(bits)), code) << name << " of float bits " << bits;
  }
}

}  // namespace plimsoll

#include "plimsoll/model/rope.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <sstream>

#include "plimsoll/base/error.h"
#include "plimsoll/base/names.h"

namespace plimsoll::model {
namespace {

struct Case {
  std::string title;
  RopeConfig rope;
  int64_t head_dim = 0;
  double amplitude = 0;
  std::vector<double> frequencies;
};

// "case llama3 theta 500000.0 head_dim 128 factor 8.0 ..." under Hugging Face's names.
Case settings_of(const std::string& line) {
  Case one{.title = line};
  std::istringstream words(line);
  std::string word;
  words >> word >> word;
  for (const RopeScaling scaling : values_of<RopeScaling>()) {
    if (name(scaling) == word) one.rope.scaling = scaling;
  }
  double value = 0;
  while (words >> word >> value) {
    if (word == "theta") one.rope.theta = value;
    if (word == "head_dim") one.head_dim = static_cast<int64_t>(value);
    if (word == "factor") one.rope.factor = value;
    if (word == "low_freq_factor") one.rope.low_freq_factor = value;
    if (word == "high_freq_factor") one.rope.high_freq_factor = value;
    if (word == "beta_fast") one.rope.beta_fast = value;
    if (word == "beta_slow") one.rope.beta_slow = value;
    if (word == "attention_factor") one.rope.attention_factor = value;
    if (word == "original_max_position_embeddings") {
      one.rope.original_positions = static_cast<int64_t>(value);
    }
  }
  return one;
}

std::vector<Case> golden() {
  std::ifstream file(PLIMSOLL_TEST_DATA "/rope_frequencies.txt");
  std::vector<Case> cases;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string first;
    words >> first;
    if (first == "case") cases.push_back(settings_of(line));
    if (first == "amplitude") words >> cases.back().amplitude;
    if (first != "frequencies") continue;
    for (double value; words >> value;) cases.back().frequencies.push_back(value);
  }
  return cases;
}

TEST(Rope, ScalesAsHuggingFaceDoes) {
  const std::vector<Case> cases = golden();
  ASSERT_GE(cases.size(), 7u);
  for (const Case& one : cases) {
    check_rope(one.rope);
    const RopeFrequencies got = rope_frequencies(one.rope, one.head_dim);
    EXPECT_NEAR(got.amplitude, one.amplitude, 1e-12) << one.title;
    ASSERT_EQ(got.radians.size(), one.frequencies.size()) << one.title;
    for (size_t i = 0; i < got.radians.size(); ++i) {
      EXPECT_NEAR(got.radians[i] / one.frequencies[i], 1, 1e-12) << one.title << ", pair " << i;
    }
  }
}

TEST(Rope, WithoutScalingIsTheGeometricSeries) {
  const RopeFrequencies got = rope_frequencies({.theta = 1e4}, 8);
  EXPECT_EQ(got.amplitude, 1);
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_DOUBLE_EQ(got.radians[i], std::pow(1e4, -static_cast<double>(i) / 4));
  }
}

void expect_refused(const RopeConfig& rope, const std::string& message) {
  try {
    check_rope(rope);
    ADD_FAILURE() << "accepted; expected: " << message;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Exit::usage);
    EXPECT_STREQ(error.what(), message.c_str());
  }
}

TEST(Rope, RefusesSettingsThatDoNotGoTogether) {
  expect_refused({.factor = 8},
                 "model.rope_factor = 8 has no effect with model.rope_scaling = \"default\".");
  expect_refused({.scaling = RopeScaling::linear, .factor = 0.5},
                 "model.rope_factor = 0.5 is below 1.");
  expect_refused({.scaling = RopeScaling::llama3, .factor = 8},
                 "model.rope_scaling = \"llama3\" needs model.rope_original_positions.");
  expect_refused({.scaling = RopeScaling::llama3,
                  .factor = 8,
                  .original_positions = 8192,
                  .low_freq_factor = 4},
                 "model.rope_low_freq_factor = 4 is not below model.rope_high_freq_factor = 4.");
  expect_refused(
      {.scaling = RopeScaling::yarn, .factor = 8, .original_positions = 8192, .beta_slow = 40},
      "model.rope_beta_slow = 40 is not below model.rope_beta_fast = 32.");
}

}  // namespace
}  // namespace plimsoll::model

// `plimsoll compare`: the same model, data order and initial weights under several recipes.
#pragma once

#include <filesystem>
#include <ostream>
#include <string>
#include <vector>

#include "plimsoll/base/error.h"
#include "plimsoll/config/config.h"

namespace plimsoll::compare {

struct CompareOptions {
  std::vector<std::string> recipes;  // names of recipe.name, without "none"
  int64_t seeds = 4;
  std::filesystem::path directory;
};

// Trains `base` in bf16, in bf16 from weights one ulp away (the noise floor) and under each recipe,
// once for each of train.seed, train.seed + 1, ...; every run in a folder of its own below
// `directory`. Runs that are there and finished are not repeated, one that was interrupted goes on:
// the same command continues after a kill. Writes comparison.json, comparison.html and
// comparison.svg and prints the comparison. Returns Exit::interrupted after SIGTERM or SIGINT.
// Raises Exit::usage for an unknown recipe, or when `directory` holds runs of another
// configuration.
Exit run_comparison(const config::Config& base, const CompareOptions& options, std::ostream& out);

}  // namespace plimsoll::compare

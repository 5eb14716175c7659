// The largest micro-batch, or the longest sequence, that a number of bytes allows.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "plimsoll/planner/plan_run.h"

namespace plimsoll::planner {

enum class FitGoal : uint8_t {
  micro_batch,  // largest micro-batch at the config's sequence length
  sequence,     // longest sequence at the config's micro-batch
  both,         // longest sequence at micro-batch 1, then the largest micro-batch of every length
};

// One configuration that fits, with the checkpointing that is predicted to be fastest for it.
struct FitRow {
  int64_t micro_batch = 0, sequence_length = 0, ffn_chunk = 0;
  Bytes arena;
  double recompute_share = 0;    // FLOPs computed again, as a share of those of the step without
  double tokens_per_second = 0;  // predicted
};

struct Fit {
  Bytes limit;
  std::vector<FitRow> rows;           // the answer first, then smaller ones to compare it with
  std::vector<std::string> settings;  // of the answer, "step.micro_batch=12"
  std::string rates;                  // where the predicted times come from
};

// Every candidate is built and sized; checkpointing is "budget:`limit`". Where the config
// accumulates gradients the micro-batch stays a divisor of step.global_batch, else the global batch
// is the micro-batch. A longer sequence may be given step.ffn_chunk. Lengths are multiples of 128
// tokens, or of 16 below 1024, and at most model.max_positions where positions are learned.
// Raises Exit::does_not_fit when not even the smallest candidate fits.
Fit fit(const Request& request, Bytes limit, FitGoal goal, const Target& target);

std::string fit_text(const Fit&);
nlohmann::json fit_json(const Fit&);

}  // namespace plimsoll::planner

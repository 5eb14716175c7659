// What a run leaves for people and tools to read: summary.json and report.html.
#pragma once

#include <nlohmann/json.hpp>

#include "plimsoll/runtime/backend.h"
#include "plimsoll/train/planned_run.h"
#include "plimsoll/train/run_checkpoints.h"
#include "plimsoll/train/run_directory.h"

namespace plimsoll::train {

// What the step loop measured; "this process" where a run was resumed.
struct RunMeasurements {
  int64_t steps_done = 0;
  RunProgress progress;             // over the whole run
  std::vector<float> step_seconds;  // one entry a step of this process
  int64_t step_tokens = 0;          // in a step of this process
  double matmul_rate = 0;           // FLOP/s of a large product on this machine
  Bytes allocated;                  // the arena
  Bytes resident_before;            // of the process before the arena was allocated
  Bytes peak_resident;              // of the process, over the whole run
};

// What is known about the run beside its numbers.
struct RunFacts {
  bool tokens_are_bytes = false;  // nats a token can be told as bits a byte
  bool finished = false;          // all steps are done
};

nlohmann::ordered_json run_summary(const PlannedRun& run, const RunMeasurements& measured,
                                   const RunFacts& facts);

// Reads the metrics of the whole run back from its directory and writes report.html and
// loss.svg there.
void write_report(const PlannedRun& run, const RunDirectory& directory,
                  const nlohmann::ordered_json& summary);

// The lines printed at the end of a run: losses, speed, planned and used bytes.
std::string summary_text(const nlohmann::ordered_json& summary);

double bits_per_byte(double nats_per_token, bool tokens_are_bytes);  // NaN when they are not

}  // namespace plimsoll::train

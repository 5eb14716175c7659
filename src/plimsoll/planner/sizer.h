// Sizes and prices sets of dropped activations without building their programs.
#pragma once

#include <optional>
#include <vector>

#include "plimsoll/cost/op_cost.h"
#include "plimsoll/step/passes/recomputation.h"
#include "plimsoll/step/placement.h"
#include "plimsoll/step/scratch_model.h"

namespace plimsoll::planner {

// What a candidate needs. `arena_bound`: no plan of it needs less; its arena is this or little more.
struct Sized {
  Bytes arena_bound;
  Seconds recompute;  // a micro-step
  Flops recompute_flops;
};

// One program, read once: bytes, scratch and times of its ops in flat arrays. A candidate is then a
// walk over the ops (0.2 ms for the step of a 64B model); only where its exact arena is asked for
// are its buffers placed. Both are what `plan_memory` says of the program that `step::recompute`
// and `with_workspaces` make, to the byte. The program must outlive it.
class Sizer {
 public:
  Sizer(const step::Program& program, const step::ScratchModel& scratch,
        const cost::DeviceProfile& device);

  // `dropped`: per tensor of the program.
  Sized size(const std::vector<bool>& dropped);
  // The arena that plan_memory would give it.
  Bytes arena(const std::vector<bool>& dropped);

  size_t tensors() const { return sizes_.size(); }
  // What has been done so far: operands of ops looked at and buffers placed. A bound on it bounds
  // the time of a search on every machine alike.
  int64_t work() const { return work_; }

 private:
  struct OpSize {
    int64_t workspace = 0;
    double seconds = 0, flops = 0;
  };
  OpSize measure(const step::Op& op) const;
  const OpSize& of(const step::Recomputation::Entry& entry);
  int64_t find_lifetimes(const step::Recomputation& recomputation);

  const step::Program& program_;
  const step::ScratchModel& scratch_;
  const cost::DeviceProfile& device_;
  step::RecomputationRule rule_;
  std::vector<int64_t> sizes_;  // per tensor, aligned
  std::vector<bool> persistent_;
  int64_t persistent_bytes_ = 0;
  std::vector<OpSize> ops_;
  std::vector<std::optional<OpSize>> norms_;  // per op: as the norm of a sum that is kept
  std::vector<step::Lifetime> lifetimes_;     // of the newest candidate, copies included
  std::vector<int64_t> change_;
  int64_t work_ = 0;
};

}  // namespace plimsoll::planner

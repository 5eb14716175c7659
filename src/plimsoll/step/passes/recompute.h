// Activation checkpointing: a saved tensor is dropped after the forward and computed again in the
// backward, where it is first read. Memory for time; never a bit of the result.
//
// Chen et al. 2016, "Training Deep Nets with Sublinear Memory Cost", down to single tensors.
#pragma once

#include <unordered_set>
#include <vector>

#include "plimsoll/step/program.h"

namespace plimsoll::step {

using TensorSet = std::unordered_set<TensorId>;

// The tensors that the forward keeps for the backward and that can be computed again: those with
// Role::saved, in the order of their first writer.
std::vector<TensorId> saved_tensors(const Program&);

// Drops the saved activations in `dropped` and inserts, just before the first backward op that
// reads each, the forward ops that compute it, in Phase::recompute. What those ops read is taken
// from what is kept, or computed again in its turn. A residual sum that is kept is normalised
// again on its own, without the addition before it.
Program recompute(Program, const TensorSet& dropped);

}  // namespace plimsoll::step

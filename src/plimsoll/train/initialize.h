// Initial weights: each element depends only on the seed, the parameter's name and its index.
#pragma once

#include <cstdint>
#include <span>

#include "plimsoll/model/inventory.h"

namespace plimsoll::train {

// The elements from `first` on, a multiple of 4.
void initialize(const model::Parameter& parameter, int64_t seed, std::span<float> weights,
                int64_t first = 0);

}  // namespace plimsoll::train

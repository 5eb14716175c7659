// What quantisation did to the tensors of a step, by class, for metrics.jsonl.
#pragma once

#include <nlohmann/json.hpp>
#include <span>

#include "plimsoll/step/builder.h"

namespace plimsoll::train {

// One object for each class of matrices, all layers together ("mlp.down.input"): shares of elements
// that were saturated and flushed to zero, range of the scales, signal-to-quantisation-noise ratio
// in dB, and how many values were not finite.
nlohmann::ordered_json quantization_json(std::span<const step::QuantizerInfo> quantizers,
                                         std::span<const QuantizerStatistics> statistics);

}  // namespace plimsoll::train

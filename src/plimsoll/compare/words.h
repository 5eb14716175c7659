// How a comparison writes its numbers and facts, the same in its sentences, its text and its page.
#pragma once

#include <string>

#include "plimsoll/compare/comparison.h"

namespace plimsoll::compare {

// How differences are written: "+0.0014"; "-3.1e-06" where four decimals would say zero.
std::string signed_nats(double nats);
// How margins and limits are: "0.010", "0.104", "0.00025".
std::string limit_text(double nats);
// "-0.0020 to +0.0048"
std::string interval_text(const Interval& interval);

// "none" where it is not known.
std::string known_loss(double nats);        // "3.2116"
std::string known_gap(double nats);         // as signed_nats
std::string known_percent(double percent);  // "+0.04"
std::string known_interval(const PairedStatistics& paired);

// Phrases without a full stop.
// "training loss farthest from bf16's by +0.0061 (step 320, limit 0.0151), gradient norm 1.002
// times bf16's, no loss spikes"
std::string along_the_way(const RecipeComparison& one);
// "3.2820 nats a token at the end, mean of 4 seeds, sd from seed to seed 0.0071"
std::string reference_sentence(const Comparison& comparison);
// "0.0032 nats, sd of the gaps of bf16 from weights one ulp away (4 seeds; mean |gap| 0.0048)"
std::string noise_sentence(const Comparison& comparison);
std::string margin_sentence(const ComparisonSettings& settings);

}  // namespace plimsoll::compare

#include "plimsoll/train/quantization_report.h"

#include <algorithm>
#include <cmath>

namespace plimsoll::train {

namespace {

// "layers.3.mlp.down.input" -> "mlp.down.input".
std::string class_of(const std::string& name) {
  return name.starts_with("layers.") ? name.substr(name.find('.', 7) + 1) : name;
}

struct Sum {
  double not_finite = 0, elements = 0, saturated = 0, flushed = 0, signal = 0, noise = 0;
  double least_scale = INFINITY, largest_scale = 0;
};

}  // namespace

nlohmann::ordered_json quantization_json(std::span<const step::QuantizerInfo> quantizers,
                                         std::span<const QuantizerStatistics> statistics) {
  std::vector<std::pair<std::string, Sum>> classes;  // in the order of the layer
  for (size_t i = 0; i < quantizers.size(); ++i) {
    const std::string name = class_of(quantizers[i].name);
    auto found = std::ranges::find(classes, name, &std::pair<std::string, Sum>::first);
    if (found == classes.end()) found = classes.insert(classes.end(), {name, {}});
    const QuantizerStatistics& s = statistics[i];
    Sum& sum = found->second;
    sum.not_finite += s.not_finite;
    sum.elements += s.elements;
    sum.saturated += s.saturated;
    sum.flushed += s.flushed;
    sum.signal += s.signal;
    sum.noise += s.noise;
    if (s.least_scale > 0) sum.least_scale = std::min<double>(sum.least_scale, s.least_scale);
    sum.largest_scale = std::max<double>(sum.largest_scale, s.largest_scale);
  }
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  for (const auto& [name, sum] : classes) {
    if (sum.elements == 0) continue;  // not quantised in this step
    nlohmann::ordered_json entry = {{"saturated", sum.saturated / sum.elements},
                                    {"flushed_to_zero", sum.flushed / sum.elements}};
    if (sum.largest_scale > 0) {
      entry["scale_min"] = sum.least_scale;
      entry["scale_max"] = sum.largest_scale;
    }
    if (sum.noise > 0) entry["sqnr_db"] = 10 * std::log10(sum.signal / sum.noise);
    entry["not_finite"] = sum.not_finite;
    json[name] = std::move(entry);
  }
  return json;
}

}  // namespace plimsoll::train

#include "plimsoll/train/run_summary.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <numbers>

#include "plimsoll/report/run_page.h"
#include "plimsoll/report/timeline.h"

namespace plimsoll::train {

using nlohmann::ordered_json;

namespace {

double median(std::vector<float> values) {
  if (values.empty()) return std::nan("");
  const auto middle = values.begin() + static_cast<int64_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// JSON has no NaN: what is not known is null.
ordered_json number(double value) {
  return std::isfinite(value) ? ordered_json(value) : ordered_json(nullptr);
}

double number_or_nan(const ordered_json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_number() ? found->get<double>() : std::nan("");
}

std::string loss_text(const ordered_json& summary, const char* loss, const char* bits) {
  const double nats = number_or_nan(summary, loss);
  if (!std::isfinite(nats)) return "none";
  const double per_byte = number_or_nan(summary, bits);
  return std::isfinite(per_byte) ? fmt::format("{:.4f} ({:.3f} bits per byte)", nats, per_byte)
                                 : fmt::format("{:.4f} nats per token", nats);
}

std::string rate_text(double flops_per_second) {
  return fmt::format("{:.1f} GFLOP/s", flops_per_second / 1e9);
}

std::string exact(int64_t bytes) { return fmt::format("{} B ({})", bytes, to_text(Bytes{bytes})); }

}  // namespace

double bits_per_byte(double nats_per_token, bool tokens_are_bytes) {
  return tokens_are_bytes ? nats_per_token / std::numbers::ln2 : std::nan("");
}

ordered_json run_summary(const PlannedRun& run, const RunMeasurements& measured,
                         const RunFacts& facts) {
  const step::StepConfig& step = run.config.step;
  const auto tokens = static_cast<double>(measured.step_tokens);
  const double seconds = median(measured.step_seconds);
  const double flops = planner::flops_per_token(run.step.program, step).total() * tokens;
  const bool bytes = facts.tokens_are_bytes;
  return {
      {"finished", facts.finished},
      {"steps", measured.steps_done},
      {"tokens", measured.progress.tokens},
      {"skipped_steps", measured.progress.skipped_steps},
      {"parameters", model::parameter_count(run.config.model)},
      {"train_loss", number(measured.progress.train_loss)},
      {"train_bits_per_byte", number(bits_per_byte(measured.progress.train_loss, bytes))},
      {"validation_loss", number(measured.progress.validation_loss)},
      {"validation_bits_per_byte", number(bits_per_byte(measured.progress.validation_loss, bytes))},
      {"median_step_ms", number(seconds * 1e3)},
      {"tokens_per_second", number(tokens / seconds)},
      {"flops_per_step", flops},
      {"flops_per_second", number(flops / seconds)},
      {"matmul_flops_per_second", measured.matmul_rate},
      {"share_of_matmul_rate", number(flops / seconds / measured.matmul_rate)},
      {"planned_bytes", run.memory.arena.count},
      {"allocated_bytes", measured.allocated.count},
      {"packing", run.memory.packing()},
      {"resident_bytes_before_arena", measured.resident_before.count},
      {"peak_resident_bytes", measured.peak_resident.count},
      {"device", run.device}};
}

std::string summary_text(const ordered_json& summary) {
  const auto bytes = [&](const char* key) { return summary.at(key).get<int64_t>(); };
  std::string text;
  const auto line = [&](std::string_view label, const std::string& value) {
    text += fmt::format("{:<20}{}\n", label, value);
  };
  line("train loss", loss_text(summary, "train_loss", "train_bits_per_byte"));
  line("held-out loss", loss_text(summary, "validation_loss", "validation_bits_per_byte"));
  if (const int64_t skipped = summary["skipped_steps"].get<int64_t>(); skipped > 0) {
    line("skipped steps", fmt::format("{}, a gradient overflowed", skipped));
  }
  const double ms = number_or_nan(summary, "median_step_ms");
  if (std::isfinite(ms)) {
    line("median step", fmt::format("{:.1f} ms, {} tokens/s", ms,
                                    to_count_text(number_or_nan(summary, "tokens_per_second"))));
    line("compute", fmt::format("{}, {:.0f} % of this machine's matrix products ({})",
                                rate_text(number_or_nan(summary, "flops_per_second")),
                                100 * number_or_nan(summary, "share_of_matmul_rate"),
                                rate_text(number_or_nan(summary, "matmul_flops_per_second"))));
  }
  line("memory planned", exact(bytes("planned_bytes")));
  line("memory allocated", exact(bytes("allocated_bytes")));
  const int64_t before = bytes("resident_bytes_before_arena");
  const int64_t peak = bytes("peak_resident_bytes");
  line("peak resident",
       fmt::format("{} = arena + {} of program, libraries and corpus before it + {} after",
                   to_text(Bytes{peak}), to_text(Bytes{before}),
                   to_text(Bytes{std::max<int64_t>(0, peak - before - bytes("allocated_bytes"))})));
  return text;
}

void write_report(const PlannedRun& run, const RunDirectory& directory,
                  const ordered_json& summary) {
  report::ReportInput report;
  report.title = directory.path().filename().string();
  report.subtitle =
      fmt::format("{} parameters, {}", to_count_text(summary["parameters"]), run.device);
  std::ifstream metrics(directory.path() / "metrics.jsonl");
  for (std::string line; std::getline(metrics, line);) {
    const ordered_json entry = ordered_json::parse(line);
    report.steps.step.push_back(entry.at("step").get<double>());
    report.steps.loss.push_back(number_or_nan(entry, "loss"));
    report.steps.lr.push_back(number_or_nan(entry, "lr"));
    report.steps.grad_norm.push_back(number_or_nan(entry, "grad_norm"));
    report.steps.tokens_per_second.push_back(number_or_nan(entry, "tokens_per_second"));
    const double held_out = number_or_nan(entry, "validation_loss");
    if (std::isfinite(held_out)) report.validation.push_back({report.steps.step.back(), held_out});
  }
  report.highlights = {
      {"held-out loss", loss_text(summary, "validation_loss", "validation_bits_per_byte")},
      {"tokens/s", to_count_text(number_or_nan(summary, "tokens_per_second"))},
      {"memory planned", to_text(run.memory.arena)},
      {"memory allocated", to_text(Bytes{summary["allocated_bytes"].get<int64_t>()})}};
  const config::Config& config = run.config;
  report.facts = {
      {"model", fmt::format("{}{} layers, hidden {}, {} heads, {} query groups, vocabulary {}",
                            config.model.preset.empty() ? "" : config.model.preset + ": ",
                            config.model.layers, config.model.hidden, config.model.heads,
                            config.model.query_groups, config.model.vocab)},
      {"precision", std::string(name(config.step.precision))},
      {"global batch",
       fmt::format("{} sequences of {} tokens, in micro-batches of {}", config.step.global_batch,
                   config.step.sequence_length, config.step.micro_batch)},
      {"steps", fmt::format("{} of {}", summary["steps"].get<int64_t>(), config.train.steps)},
      {"train loss", loss_text(summary, "train_loss", "train_bits_per_byte")},
      {"held-out loss", loss_text(summary, "validation_loss", "validation_bits_per_byte")},
      {"compute", fmt::format("{}, {:.0f} % of the machine's matrix products",
                              rate_text(number_or_nan(summary, "flops_per_second")),
                              100 * number_or_nan(summary, "share_of_matmul_rate"))},
      {"memory planned", exact(run.memory.arena.count)},
      {"memory allocated", exact(summary["allocated_bytes"])},
      {"packing", fmt::format("{:.4f} x the lower bound", run.memory.packing())},
      {"peak resident", exact(summary["peak_resident_bytes"])}};
  report.memory_timeline = report::memory_timeline(run.step.program, run.memory);
  for (const std::string& label : report.memory_timeline.labels) {
    for (int role = 0; role < step::role_count; ++role) {
      if (name(static_cast<step::Role>(role)) != label) continue;
      report.at_peak.push_back({label, run.memory.at_peak[static_cast<size_t>(role)]});
    }
  }
  report.config = config::to_toml(config);
  write_file_atomically(directory.path() / "report.html", report::report_html(report));
  write_file_atomically(directory.path() / "loss.svg", report::to_svg(report::loss_chart(report)));
}

}  // namespace plimsoll::train

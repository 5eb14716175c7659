#include "plimsoll/train/run_checkpoints.h"

#include <cmath>

#include "plimsoll/train/training_state.h"

namespace plimsoll::train {

using nlohmann::json;

namespace {

json finite_or_null(double value) { return std::isfinite(value) ? json(value) : json(nullptr); }

double finite_or_nan(const json& value) {
  return value.is_number() ? value.get<double>() : std::nan("");
}

}  // namespace

std::filesystem::path checkpoint_root(const config::Config& config,
                                      const std::filesystem::path& run_directory) {
  return config.checkpoint.directory.empty() ? run_directory / "checkpoints"
                                             : std::filesystem::path(config.checkpoint.directory);
}

json to_json(const RunState& state) {
  json extra = json::object();
  if (state.settings) extra["settings"] = *state.settings;
  if (state.corpus) extra["corpus"] = to_json(*state.corpus);
  if (state.progress) {
    extra["progress"] = {{"tokens", state.progress->tokens},
                         {"skipped_steps", state.progress->skipped_steps},
                         {"train_loss", finite_or_null(state.progress->train_loss)},
                         {"validation_loss", finite_or_null(state.progress->validation_loss)}};
  }
  return extra;
}

RunState run_state_from_json(const json& extra) {
  RunState state;
  try {
    if (extra.contains("settings")) state.settings = extra.at("settings").get<Settings>();
    if (extra.contains("corpus")) state.corpus = corpus_from_json(extra.at("corpus"));
    if (extra.contains("progress")) {
      const json& progress = extra.at("progress");
      state.progress = {.tokens = progress.at("tokens"),
                        .skipped_steps = progress.at("skipped_steps"),
                        .train_loss = finite_or_nan(progress.at("train_loss")),
                        .validation_loss = finite_or_nan(progress.at("validation_loss"))};
    }
  } catch (const json::exception&) {
    throw Error(Exit::data,
                "manifest.json states the run in a form that this Plimsoll cannot read.",
                "Resume with the version of Plimsoll that saved the checkpoint.");
  }
  return state;
}

RunCheckpoints::RunCheckpoints(const PlannedRun& run, const Trainer& trainer,
                               std::filesystem::path root, json stated, EventLog& events)
    : root_(std::move(root)),
      keep_(run.config.checkpoint.keep_last),
      stated_(std::move(stated)),
      events_(events) {
  const std::vector<checkpoint::Shard> shards = checkpoint_shards(run.step, trainer.executor());
  if (run.snapshot >= 0) {
    std::span<std::byte> snapshot = trainer.executor().host_view(run.snapshot);
    if (snapshot.empty()) {  // the plan's is on the device, where the writer cannot read it
      snapshot_.resize(static_cast<size_t>(checkpoint::snapshot_bytes(shards).count));
      snapshot = snapshot_;
    }
    writer_.emplace(root_, keep_, shards, snapshot);
  } else {
    prepared_ = checkpoint::prepare_shards(shards);
  }
}

void RunCheckpoints::save(const Trainer& trainer, const RunProgress& progress) {
  checkpoint::CheckpointState state = {
      .step = trainer.steps_done(), .samples = trainer.samples_consumed(), .extra = stated_};
  state.extra.update(to_json(RunState{.progress = progress}));
  newest_ = state.step;
  if (writer_) {
    writer_->start(std::move(state));
    poll();  // the write before this one is done
  } else {
    checkpoint::save_checkpoint(root_, state, prepared_);
    log(state.step);
    checkpoint::keep_last(root_, keep_, state.step);
  }
}

void RunCheckpoints::poll() {
  if (!writer_) return;
  writer_->poll();
  if (const std::optional<int64_t> saved = writer_->last_saved()) log(*saved);
}

void RunCheckpoints::finish(const Trainer& trainer, const RunProgress& progress) {
  if (newest_ != trainer.steps_done()) save(trainer, progress);
  if (writer_) writer_->finish();
  poll();
}

void RunCheckpoints::log(int64_t step) {
  if (step == logged_) return;
  logged_ = step;
  events_.append("checkpoint", {{"step", step}});
}

}  // namespace plimsoll::train

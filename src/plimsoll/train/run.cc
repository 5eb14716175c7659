#include "plimsoll/train/run.h"

#include <chrono>
#include <cmath>
#include <csignal>
#include <optional>

#include "plimsoll/checkpoint/writer.h"
#include "plimsoll/data/dataset.h"
#include "plimsoll/runtime/cpu/cpu_backend.h"
#include "plimsoll/runtime/cpu/machine.h"
#include "plimsoll/train/matmul_rate.h"
#include "plimsoll/train/progress.h"
#include "plimsoll/train/quantization_report.h"
#include "plimsoll/train/run_directory.h"
#include "plimsoll/train/run_summary.h"
#include "plimsoll/train/signals.h"
#include "plimsoll/train/trainer.h"
#include "plimsoll/train/training_state.h"

namespace plimsoll::train {

namespace {

using Clock = std::chrono::steady_clock;
using nlohmann::ordered_json;

// `most`: memory that decompressed text may take.
data::Dataset open_corpus(const config::Config& config, Bytes most) {
  return data::open_dataset({.train = config.data.train,
                             .validation = config.data.validation,
                             .validation_fraction = config.data.validation_fraction,
                             .format = config.data.format,
                             .sequence_length = config.step.sequence_length,
                             .vocabulary = config.model.vocab,
                             .most = most});
}

// Saves checkpoints, beside the compute when the plan has a snapshot to copy to.
class Checkpoints {
 public:
  // `extra`: what every checkpoint states of the run beside its tensors.
  Checkpoints(const PlannedRun& run, const Trainer& trainer, const RunDirectory& directory,
              nlohmann::json extra)
      : root_(directory.checkpoints()),
        keep_(run.config.checkpoint.keep_last),
        extra_(std::move(extra)) {
    const std::vector<checkpoint::Shard> shards = checkpoint_shards(run.step, trainer.executor());
    if (run.snapshot >= 0) {
      writer_.emplace(root_, keep_, shards, trainer.executor().view(run.snapshot).bytes());
    } else {
      prepared_ = checkpoint::prepare_shards(shards);
    }
  }

  void save(const Trainer& trainer) {
    const checkpoint::CheckpointState state = {
        .step = trainer.steps_done(), .samples = trainer.samples_consumed(), .extra = extra_};
    newest_ = state.step;
    if (writer_) {
      writer_->start(state);
    } else {
      checkpoint::save_checkpoint(root_, state, prepared_);
      checkpoint::keep_last(root_, keep_, state.step);
    }
  }

  // Raises the error of a background write that has failed.
  void poll() {
    if (writer_) writer_->poll();
  }

  // Makes sure the state of `trainer` is on disk.
  void finish(const Trainer& trainer) {
    if (newest_ != trainer.steps_done()) save(trainer);
    if (writer_) writer_->finish();
  }

  void resumed_at(int64_t step) { newest_ = step; }

 private:
  std::filesystem::path root_;
  int64_t keep_;
  nlohmann::json extra_;
  std::optional<checkpoint::CheckpointWriter> writer_;
  std::vector<checkpoint::PreparedShard> prepared_;
  int64_t newest_ = -1;  // step of the newest checkpoint begun
};

// Loads the newest whole checkpoint; a run without one starts afresh.
void resume_or_start(const PlannedRun& run, Trainer& trainer, const RunDirectory& directory,
                     bool resume, Checkpoints& checkpoints, MetricsLog& metrics, EventLog& events,
                     Progress& progress) {
  const std::optional<checkpoint::Found> found =
      resume ? checkpoint::newest_valid(directory.checkpoints()) : std::nullopt;
  if (!found) {
    trainer.start_fresh();
    if (resume) progress.note("no checkpoint yet: starting at step 1");
    metrics.truncate_after(0);
    events.append(resume ? "restart" : "start");
    return;
  }
  for (const std::string& damaged : found->damaged) {
    progress.note("passed over: " + damaged);
    events.append("damaged_checkpoint", {{"what", damaged}});
  }
  checkpoint::load_checkpoint(*found, checkpoint_shards(run.step, trainer.executor()));
  trainer.start_from(found->state.step, found->state.samples);
  checkpoints.resumed_at(found->state.step);
  metrics.truncate_after(found->state.step);
  events.append("resume", {{"step", found->state.step}, {"checkpoint", found->path.string()}});
  progress.note(fmt::format("resumed at step {} from {}", found->state.step, found->path.string()));
}

// A loss or gradient that is not finite will not recover: stop before it is saved.
void require_finite(const StepResult& result, const Trainer& trainer,
                    const RunDirectory& directory) {
  if (const std::string matrix = trainer.first_non_finite_quantizer(); !matrix.empty()) {
    throw Error(
        Exit::data,
        fmt::format("{} holds Inf or NaN at step {}, where it is quantised.", matrix,
                    trainer.steps_done()),
        fmt::format("Nothing of this step was saved. Lower schedule.lr or choose another recipe, "
                    "then continue from the checkpoint before it:\n"
                    "plimsoll train --resume {} --set schedule.lr=...",
                    directory.path().string()));
  }
  if (result.skipped) return;
  if (std::isfinite(result.loss) && std::isfinite(result.grad_norm)) return;
  const std::string parameter = trainer.first_non_finite_gradient();
  throw Error(
      Exit::data,
      fmt::format("The loss is {} and the gradient norm {} at step {}{}.", result.loss,
                  result.grad_norm, trainer.steps_done(),
                  parameter.empty() ? "" : "; the first gradient affected is that of " + parameter),
      fmt::format("Nothing of this step was saved. Lower schedule.lr or optimizer.clip_norm, then "
                  "continue from the checkpoint before it:\n"
                  "plimsoll train --resume {} --set schedule.lr=...",
                  directory.path().string()));
}

// What the recipe did in this step: the loss scale, skipped steps, and every so often the quality.
void add_quantization(ordered_json& line, const PlannedRun& run, const Trainer& trainer,
                      const StepResult& result) {
  if (run.config.recipe.name == step::Recipe::fp16) {
    line["loss_scale"] = trainer.loss_scale();
    if (result.skipped) line["skipped"] = true;
  }
  if (trainer.statistics_complete()) {
    line["quantization"] = quantization_json(run.step.quantizers.list, trainer.statistics());
  }
}

}  // namespace

Exit run_training(const config::Config& config, const RunOptions& options, std::ostream& out) {
  StopSignals signals;            // before anything starts a thread
  std::signal(SIGXFSZ, SIG_IGN);  // a file-size limit is an error to report, like a full disk
  const auto backend = cpu::make_cpu_backend(config.train.threads);
  const PlannedRun run = plan_run(config, *backend);
  require_fit(run, *backend);
  const data::Dataset dataset = open_corpus(config, run.capacity - run.memory.arena);
  const bool tokens_are_bytes = dataset.train.source.format() == data::TokenFormat::text;

  RunDirectory directory = create_run_directory(options.directory, options.resume);
  directory.write_config(config::to_toml(config));
  directory.write_plan(planner::plan_json(run.view()));
  MetricsLog metrics(directory);
  EventLog events(directory);
  out << planner::plan_text(run.view()) << '\n' << std::flush;

  RunMeasurements measured = {.validation_loss = std::nan("")};
  measured.resident_before = cpu::resident_memory().now;
  measured.step_seconds.reserve(static_cast<size_t>(config.train.steps));

  Trainer trainer(run, *backend, dataset);
  measured.allocated = trainer.allocated();
  Checkpoints checkpoints(run, trainer, directory,
                          {{tokenizer_key, tokens_are_bytes ? byte_tokenizer : token_ids}});
  Progress progress(out, {.terminal = options.terminal,
                          .steps = config.train.steps,
                          .columns = options.terminal ? terminal_columns(1) : 80});
  resume_or_start(run, trainer, directory, options.resume, checkpoints, metrics, events, progress);

  const double step_tokens =
      static_cast<double>(config.step.global_batch * config.step.sequence_length);
  const auto evaluate = [&](ordered_json& line) {
    measured.validation_loss = trainer.evaluate();
    const double bits = bits_per_byte(measured.validation_loss, tokens_are_bytes);
    line["validation_loss"] = measured.validation_loss;
    if (tokens_are_bytes) line["validation_bits_per_byte"] = bits;
    progress.evaluation(trainer.steps_done(), measured.validation_loss, bits);
  };

  while (trainer.steps_done() < config.train.steps && signals.arrived() == 0) {
    const auto begin = Clock::now();
    const StepResult result = trainer.step();
    const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    require_finite(result, trainer, directory);
    const int64_t step = trainer.steps_done();
    measured.train_loss = result.loss;
    measured.skipped_steps += result.skipped;
    measured.step_seconds.push_back(static_cast<float>(seconds));
    progress.step({.step = step,
                   .steps = config.train.steps,
                   .loss = result.loss,
                   .lr = result.lr,
                   .grad_norm = result.grad_norm,
                   .tokens_per_second = step_tokens / seconds,
                   .memory = cpu::resident_memory().now});
    ordered_json line = {{"step", step},
                         {"loss", result.loss},
                         {"lr", result.lr},
                         {"grad_norm", result.grad_norm},
                         {"tokens", static_cast<int64_t>(step_tokens) * step},
                         {"seconds", seconds},
                         {"tokens_per_second", step_tokens / seconds}};
    add_quantization(line, run, trainer, result);
    const bool last = step == config.train.steps;
    if (last || (config.train.eval_every > 0 && step % config.train.eval_every == 0)) {
      evaluate(line);
    }
    metrics.append(line);
    checkpoints.poll();
    if (!last && config.checkpoint.every > 0 && step % config.checkpoint.every == 0) {
      metrics.sync();
      checkpoints.save(trainer);
      events.append("checkpoint", {{"step", step}});
    }
  }
  measured.steps_done = trainer.steps_done();
  const bool finished = measured.steps_done == config.train.steps;
  metrics.sync();
  checkpoints.finish(trainer);
  events.append(finished ? "finish" : "interrupted", {{"step", measured.steps_done}});
  progress.done();
  measured.peak_resident = cpu::resident_memory().peak;
  measured.matmul_rate = measured_matmul_rate(
      *backend, config.step.precision == step::Precision::bf16 ? Format::bf16 : Format::f32);

  const ordered_json summary = run_summary(run, measured, {tokens_are_bytes, finished});
  directory.write_summary(summary);
  write_report(run, directory, summary);
  out << '\n' << summary_text(summary);
  out << fmt::format("{:<20}{}\n", "run directory", directory.path().string());
  if (finished) return Exit::done;
  out << fmt::format(
      "interrupted by {} after step {}; continue with\n  plimsoll train --resume {}\n",
      signals.arrived() == SIGINT ? "SIGINT" : "SIGTERM", measured.steps_done,
      directory.path().string());
  return Exit::interrupted;
}

}  // namespace plimsoll::train

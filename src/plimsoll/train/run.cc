#include "plimsoll/train/run.h"

#include <chrono>
#include <cmath>
#include <csignal>
#include <new>
#include <optional>

#include "plimsoll/base/limits.h"
#include "plimsoll/base/shell.h"
#include "plimsoll/data/dataset.h"
#include "plimsoll/runtime/cpu/cpu_backend.h"
#include "plimsoll/runtime/cpu/machine.h"
#include "plimsoll/runtime/cpu/threads.h"
#include "plimsoll/train/failure.h"
#include "plimsoll/train/matmul_rate.h"
#include "plimsoll/train/progress.h"
#include "plimsoll/train/quantization_report.h"
#include "plimsoll/train/run_checkpoints.h"
#include "plimsoll/train/run_directory.h"
#include "plimsoll/train/run_identity.h"
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

// What a run is continued from, checked against what is asked for.
struct Continued {
  checkpoint::Found found;
  RunState state;
};

// The newest whole checkpoint, if its run is the one that `config` describes; empty for a fresh
// start.
std::optional<Continued> find_checkpoint(const config::Config& config,
                                         const RunDirectory& directory) {
  std::optional<checkpoint::Found> found = checkpoint::newest_valid(directory.checkpoints());
  const Settings now = fixed_settings(config);
  RunState state = found ? run_state_from_json(found->state.extra) : RunState{};
  // A run without a checkpoint, or with one of an earlier version, is told by its run.toml.
  const std::filesystem::path run_toml = directory.path() / "run.toml";
  if (!state.settings && std::filesystem::exists(run_toml)) {
    state.settings = fixed_settings(config::resolve(config::read_config(run_toml, {})));
  }
  if (state.settings) require_same_settings(*state.settings, now, directory.path());
  if (!found) return std::nullopt;
  if (!state.progress) {
    state.progress = {.tokens = found->state.samples * config.step.sequence_length};
  }
  return Continued{std::move(*found), std::move(state)};
}

// Whether the run has come to its end: there is nothing to do, and nothing of it changes.
bool is_finished(const std::optional<Continued>& continued, const config::Config& config,
                 const RunDirectory& directory) {
  if (!continued) return false;
  const int64_t done = continued->found.state.step;
  if (done > config.train.steps) {
    throw Error(Exit::usage,
                fmt::format("The run in {} is past its end: {} steps are done, train.steps = {}.",
                            directory.path().string(), done, config.train.steps),
                "Set train.steps to more than that to go on, or start another run.");
  }
  const nlohmann::json summary = directory.summary();
  return done == config.train.steps && summary.is_object() && summary.value("finished", false) &&
         summary.value("steps", int64_t{0}) == done;
}

// Notes what was passed over and whence the run goes on.
void tell_start(const std::optional<Continued>& continued, bool resumed, EventLog& events,
                Progress& progress) {
  if (!continued) {
    if (resumed) progress.note("no checkpoint yet: starting at step 1");
    events.append(resumed ? "restart" : "start");
    return;
  }
  const checkpoint::Found& found = continued->found;
  for (const std::string& damaged : found.damaged) {
    progress.note("passed over: " + damaged);
    events.append("damaged_checkpoint", {{"what", damaged}});
  }
  events.append("resume", {{"step", found.state.step}, {"checkpoint", found.path.string()}});
  progress.note(fmt::format("resumed at step {} from {}", found.state.step, found.path.string()));
}

std::string resume_command(const RunDirectory& directory) {
  return "plimsoll train --resume " + shell_quoted(directory.path().string());
}

// fp16: steps in a row that overflow at a loss scale of 1 before the run stops.
constexpr int64_t overflows_until_stopped = 16;

// A loss or gradient that is not finite will not recover: stop before it is saved.
void require_finite(const StepResult& result, const Trainer& trainer,
                    const RunDirectory& directory) {
  if (const std::string matrix = trainer.first_non_finite_quantizer(); !matrix.empty()) {
    throw Diverged(
        fmt::format("{} holds Inf or NaN at step {}, where it is quantised.", matrix,
                    trainer.steps_done()),
        fmt::format("Nothing of this step was saved. Lower schedule.lr, then continue from the "
                    "checkpoint before it:\n{} --set schedule.lr=...\n"
                    "Or start another run with another recipe.",
                    resume_command(directory)));
  }
  if (trainer.overflows_at_scale_one() >= overflows_until_stopped) {
    throw Diverged(
        fmt::format("The gradients overflow fp16 at step {}, the {}th in a row at a loss scale of "
                    "1: no smaller scale will help.",
                    trainer.steps_done(), overflows_until_stopped),
        fmt::format("Nothing since the checkpoint before was changed. Lower schedule.lr, then "
                    "continue:\n{} --set schedule.lr=...\n"
                    "Or start another run with a recipe of more range (bf16 without a recipe).",
                    resume_command(directory)));
  }
  if (result.skipped) return;
  if (std::isfinite(result.loss) && std::isfinite(result.grad_norm)) return;
  const std::string parameter = trainer.first_non_finite_gradient();
  throw Diverged(
      fmt::format("The loss is {} and the gradient norm {} at step {}{}.", result.loss,
                  result.grad_norm, trainer.steps_done(),
                  parameter.empty() ? "" : "; the first gradient affected is that of " + parameter),
      fmt::format("Nothing of this step was saved. Lower schedule.lr or optimizer.clip_norm, then "
                  "continue from the checkpoint before it:\n{} --set schedule.lr=...",
                  resume_command(directory)));
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

// How far a run has come, for failure.json.
struct Reached {
  std::string_view where = "starting";
  int64_t step = 0;
};

// The run itself. `directory` is filled as soon as this process has it for itself.
Exit run(const config::Config& config, const RunOptions& options, std::ostream& out,
         StopSignals& signals, std::optional<RunDirectory>& own, Reached& reached) {
  const bool may_continue = options.start != Start::fresh;
  const auto acquire = [&]() -> RunDirectory& {
    if (!own) {
      own.emplace(
          create_run_directory(options.directory, may_continue, config.checkpoint.directory));
    }
    return *own;
  };
  // A fresh run that cannot be leaves no folder behind.
  if (options.start == Start::start_or_continue || std::filesystem::exists(options.directory)) {
    acquire();
  }
  std::optional<Continued> continued;
  if (own && may_continue) continued = find_checkpoint(config, *own);
  if (own && is_finished(continued, config, *own)) {
    out << fmt::format("finished: all {} steps were done before\n{:<20}{}\n", config.train.steps,
                       "run directory", own->path().string());
    own->remove_failure();
    return Exit::done;
  }

  const auto backend = cpu::make_cpu_backend(config.train.threads);
  const planner::Target target = target_of(config, *backend);
  const PlannedRun planned = plan_run(config, target);
  planner::require_fit(planned, target);
  cpu::start_threads(config.train.threads);
  require_address_space(planned.memory.arena);
  data::Dataset dataset = open_corpus(config, planned.capacity.usable() - planned.memory.arena);
  const bool tokens_are_bytes = dataset.train.source.format() == data::TokenFormat::text;
  int64_t appended = 0;
  if (continued && continued->state.corpus) {
    appended = keep_to_corpus(*continued->state.corpus, dataset);
  }
  const RunDirectory& directory = acquire();
  out << planner::plan_text(planned.view()) << '\n' << std::flush;

  RunMeasurements measured;
  measured.step_tokens = config.step.global_batch * config.step.sequence_length;
  measured.resident_before = cpu::resident_memory().now;
  measured.step_seconds.reserve(static_cast<size_t>(config.train.steps));
  Trainer trainer(planned, *backend, dataset);
  measured.allocated = trainer.allocated();
  if (continued) {
    checkpoint::load_checkpoint(continued->found,
                                checkpoint_shards(planned.step, trainer.executor()));
    measured.progress = *continued->state.progress;
    const checkpoint::CheckpointState& state = continued->found.state;
    trainer.start_from(state.step, state.samples, state.step - measured.progress.skipped_steps);
  } else {
    trainer.start_fresh();
  }
  reached.step = trainer.steps_done();

  // Everything is checked and loaded: from here on the directory is this run's.
  directory.write_config(config::to_toml(config));
  directory.write_plan(planner::plan_json(planned.view()));
  directory.remove_failure();
  MetricsLog metrics(directory);
  EventLog events(directory);
  const bool holds_steps = metrics.truncate_after(trainer.steps_done()).later > 0;
  nlohmann::json stated =
      to_json(RunState{.settings = fixed_settings(config), .corpus = identify(dataset)});
  stated[tokenizer_key] = tokens_are_bytes ? byte_tokenizer : token_ids;
  RunCheckpoints checkpoints(planned, trainer, directory.checkpoints(), std::move(stated), events);
  Progress progress(out, {.terminal = options.terminal,
                          .steps = config.train.steps,
                          .columns = options.terminal ? terminal_columns(1) : 80});
  if (continued) checkpoints.resumed_at(trainer.steps_done());
  tell_start(continued, options.start == Start::resume || holds_steps, events, progress);
  if (appended > 0) {
    progress.note(fmt::format("{} has grown by {} tokens since the run began: they are not read",
                              config.data.train, appended));
  }

  const auto step_tokens = static_cast<double>(measured.step_tokens);
  const bool evaluates = dataset.validation.tokens() > 0;
  const auto evaluate = [&](ordered_json& line) {
    const double loss = trainer.evaluate();
    measured.progress.validation_loss = loss;
    const double bits = bits_per_byte(loss, tokens_are_bytes);
    line["validation_loss"] = loss;
    if (tokens_are_bytes) line["validation_bits_per_byte"] = bits;
    progress.evaluation(trainer.steps_done(), loss, bits);
  };

  reached.where = "training";
  signals.keep();
  while (trainer.steps_done() < config.train.steps && signals.arrived() == 0) {
    const auto begin = Clock::now();
    const StepResult result = trainer.step();
    const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    require_finite(result, trainer, directory);
    const int64_t step = trainer.steps_done();
    reached.step = step;
    measured.progress.tokens += measured.step_tokens;
    measured.progress.train_loss = result.loss;
    measured.progress.skipped_steps += result.skipped;
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
                         {"tokens", measured.progress.tokens},
                         {"seconds", seconds},
                         {"tokens_per_second", step_tokens / seconds}};
    add_quantization(line, planned, trainer, result);
    const bool last = step == config.train.steps;
    const bool due = config.train.eval_every > 0 && step % config.train.eval_every == 0;
    if (evaluates && (last || due)) evaluate(line);
    metrics.append(line);
    checkpoints.poll();
    if (!last && config.checkpoint.every > 0 && step % config.checkpoint.every == 0) {
      metrics.sync();
      checkpoints.save(trainer, measured.progress);
    }
  }
  reached.where = "finishing";
  measured.steps_done = trainer.steps_done();
  const bool finished = measured.steps_done == config.train.steps;
  metrics.sync();
  checkpoints.finish(trainer, measured.progress);
  if (finished) {
    events.append("finish", {{"step", measured.steps_done}});
  } else {
    events.append("interrupted",
                  {{"step", measured.steps_done}, {"signal", signal_name(signals.arrived())}});
  }
  progress.done();
  measured.peak_resident = cpu::resident_memory().peak;
  measured.matmul_rate = measured_matmul_rate(
      *backend, config.step.precision == step::Precision::bf16 ? Format::bf16 : Format::f32);

  const ordered_json summary = run_summary(planned, measured, {tokens_are_bytes, finished});
  directory.write_summary(summary);
  write_report(planned, directory, summary);
  out << '\n' << summary_text(summary);
  out << fmt::format("{:<20}{}\n", "run directory", directory.path().string());
  if (finished) return Exit::done;
  out << fmt::format("interrupted by {} after step {}; continue with\n  {}\n",
                     signal_name(signals.arrived()), measured.steps_done,
                     resume_command(directory));
  return Exit::interrupted;
}

}  // namespace

config::Config with_absolute_paths(config::Config config) {
  for (std::string* path :
       {&config.data.train, &config.data.validation, &config.checkpoint.directory}) {
    if (!path->empty()) *path = std::filesystem::absolute(*path).string();
  }
  return config;
}

Exit run_training(const config::Config& resolved, const RunOptions& options, std::ostream& out) {
  StopSignals signals;            // before anything starts a thread
  std::signal(SIGXFSZ, SIG_IGN);  // a file-size limit is an error to report, like a full disk
  std::signal(SIGPIPE, SIG_IGN);  // who reads the output may leave
  std::optional<RunDirectory> directory;
  Reached reached;
  const auto record = [&](const Error& error) {
    if (!directory) return;
    try {
      directory->write_failure(failure_json(error, reached.where, reached.step));
    } catch (const Error&) {
      // A full disk, perhaps the failure itself.
    }
  };
  try {
    return run(with_absolute_paths(resolved), options, out, signals, directory, reached);
  } catch (const Error& error) {
    record(error);
    throw;
  } catch (const std::bad_alloc&) {
    const Error error(Exit::does_not_fit,
                      "The machine gave no more memory, though the plan fits what it said it has.",
                      "Another process took it, or a limit (ulimit -v) is lower: free some, or set "
                      "train.memory_limit.");
    record(error);
    throw error;
  } catch (const std::exception& error) {
    record(Error(Exit::bug, fmt::format("Internal error: {}.", error.what())));
    throw;
  }
}

}  // namespace plimsoll::train

// The configuration of a run: one TOML file, one struct a table, every key with its description.
//
//   [model]      model/model_config.h     [step]       step/step_config.h
//   [recipe]     step/recipe.h            [optimizer]  step/step_config.h
//   [schedule], [data], [train], [checkpoint]: here
//
// The descriptions in fields.cc are the only place keys are listed: reading, writing
// run.toml, `--set`, the nearest-key advice, `plimsoll config` and docs/config.md all walk them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "plimsoll/step/training_spec.h"

namespace plimsoll::config {

struct DataConfig {
  std::string train;       // file: text, gzip text, llm.c .bin, nanoGPT .bin, plimsoll .tokens
  std::string validation;  // file of the same kinds; empty: the last validation_fraction of train
  double validation_fraction = 0.01;
  std::string format = "auto";  // auto, text, llmc, nanogpt, plimsoll
};

enum class Decay : uint8_t { constant, cosine, linear, wsd };
constexpr std::string_view name(Decay decay) {
  switch (decay) {
    case Decay::constant:
      return "constant";
    case Decay::cosine:
      return "cosine";
    case Decay::linear:
      return "linear";
    case Decay::wsd:
      return "wsd";
  }
  return "";
}

struct ScheduleConfig {
  double lr = 1e-3;              // peak learning rate
  double min_lr_fraction = 0.1;  // learning rate at the end, as a fraction of the peak
  int64_t warmup_steps = 0;
  Decay decay = Decay::cosine;
  double decay_fraction = 0.2;  // wsd: share of the steps spent in the final linear decay
};

struct TrainConfig {
  int64_t steps = 100;
  int64_t seed = 1;
  bool perturb_weights = false;  // start one ulp away: the noise floor of a comparison
  int threads = 0;               // 0: all cores
  int64_t eval_every = 0;        // steps between evaluations; 0: only at the end
  int64_t eval_sequences = 64;   // held-out sequences an evaluation, whatever the batch
  int64_t eval_batches = 0;      // global batches instead; resolve makes it eval_sequences
  std::string memory_limit;      // "12 GiB"; empty: what the machine has available
  std::string run_directory;     // empty: runs/<config file's name>
};

enum class InBackground : uint8_t { automatic, yes, no };
constexpr std::string_view name(InBackground choice) {
  switch (choice) {
    case InBackground::automatic:
      return "auto";
    case InBackground::yes:
      return "true";
    case InBackground::no:
      return "false";
  }
  return "";
}

struct CheckpointConfig {
  int64_t every = 0;      // steps between checkpoints; 0: only at the end and on a signal
  int64_t keep_last = 2;  // older ones are removed after a newer one is complete; 0: keep all
  // Copy in memory, then write beside the compute; automatic: where the copy fits.
  InBackground in_background = InBackground::automatic;
  std::string directory;  // empty: `checkpoints` in the run directory
};

struct Config {
  model::ModelConfig model;
  step::StepConfig step;
  step::RecipeConfig recipe;
  step::OptimizerConfig optimizer;
  ScheduleConfig schedule;
  DataConfig data;
  TrainConfig train;
  CheckpointConfig checkpoint;
};

// Reads `path` (empty: the defaults), then applies `settings` ("train.steps=50",
// "model.preset=llama-3m") in order. In each of the two, model.preset comes first and the other
// keys change it. Raises Exit::usage with "file:line: key" for unknown keys (with the nearest valid
// one), wrong types, values out of range, and whatever `resolve` would refuse about a key that is
// given.
Config read_config(const std::filesystem::path& path, const std::vector<std::string>& settings);

// Fills in every derived value and checks the tables against each other.
Config resolve(Config);

// What decides the program of the step.
step::TrainingSpec spec(const Config&);

// All keys with their values, each under its description as a comment: what run.toml holds.
std::string to_toml(const Config&);

// The reference of all keys in Markdown: docs/config.md.
std::string config_reference();

}  // namespace plimsoll::config

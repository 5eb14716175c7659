#include "plimsoll/compare/compare.h"

#include <chrono>
#include <cmath>
#include <fstream>
#include <sstream>

#include "plimsoll/base/files.h"
#include "plimsoll/compare/comparison.h"
#include "plimsoll/compare/report.h"
#include "plimsoll/config/fields.h"
#include "plimsoll/model/inventory.h"
#include "plimsoll/train/run.h"

namespace plimsoll::compare {

namespace {

struct PlannedTraining {
  std::string recipe;  // as in RunCurve
  int64_t seed = 0;
  config::Config config;
  std::filesystem::path directory;
};

PlannedTraining planned(const config::Config& base, const CompareOptions& options,
                        const std::string& recipe, int64_t seed) {
  PlannedTraining run = {.recipe = recipe, .seed = seed, .config = base};
  config::Config& config = run.config;
  config.step.precision = step::Precision::bf16;
  config.train.seed = seed;
  config.train.perturb_weights = recipe == control_recipe;
  config.checkpoint.keep_last = 1;
  if (config.train.eval_every == 0) {
    config.train.eval_every = std::max<int64_t>(1, config.train.steps / 40);
  }
  if (recipe == reference_recipe || recipe == control_recipe) {
    config.recipe.name = step::Recipe::none;
  } else {
    for (config::Table& table : config::tables(config)) {
      if (table.name != "recipe") continue;
      const config::Field& name = table.fields.front();
      const config::Choice& choice = std::get<config::Choice>(name.value);
      if (std::ranges::find(choice.names, recipe) == choice.names.end() || recipe == "none") {
        throw refusal("--recipes", name, recipe);
      }
      choice.set(recipe);
    }
  }
  run.config = train::with_absolute_paths(config::resolve(config));
  run.directory = options.directory / fmt::format("{}-seed{}", recipe, seed);
  return run;
}

bool is_finished(const PlannedTraining& run) {
  const std::filesystem::path summary = run.directory / "summary.json";
  if (!std::filesystem::exists(summary)) return false;
  const auto json = nlohmann::json::parse(read_file(summary), nullptr, false);
  return !json.is_discarded() && json.value("finished", false);
}

void require_same_config(const PlannedTraining& run) {
  const std::filesystem::path path = run.directory / "run.toml";
  if (!std::filesystem::exists(path)) return;
  // As they are now: a version that knows more keys, or absolute paths, compares all the same.
  const config::Config there = config::resolve(config::read_config(path, {}));
  if (config::to_toml(train::with_absolute_paths(there)) == config::to_toml(run.config)) return;
  throw Error(Exit::usage,
              fmt::format("{} was made with another configuration.", run.directory.string()),
              "Use another --directory, or remove this one.");
}

double number_or_nan(const nlohmann::json& line, const char* key) {
  const auto found = line.find(key);
  return found != line.end() && found->is_number() ? found->get<double>() : std::nan("");
}

RunCurve read_curve(const PlannedTraining& run, const std::string& failure) {
  RunCurve curve = {.recipe = run.recipe, .seed = run.seed, .failure = failure};
  std::ifstream metrics(run.directory / "metrics.jsonl");
  for (std::string text; std::getline(metrics, text);) {
    const auto line = nlohmann::json::parse(text, nullptr, false);
    if (line.is_discarded()) continue;
    curve.loss.push_back(number_or_nan(line, "loss"));
    curve.grad_norm.push_back(line.value("skipped", false) ? std::nan("")
                                                           : number_or_nan(line, "grad_norm"));
    if (const double loss = number_or_nan(line, "validation_loss"); !std::isnan(loss)) {
      curve.validation.push_back({line.value("step", int64_t{0}), loss});
    }
  }
  return curve;
}

std::string setup_text(const config::Config& config, int64_t seeds) {
  const step::StepConfig& step = config.step;
  return fmt::format("{} parameters, {} layers, hidden {}, {} steps of {} x {} tokens, {} seeds",
                     to_count_text(static_cast<double>(model::parameter_count(config.model))),
                     config.model.layers, config.model.hidden, config.train.steps,
                     step.global_batch, step.sequence_length, seeds);
}

}  // namespace

Exit run_comparison(const config::Config& base, const CompareOptions& options, std::ostream& out) {
  std::vector<std::string> recipes = {std::string(reference_recipe), std::string(control_recipe)};
  recipes.insert(recipes.end(), options.recipes.begin(), options.recipes.end());
  std::vector<PlannedTraining> runs;
  for (int64_t i = 0; i < options.seeds; ++i) {
    for (const std::string& recipe : recipes) {
      runs.push_back(planned(base, options, recipe, base.train.seed + i));
    }
  }
  for (const PlannedTraining& run : runs) require_same_config(run);

  const std::string setup = setup_text(runs.front().config, options.seeds);
  out << fmt::format("{}\n{} runs in {}\n\n", setup, runs.size(), options.directory.string())
      << std::flush;
  const auto begin = std::chrono::steady_clock::now();
  std::vector<RunCurve> curves;
  size_t trained = 0;
  for (const PlannedTraining& run : runs) {
    std::string failure;
    const bool finished = is_finished(run);
    if (!finished) {
      std::ostringstream own_output;
      try {
        const Exit exit = train::run_training(
            run.config, {.directory = run.directory, .start = train::Start::start_or_continue},
            own_output);
        if (exit == Exit::interrupted) {
          out << "interrupted; the same command continues\n";
          return exit;
        }
      } catch (const train::Diverged& diverged) {
        failure = diverged.message();  // a result; every other error ends the comparison
      }
      ++trained;
    }
    curves.push_back(read_curve(run, failure));
    const RunCurve& curve = curves.back();
    const double minutes =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() / 60;
    const double left = trained == 0 ? 0
                                     : minutes / static_cast<double>(trained) *
                                           static_cast<double>(runs.size() - curves.size());
    out << fmt::format("{:>3}/{} {:<14} seed {}  {}  {}\n", curves.size(), runs.size(), run.recipe,
                       run.seed,
                       failure.empty() && !curve.validation.empty()
                           ? fmt::format("{:.4f} nats", curve.validation.back().second)
                           : "stopped: " + failure.substr(0, failure.find('\n')),
                       finished ? "done before" : fmt::format("about {:.1f} min left", left))
        << std::flush;
  }

  const Comparison comparison =
      compare(curves, {.warmup_steps = runs.front().config.schedule.warmup_steps});
  const auto write = [&](const char* name, const std::string& text) {
    write_file_atomically(options.directory / name, text);
  };
  write("comparison.json", comparison_json(comparison).dump(2) + "\n");
  write("comparison.html", comparison_html(comparison, curves, setup));
  write("comparison.svg", comparison_svg(comparison, curves));
  out << '\n' << comparison_text(comparison, setup);
  out << fmt::format("\npage     {}\n", (options.directory / "comparison.html").string());
  return Exit::done;
}

}  // namespace plimsoll::compare

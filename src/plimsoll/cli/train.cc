#include <unistd.h>

#include <iostream>
#include <memory>

#include "plimsoll/cli/commands.h"
#include "plimsoll/train/progress.h"
#include "plimsoll/train/run.h"

namespace plimsoll::cli {

namespace {

struct TrainArguments {
  ConfigArguments config;
  std::string run_directory;
  std::string resume;
};

std::filesystem::path default_directory(const config::Config& config,
                                        const ConfigArguments& arguments) {
  if (!config.train.run_directory.empty()) return config.train.run_directory;
  const std::filesystem::path runs = "runs";
  return runs / (arguments.path.empty() ? std::filesystem::path(arguments.preset)
                                        : std::filesystem::path(arguments.path).stem());
}

Exit train_run(TrainArguments arguments) {
  const bool resume = !arguments.resume.empty();
  if (resume && !arguments.config.path.empty()) {
    throw Error(Exit::usage, "--resume takes its configuration from the run directory.",
                "Leave CONFIG out; keys can still be changed with --set.");
  }
  if (resume) {
    arguments.config.path = std::filesystem::path(arguments.resume) / "run.toml";
    if (!std::filesystem::exists(arguments.config.path)) {
      throw Error(Exit::usage,
                  fmt::format("{} is not a run directory: it has no run.toml.", arguments.resume),
                  "Name the directory that `plimsoll train` printed at its end.");
    }
  }
  const config::Config config = read(arguments.config);
  train::RunOptions options = {.directory = default_directory(config, arguments.config),
                               .resume = resume,
                               .terminal = train::is_terminal(STDOUT_FILENO)};
  if (!arguments.run_directory.empty()) options.directory = arguments.run_directory;
  if (resume) options.directory = arguments.resume;
  return train::run_training(config, options, std::cout);
}

}  // namespace

void add_train(CLI::App& app, Action& action) {
  CLI::App* command =
      app.add_subcommand("train", "Plan a run, then train exactly what was planned");
  auto arguments = std::make_shared<TrainArguments>();
  add_config_arguments(*command, arguments->config);
  command
      ->add_option("--run-directory", arguments->run_directory,
                   "where the run goes; default runs/<name of CONFIG>")
      ->type_name("DIR");
  command
      ->add_option("--resume", arguments->resume,
                   "continue the run in DIR from its newest whole checkpoint, bit for bit")
      ->type_name("DIR");
  command->footer(
      "SIGTERM and SIGINT save a checkpoint and exit with 75; `--resume` continues.\n\n"
      "Examples:\n"
      "  plimsoll train configs/quickstart.toml\n"
      "  plimsoll train configs/quickstart.toml --set train.steps=50 --run-directory runs/short\n"
      "  plimsoll train --resume runs/quickstart");
  command->callback(
      [&action, arguments] { action = [arguments] { return train_run(*arguments); }; });
}

}  // namespace plimsoll::cli

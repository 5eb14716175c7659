#include <unistd.h>

#include <algorithm>
#include <memory>

#include "plimsoll/cli/commands.h"
#include "plimsoll/train/failure.h"
#include "plimsoll/train/output.h"
#include "plimsoll/train/progress.h"
#include "plimsoll/train/run.h"

namespace plimsoll::cli {

namespace {

struct TrainArguments {
  ConfigArguments config;
  std::string run_directory;
  std::string checkpoint_directory;
  std::string resume;
  bool continues = false;
};

bool sets_run_directory(const std::vector<std::string>& settings) {
  return std::ranges::any_of(settings, [](const std::string& setting) {
    const size_t begin = setting.find_first_not_of(" \t");
    return begin != std::string::npos &&
           setting.find("train.run_directory", begin) == begin &&
           setting.find_first_of("= \t", begin) == begin + std::string("train.run_directory").size();
  });
}

void check_resume(const TrainArguments& arguments) {
  const std::string& resume = arguments.resume;
  if (!arguments.config.path.empty()) {
    throw Error(Exit::usage, "--resume takes its configuration from the run directory.",
                "Leave CONFIG out; keys can still be changed with --set.");
  }
  if (!arguments.run_directory.empty() || sets_run_directory(arguments.config.settings)) {
    throw Error(Exit::usage,
                fmt::format("--resume continues the run in {} where it is.", resume),
                "Leave --run-directory and train.run_directory out. To go on elsewhere, copy the "
                "directory first\nand resume the copy.");
  }
  if (!std::filesystem::exists(std::filesystem::path(resume) / "run.toml")) {
    throw Error(Exit::usage, fmt::format("{} is not a run directory: it has no run.toml.", resume),
                "Name the directory that `plimsoll train` printed at its end.");
  }
}

Exit train_run(TrainArguments arguments) {
  const bool resume = !arguments.resume.empty();
  train::RunOptions options = {.directory = resume ? arguments.resume : arguments.run_directory,
                               .start = resume                ? train::Start::resume
                                        : arguments.continues ? train::Start::start_or_continue
                                                              : train::Start::fresh,
                               .terminal = train::is_terminal(STDOUT_FILENO)};
  config::Config config;
  try {
    if (resume) check_resume(arguments);
    ConfigArguments& given = arguments.config;
    const std::filesystem::path there = options.directory / "run.toml";
    const bool unnamed = given.path.empty() && given.preset.empty();
    if (resume || (arguments.continues && unnamed && std::filesystem::exists(there))) {
      given.path = there;
    }
    config = read(given);
  } catch (const Error& error) {
    if (!options.directory.empty()) {
      train::record_early_failure(options.directory, error, arguments.continues,
                                  options.start != train::Start::fresh);
    }
    throw;
  }
  if (!arguments.checkpoint_directory.empty()) {
    config.checkpoint.directory = arguments.checkpoint_directory;
  }
  if (options.directory.empty()) options.directory = config.train.run_directory;
  if (options.directory.empty()) {
    options.directory = std::filesystem::path("runs") / name(arguments.config);
  }
  train::RunOutput out(STDOUT_FILENO);
  return train::run_training(config, options, out);
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
      ->add_option("--checkpoint-directory", arguments->checkpoint_directory,
                   "where its checkpoints go; default `checkpoints` in the run directory")
      ->type_name("DIR");
  CLI::Option* resume =
      command
          ->add_option("--resume", arguments->resume,
                       "continue the run in DIR from its newest whole checkpoint, bit for bit")
          ->type_name("DIR");
  command
      ->add_flag("--continue", arguments->continues,
                 "start the run, or continue it where there is one: the same command, again and "
                 "again, until it is done")
      ->excludes(resume);
  command->footer(
      "SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2 and SIGXCPU save a checkpoint and exit with 75;\n"
      "`--resume` or `--continue` goes on.\n\n"
      "Examples:\n"
      "  plimsoll train configs/quickstart.toml\n"
      "  plimsoll train configs/quickstart.toml --set train.steps=50 --run-directory runs/short\n"
      "  plimsoll train --resume runs/quickstart\n"
      "  plimsoll train configs/quickstart.toml --continue --checkpoint-directory /opt/checkpoints");
  command->callback(
      [&action, arguments] { action = [arguments] { return train_run(*arguments); }; });
}

}  // namespace plimsoll::cli

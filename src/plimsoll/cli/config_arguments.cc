#include "plimsoll/cli/commands.h"

namespace plimsoll::cli {

void add_config_arguments(CLI::App& command, ConfigArguments& arguments) {
  command.add_option("CONFIG", arguments.path, "TOML file with the run's configuration");
  command.add_option("--preset", arguments.preset,
                     "model preset (see `plimsoll presets`); short for --set model.preset=NAME");
  command
      .add_option("--set", arguments.settings,
                  "set a key of the configuration, for example --set step.micro_batch=4; "
                  "may be given several times")
      ->type_name("KEY=VALUE")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

config::Config read(const ConfigArguments& arguments) {
  if (arguments.path.empty() && arguments.preset.empty()) {
    throw Error(Exit::usage, "No configuration was given.",
                "Name a file (plimsoll plan configs/quickstart.toml) or a model\n"
                "(plimsoll plan --preset llama-3-8b).");
  }
  std::vector<std::string> settings = arguments.settings;
  if (!arguments.preset.empty()) {
    settings.insert(settings.begin(), "model.preset=" + arguments.preset);
  }
  return config::resolve(config::read_config(arguments.path, settings));
}

std::string name(const ConfigArguments& arguments) {
  return arguments.path.empty() ? arguments.preset
                                : std::filesystem::path(arguments.path).stem().string();
}

}  // namespace plimsoll::cli

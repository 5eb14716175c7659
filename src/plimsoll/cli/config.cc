#include <iostream>

#include "plimsoll/cli/commands.h"

namespace plimsoll::cli {

void add_config(CLI::App& app, Action& action) {
  CLI::App* command =
      app.add_subcommand("config", "Print every key of the configuration with its meaning");
  command->footer("The output is docs/config.md, in Markdown.");
  command->callback([&action] {
    action = [] {
      std::cout << config::config_reference();
      return Exit::done;
    };
  });
}

}  // namespace plimsoll::cli

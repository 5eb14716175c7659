#include <fmt/format.h>

#include <iostream>

#include "plimsoll/cli/commands.h"

namespace plimsoll::cli {

void add_presets(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("presets", "List the model presets");
  command->callback([&action] {
    action = [] {
      for (const model::Preset& preset : model::presets()) {
        std::cout << fmt::format("{:<16}{}\n", preset.name, preset.summary);
      }
      return Exit::done;
    };
  });
}

}  // namespace plimsoll::cli

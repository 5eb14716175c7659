// The subcommands: each adds its options to the command line and says what to run when chosen.
// No logic lives here; every file turns flags into a call of a room below.
#pragma once

#include <CLI/CLI.hpp>
#include <charconv>
#include <functional>
#include <string>
#include <vector>

#include "plimsoll/base/error.h"
#include "plimsoll/config/config.h"

namespace plimsoll::cli {

// Set by the subcommand that was chosen; main runs it after parsing.
using Action = std::function<Exit()>;

void add_plan(CLI::App& app, Action& action);
void add_train(CLI::App& app, Action& action);
void add_compare(CLI::App& app, Action& action);
void add_explain(CLI::App& app, Action& action);
void add_generate(CLI::App& app, Action& action);
void add_config(CLI::App& app, Action& action);
void add_presets(CLI::App& app, Action& action);

// Refuses text that is no whole number of type T, in place of the nearest one that CLI11 would
// take.
template <class T>
CLI::Validator whole_number() {
  return CLI::Validator(
      [](const std::string& text) {
        T value;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
        const bool whole = error == std::errc() && end == text.data() + text.size();
        return whole ? std::string() : text + " is not a whole number of the range";
      },
      "");
}

// A config file, or a preset alone, with settings on top: what `plan` and `train` read.
struct ConfigArguments {
  std::string path;
  std::string preset;
  std::vector<std::string> settings;
};
void add_config_arguments(CLI::App& command, ConfigArguments& arguments);
config::Config read(const ConfigArguments& arguments);  // resolved
std::string name(const ConfigArguments& arguments);  // of the file without its folder, or the preset

}  // namespace plimsoll::cli

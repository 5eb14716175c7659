// plimsoll: plans the training of a transformer to the byte, and runs the plan.
#include <exception>
#include <iostream>

#include "plimsoll/cli/commands.h"

namespace {

using plimsoll::Exit;

int fail(const plimsoll::Error& error) {
  std::cerr << error.message() << '\n';
  return static_cast<int>(error.code());
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Plans the training of transformer language models to the byte, and runs the plan.",
               "plimsoll");
  app.set_version_flag("--version", std::string("plimsoll ") + PLIMSOLL_VERSION);
  app.require_subcommand(1);
  app.footer(
      "Start with:\n"
      "  plimsoll plan configs/quickstart.toml\n"
      "  plimsoll train configs/quickstart.toml\n"
      "  plimsoll generate runs/quickstart --prompt \"Harbor\"\n\n"
      "Exit codes: 0 done; 2 usage or bad config; 3 bad data, checkpoint or disk;\n"
      "4 does not fit; 70 bug; 75 interrupted, resumable.");
  plimsoll::cli::Action action;
  plimsoll::cli::add_plan(app, action);
  plimsoll::cli::add_train(app, action);
  plimsoll::cli::add_explain(app, action);
  plimsoll::cli::add_compare(app, action);
  plimsoll::cli::add_generate(app, action);
  plimsoll::cli::add_presets(app, action);
  plimsoll::cli::add_config(app, action);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const bool help = error.get_exit_code() == 0;
    app.exit(error);
    return help ? 0 : static_cast<int>(Exit::usage);
  }
  try {
    return static_cast<int>(action());
  } catch (const plimsoll::Error& error) {
    return fail(error);
  } catch (const std::exception& error) {
    return fail(plimsoll::Error(Exit::bug, fmt::format("Internal error: {}.", error.what()),
                                "This is a bug in Plimsoll; please report it with the command "
                                "and the config."));
  }
}

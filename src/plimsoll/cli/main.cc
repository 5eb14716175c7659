// plimsoll: plans the training of a transformer to the byte, and runs the plan.
#include "plimsoll/cli/commands.h"
#include "plimsoll/cli/process.h"

namespace {

using plimsoll::Error;
using plimsoll::Exit;

// What a command prints is its result: lost, nothing was done. A run's result is its directory, and
// schedulers go by its exit code: there the loss is only said.
int with_output_checked(Exit code, bool is_run) {
  if (plimsoll::cli::output_arrived()) return static_cast<int>(code);
  const int lost = plimsoll::cli::report(
      Error(Exit::data, "What was printed has not all arrived: standard output is closed or full.",
            is_run ? "The run is not affected." : "Print to another place."));
  return is_run || code != Exit::done ? static_cast<int>(code) : lost;
}

}  // namespace

int main(int argc, char** argv) {
  plimsoll::cli::open_standard_files();
  plimsoll::cli::report_lost_exceptions();
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
    plimsoll::cli::require_stack();
    app.parse(argc, argv);
    const Exit code = action();
    return with_output_checked(code, app.got_subcommand("train") || app.got_subcommand("compare"));
  } catch (const CLI::ParseError& error) {
    const bool help = error.get_exit_code() == 0;
    app.exit(error);
    return help ? with_output_checked(Exit::done, false) : static_cast<int>(Exit::usage);
  } catch (...) {
    return plimsoll::cli::report(plimsoll::cli::current_error());
  }
}

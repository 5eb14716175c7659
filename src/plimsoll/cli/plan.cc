#include <fmt/format.h>

#include <iostream>
#include <memory>

#include "plimsoll/base/files.h"
#include "plimsoll/cli/commands.h"
#include "plimsoll/cost/device.h"
#include "plimsoll/planner/frontier_report.h"
#include "plimsoll/planner/timeline.h"
#include "plimsoll/runtime/cpu/cpu_backend.h"
#include "plimsoll/train/planned_run.h"

namespace plimsoll::cli {

namespace {

struct PlanArguments {
  ConfigArguments config;
  bool json = false;
  bool program = false;
  std::string timeline;
  bool frontier = false;
  std::string frontier_svg;
};

Exit frontier(const PlanArguments& arguments, const train::Config& config,
              const runtime::Backend& backend) {
  const std::vector<planner::FrontPoint> front = train::frontier(config, backend);
  const std::string rates = cost::nominal_cpu().source;
  if (!arguments.frontier_svg.empty()) {
    write_file_atomically(arguments.frontier_svg, planner::frontier_svg(front));
  }
  if (arguments.json) {
    std::cout << planner::frontier_json(front, rates).dump(2) << '\n';
  } else {
    std::cout << planner::frontier_text(front, rates);
  }
  return Exit::done;
}

Exit plan(const PlanArguments& arguments) {
  const train::Config config = read(arguments.config);
  const auto backend = cpu::make_cpu_backend(config.train.threads);
  if (arguments.frontier || !arguments.frontier_svg.empty()) {
    return frontier(arguments, config, *backend);
  }
  const train::PlannedRun run = train::plan_run(config, *backend);
  if (!arguments.timeline.empty()) {
    write_file_atomically(arguments.timeline,
                          to_svg(planner::memory_timeline(run.step.program, run.memory)));
  }
  if (arguments.program) {
    std::cout << step::listing(run.step.program);
  } else if (arguments.json) {
    std::cout << planner::plan_json(run.view()).dump(2) << '\n';
  } else {
    std::cout << planner::plan_text(run.view());
  }
  std::cout << std::flush;
  train::require_fit(run, *backend);
  return Exit::done;
}

}  // namespace

void add_plan(CLI::App& app, Action& action) {
  CLI::App* command =
      app.add_subcommand("plan", "Size a training step to the byte, without running it");
  auto arguments = std::make_shared<PlanArguments>();
  add_config_arguments(*command, arguments->config);
  command->add_flag("--json", arguments->json, "print the plan as JSON");
  command->add_flag("--program", arguments->program, "print the step program, one line an op");
  command
      ->add_option("--timeline", arguments->timeline, "write the memory timeline of a step as SVG")
      ->type_name("FILE");
  command->add_flag("--frontier", arguments->frontier,
                    "print memory against recomputation instead, from saving every activation "
                    "to recomputing all");
  command->add_option("--frontier-svg", arguments->frontier_svg, "as --frontier, and draw it")
      ->type_name("FILE");
  command->footer(
      "Exit code 4 when the plan does not fit this machine (or train.memory_limit).\n\n"
      "Examples:\n"
      "  plimsoll plan configs/quickstart.toml\n"
      "  plimsoll plan --preset llama-3-8b --set step.sequence_length=8192\n"
      "  plimsoll plan configs/quickstart.toml --set step.micro_batch=32 --json");
  command->callback([&action, arguments] { action = [arguments] { return plan(*arguments); }; });
}

}  // namespace plimsoll::cli

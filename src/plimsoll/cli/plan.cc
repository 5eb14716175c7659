#include <fmt/format.h>

#include <iostream>
#include <memory>

#include "plimsoll/base/streams.h"
#include "plimsoll/cli/commands.h"
#include "plimsoll/planner/fit.h"
#include "plimsoll/report/frontier_report.h"
#include "plimsoll/report/timeline.h"
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
  std::string fit;
  bool longest = false;
  bool both = false;
};

Exit frontier(const PlanArguments& arguments, const planner::Request& request,
              const planner::Target& target) {
  const std::vector<planner::FrontPoint> front = planner::frontier(request, target);
  const std::string& rates = target.profile.source;
  if (!arguments.frontier_svg.empty()) {
    write_output(arguments.frontier_svg, report::frontier_svg(front));
  }
  if (arguments.json) {
    std::cout << report::frontier_json(front, rates).dump(2) << '\n';
  } else {
    std::cout << report::frontier_text(front, rates);
  }
  return Exit::done;
}

Exit fit(const PlanArguments& arguments, const planner::Request& request,
         const planner::Target& target) {
  const planner::FitGoal goal = arguments.both      ? planner::FitGoal::both
                              : arguments.longest ? planner::FitGoal::sequence
                                                  : planner::FitGoal::micro_batch;
  const planner::Fit found =
      planner::fit(request, parse_bytes(arguments.fit, "--fit"), goal, target);
  if (arguments.json) {
    std::cout << planner::fit_json(found).dump(2) << '\n';
  } else {
    std::cout << planner::fit_text(found);
  }
  return Exit::done;
}

Exit plan(const PlanArguments& arguments) {
  const config::Config config = read(arguments.config);
  const planner::Request request = train::request_of(config);
  const planner::Target target = train::cpu_target(config);
  if (arguments.frontier || !arguments.frontier_svg.empty()) {
    return frontier(arguments, request, target);
  }
  if (!arguments.fit.empty()) return fit(arguments, request, target);
  const planner::PlannedRun run = planner::plan_run(request, target);
  if (!arguments.timeline.empty()) {
    write_output(arguments.timeline,
                 report::to_svg(report::memory_timeline(run.step.program, run.memory)));
  }
  if (arguments.program) {
    std::cout << step::listing(run.step.program);
  } else if (arguments.json) {
    std::cout << planner::plan_json(run.view()).dump(2) << '\n';
  } else {
    std::cout << planner::plan_text(run.view());
  }
  std::cout << std::flush;
  planner::require_fit(run, target);
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
  CLI::Option* const fit =
      command
          ->add_option("--fit", arguments->fit,
                       "find the largest micro-batch that SIZE allows, with the best checkpointing")
          ->type_name("SIZE");
  command
      ->add_flag("--longest", arguments->longest,
                 "with --fit: find the longest sequence instead, at the config's micro-batch")
      ->needs(fit);
  command
      ->add_flag("--both", arguments->both,
                 "with --fit: the longest sequence, and the largest micro-batch of shorter ones")
      ->needs(fit);
  command->footer(
      "Exit code 4 when the plan does not fit this machine (or train.memory_limit).\n\n"
      "Examples:\n"
      "  plimsoll plan configs/quickstart.toml\n"
      "  plimsoll plan --preset llama-3-8b --set step.sequence_length=8192\n"
      "  plimsoll plan configs/quickstart.toml --set step.micro_batch=32 --json\n"
      "  plimsoll plan --preset llama-3-8b --set step.sequence_length=8192 --frontier\n"
      "  plimsoll plan --preset gpt2-124m --fit \"8 GiB\"");
  command->callback([&action, arguments] { action = [arguments] { return plan(*arguments); }; });
}

}  // namespace plimsoll::cli

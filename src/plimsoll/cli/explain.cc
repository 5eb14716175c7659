#include "plimsoll/report/explain.h"

#include <iostream>
#include <memory>

#include "plimsoll/base/streams.h"
#include "plimsoll/cli/commands.h"
#include "plimsoll/train/planned_run.h"

namespace plimsoll::cli {

namespace {

struct ExplainArguments {
  ConfigArguments config;
  std::string html, svg;
};

Exit explain(const ExplainArguments& arguments) {
  const config::Config config = read(arguments.config);
  const planner::Target target = train::cpu_target(config);
  const planner::PlannedRun run = planner::plan_run(train::request_of(config), target);
  const std::vector<planner::WhatIf> changes = planner::what_ifs(run, target);
  const std::string& rates = target.profile.source;
  std::cout << report::explain_text(run.view(), changes, rates);
  if (!arguments.html.empty()) {
    write_output(arguments.html, report::explain_html(run.view(), changes, rates));
  }
  if (!arguments.svg.empty()) {
    write_output(arguments.svg,
                 report::to_svg(report::explained_timeline(run.step.program, run.memory)));
  }
  return Exit::done;
}

}  // namespace

void add_explain(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand(
      "explain", "Say what makes the memory peak, and what single changes would do to it");
  auto arguments = std::make_shared<ExplainArguments>();
  add_config_arguments(*command, arguments->config);
  command
      ->add_option("--html", arguments->html,
                   "write a page with the memory timeline and the tensors under the pointer")
      ->type_name("FILE");
  command->add_option("--svg", arguments->svg, "write the memory timeline alone")
      ->type_name("FILE");
  command->footer(
      "Examples:\n"
      "  plimsoll explain configs/quickstart.toml\n"
      "  plimsoll explain --preset llama-3-8b --set step.sequence_length=8192 --html why.html");
  command->callback([&action, arguments] { action = [arguments] { return explain(*arguments); }; });
}

}  // namespace plimsoll::cli

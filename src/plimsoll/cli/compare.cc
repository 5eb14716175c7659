#include "plimsoll/compare/compare.h"

#include <iostream>
#include <memory>

#include "plimsoll/cli/commands.h"

namespace plimsoll::cli {

namespace {

struct CompareArguments {
  ConfigArguments config;
  std::vector<std::string> recipes;
  int64_t seeds = 0;
  std::string directory;
  bool quick = false;
  bool full = false;
};

// The fair test of small models: 20 million tokens and four seeds.
constexpr int64_t kFullTokens = 20'000'000;

Exit compare(const CompareArguments& arguments) {
  config::Config config = read(arguments.config);
  compare::CompareOptions options = {.recipes = {"fp8_current", "mxfp8", "nvfp4"}, .seeds = 4};
  if (arguments.full) {
    options.recipes = {"fp16", "fp8_delayed", "fp8_current", "fp8_block", "mxfp8", "nvfp4"};
    options.seeds = 4;
    const int64_t tokens = config.step.global_batch * config.step.sequence_length;
    config.schedule.warmup_steps = kFullTokens / tokens / 10;
    config.train.steps = kFullTokens / tokens;
    config.train.eval_every = 0;
  }
  if (!arguments.recipes.empty()) options.recipes = arguments.recipes;
  if (arguments.seeds > 0) options.seeds = arguments.seeds;
  options.directory = arguments.directory.empty()
                          ? std::filesystem::path("runs") /
                                (name(arguments.config) + (arguments.full ? "-full" : "-quick"))
                          : std::filesystem::path(arguments.directory);
  return compare::run_comparison(config, options, std::cout);
}

}  // namespace

void add_compare(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand(
      "compare", "Train under several recipes from the same start and say which still learn");
  auto arguments = std::make_shared<CompareArguments>();
  add_config_arguments(*command, arguments->config);
  CLI::Option* quick = command->add_flag(
      "--quick", arguments->quick,
      "the config's own steps, 4 seeds, fp8_current, mxfp8 and nvfp4 (the default)");
  command
      ->add_flag("--full", arguments->full,
                 "the fair test: 20 million tokens, 4 seeds, every recipe; takes hours")
      ->excludes(quick);
  command->add_option("--recipes", arguments->recipes, "recipes to compare, with commas")
      ->delimiter(',');
  command->add_option("--seeds", arguments->seeds, "runs of each recipe, paired by seed")
      ->check(whole_number<int64_t>())
      ->check(CLI::Range(1, 1000));
  command
      ->add_option("--directory", arguments->directory,
                   "where the runs go; default runs/<name of CONFIG or preset>-quick or -full")
      ->type_name("DIR");
  command->footer(
      "The same command continues a comparison that was interrupted.\n\n"
      "Examples:\n"
      "  plimsoll compare configs/compare.toml --quick\n"
      "  plimsoll compare configs/compare.toml --recipes mxfp8 --seeds 5 --directory runs/mx\n"
      "  plimsoll compare configs/compare.toml --full");
  command->callback([&action, arguments] { action = [arguments] { return compare(*arguments); }; });
}

}  // namespace plimsoll::cli

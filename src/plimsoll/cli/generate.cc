#include <iostream>
#include <memory>

#include "plimsoll/cli/commands.h"
#include "plimsoll/train/generate.h"

namespace plimsoll::cli {

void add_generate(CLI::App& app, Action& action) {
  CLI::App* command =
      app.add_subcommand("generate", "Continue a text with the model a run has trained");
  struct Arguments {
    std::string run;
    train::GenerateOptions options;
  };
  auto arguments = std::make_shared<Arguments>();
  train::GenerateOptions& options = arguments->options;
  command->add_option("RUN", arguments->run, "run directory")->required();
  command->add_option("--prompt", options.prompt, "text to continue")->required();
  command->add_option("--tokens", options.tokens, "tokens to add")
      ->check(whole_number<int64_t>())
      ->capture_default_str();
  command
      ->add_option("--temperature", options.temperature,
                   "0 takes the likeliest token; higher is more varied")
      ->capture_default_str();
  command->add_option("--top-k", options.top_k, "draw from the K likeliest tokens; 0: all")
      ->check(whole_number<int64_t>())
      ->capture_default_str();
  command->add_option("--seed", options.seed, "of the draws, of 64 bits")
      ->check(whole_number<uint64_t>())
      ->capture_default_str();
  command->add_option("--threads", options.threads, "0: one a core")
      ->check(whole_number<int>())
      ->check(CLI::Range(0, 4096))
      ->capture_default_str();
  command->footer(
      "Runs trained on text (byte tokens) only.\n\n"
      "Example:\n"
      "  plimsoll generate runs/quickstart --prompt \"Harbor\" --tokens 300");
  command->callback([&action, arguments] {
    action = [arguments] {
      train::generate(arguments->run, arguments->options, std::cout, std::cerr);
      return Exit::done;
    };
  });
}

}  // namespace plimsoll::cli

#include "plimsoll/base/units.h"
#include "plimsoll/config/fields.h"
#include "plimsoll/model/inventory.h"

namespace plimsoll::config {

namespace {

// The 264 tokens of the byte tokenizer stand in where a preset leaves the vocabulary open.
std::string parameters_text(const model::ModelConfig& preset) {
  Config config;
  config.model = preset;
  return to_count_text(static_cast<double>(model::parameter_count(resolve(config).model)));
}

}  // namespace

std::string to_toml(const Config& config) {
  Config copy = config;
  std::string text = "# A Plimsoll run: every key with the value that was used.\n";
  for (const Table& table : tables(copy)) {
    text += fmt::format("\n# {}\n[{}]\n", table.description, table.name);
    for (const Field& field : table.fields) {
      text += fmt::format("# {}\n{} = {}\n", field.description, field.key, toml_text(field));
    }
  }
  return text;
}

std::string config_reference() {
  std::string text =
      "# What can a config file say?\n\n"
      "A run is described by one TOML file; every key is optional, but the model needs a preset or "
      "a shape.\n"
      "`--set table.key=value` on the command line overrides a key. A run writes all of them, with "
      "the\n"
      "values it used, to `run.toml` in its run directory; that file is itself a config.\n\n"
      "```toml\n"
      "[model]\n"
      "preset = \"llama-3m\"\n\n"
      "[data]\n"
      "train = \"corpus.txt\"\n\n"
      "[train]\n"
      "steps = 500\n"
      "```\n\n"
      "This page is generated from the descriptions in `src/plimsoll/config/fields.cc`.\n";
  Config defaults;
  for (const Table& table : tables(defaults)) {
    text += fmt::format("\n## [{}]\n\n{}\n\n", table.name, table.description);
    text += "| key | default | value | meaning |\n| --- | --- | --- | --- |\n";
    for (const Field& field : table.fields) {
      text += fmt::format("| `{}` | `{}` | {} | {} |\n", field.key, toml_text(field), wanted(field),
                          field.description);
    }
  }
  text +=
      "\n## Presets\n\n"
      "Values of `model.preset`. Where the vocabulary is the tokenizer's, the count is with the "
      "byte\n"
      "tokenizer's 264 tokens.\n\n"
      "| preset | model | parameters |\n| --- | --- | --- |\n";
  for (const model::Preset& preset : model::presets()) {
    text += fmt::format("| `{}` | {} | {} |\n", preset.name, preset.summary,
                        parameters_text(preset.config));
  }
  return text;
}

}  // namespace plimsoll::config

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "plimsoll/base/error.h"
#include "plimsoll/model/inventory.h"

namespace plimsoll::model {
namespace {

ModelConfig resolved(ModelConfig config) {
  if (config.vocab == 0) config.vocab = 264;  // the byte tokenizer's
  return resolve(config);
}

// GPT-2: openai-community/gpt2*, parameters of the PyTorch modules (the paper's own table counts
// 117M and 345M for the first two, corrected in the repository of its authors).
// Llama and Qwen3: parameters of the safetensors files on Hugging Face, a tied head counted once.
const std::map<std::string, int64_t> published = {
    {"llama-110m", 109529856},     // karpathy/llama2.c, stories110M: 110M
    {"gpt2-124m", 124439808},      //
    {"gpt2-355m", 354823168},      //
    {"gpt2-774m", 774030080},      //
    {"gpt2-1558m", 1557611200},    //
    {"llama-3.2-1b", 1235814400},  // meta-llama/Llama-3.2-1B: 1.24B
    {"llama-3.2-3b", 3212749824},  // meta-llama/Llama-3.2-3B: 3.21B
    {"llama-3-8b", 8030261248},    // meta-llama/Meta-Llama-3-8B: 8.03B
    {"llama-2-7b", 6738415616},    // meta-llama/Llama-2-7b-hf: 6.74B
    {"llama-2-13b", 13015864320},  // meta-llama/Llama-2-13b-hf: 13.0B
    {"llama-34b", 33743970304},    // codellama/CodeLlama-34b-hf: 33.7B
    {"qwen3-0.6b", 596049920},     // Qwen/Qwen3-0.6B: 0.6B
    {"qwen3-1.7b", 1720574976},    // Qwen/Qwen3-1.7B: 1.7B
    {"qwen3-4b", 4022468096},      // Qwen/Qwen3-4B: 4.0B
    {"qwen3-8b", 8190735360},      // Qwen/Qwen3-8B: 8.2B
    {"qwen3-14b", 14768307200},    // Qwen/Qwen3-14B: 14.8B
    {"qwen3-32b", 32762123264},    // Qwen/Qwen3-32B: 32.8B
    {"llama-3.1-8b", 8030261248},  // meta-llama/Llama-3.1-8B: 8.03B
    {"mistral-7b", 7248023552},    // mistralai/Mistral-7B-v0.3: 7.25B
    {"smollm2-135m", 134515008},   // HuggingFaceTB/SmolLM2-135M
    {"smollm2-360m", 361821120},   // HuggingFaceTB/SmolLM2-360M
    {"smollm2-1.7b", 1711376384},  // HuggingFaceTB/SmolLM2-1.7B
    {"qwen2.5-0.5b", 494032768},   // Qwen/Qwen2.5-0.5B: 0.49B
    {"qwen2.5-1.5b", 1543714304},  // Qwen/Qwen2.5-1.5B: 1.54B
    {"qwen2.5-3b", 3085938688},    // Qwen/Qwen2.5-3B: 3.09B
    {"qwen2.5-7b", 7615616512},    // Qwen/Qwen2.5-7B: 7.62B
    {"qwen2.5-14b", 14770033664},  // Qwen/Qwen2.5-14B: 14.8B
    {"qwen2.5-32b", 32763876352},  // Qwen/Qwen2.5-32B: 32.8B
    // Shapes of this project, not published ones.
    {"llama-3m", 3019008},
    {"llama-10m", 9838464},
    {"llama-25m", 25309696},
    {"llama-64b", 63708471296},
};

TEST(Presets, HaveThePublishedNumberOfParameters) {
  for (const Preset& preset : presets()) {
    ASSERT_TRUE(published.contains(preset.name)) << preset.name;
    EXPECT_EQ(parameter_count(resolved(preset.config)), published.at(preset.name)) << preset.name;
  }
}

TEST(Presets, AreNamedOnceAndKnowTheirName) {
  std::set<std::string> names;
  for (const Preset& known : presets()) {
    EXPECT_TRUE(names.insert(known.name).second) << known.name << " is there twice";
    EXPECT_EQ(known.config.preset, known.name);
    EXPECT_EQ(&preset(known.name), &known.config);
    EXPECT_FALSE(known.summary.empty()) << known.name;
  }
  EXPECT_EQ(names.size(), published.size());
}

TEST(Presets, AnUnknownNameIsRefusedWithTheNearest) {
  try {
    preset("llama3-8b");
    FAIL() << "an unknown preset was found";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Exit::usage);
    EXPECT_STREQ(error.what(), "model.preset = \"llama3-8b\" is not a preset.");
    EXPECT_TRUE(error.advice().starts_with("Did you mean llama-3-8b? The presets are llama-3m, "))
        << error.advice();
  }
}

}  // namespace
}  // namespace plimsoll::model

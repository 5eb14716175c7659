#include "plimsoll/base/error.h"
#include "plimsoll/model/model_config.h"

namespace plimsoll::model {

namespace {

// Radford et al. 2019, "Language Models are Unsupervised Multitask Learners".
Preset gpt2(const char* name, const char* title, int64_t layers, int64_t hidden, int64_t heads) {
  ModelConfig config;
  config.preset = name;
  config.family = Family::gpt2;
  config.layers = layers;
  config.hidden = hidden;
  config.heads = heads;
  config.vocab = 50257;
  config.max_positions = 1024;
  return {name, fmt::format("{}: {} layers, hidden {}", title, layers, hidden), config};
}

struct LlamaShape {
  int64_t layers, hidden, heads, query_groups, head_dim, ffn_hidden, vocab;
  bool tied_head;
  double rope_theta;
};

Preset llama(const char* name, const char* title, const LlamaShape& shape) {
  ModelConfig config;
  config.preset = name;
  config.family = Family::llama;
  config.layers = shape.layers;
  config.hidden = shape.hidden;
  config.heads = shape.heads;
  config.query_groups = shape.query_groups;
  config.head_dim = shape.head_dim;
  config.ffn_hidden = shape.ffn_hidden;
  config.vocab = shape.vocab;
  config.tied_head = shape.tied_head;
  config.rope.theta = shape.rope_theta;
  return {name, fmt::format("{}: {} layers, hidden {}", title, shape.layers, shape.hidden), config};
}

// Dubey et al. 2024, "The Llama 3 Herd of Models": sequences of 131,072 tokens.
Preset llama3_scaled(const char* name, const char* title, const LlamaShape& shape, double factor) {
  Preset preset = llama(name, title, shape);
  preset.config.rope.scaling = RopeScaling::llama3;
  preset.config.rope.factor = factor;
  preset.config.rope.original_positions = 8192;
  return preset;
}

// Qwen2.5 Technical Report, 2024, table 1, and the config.json of each base model.
Preset qwen25(const char* name, const char* title, const LlamaShape& shape, double norm_eps) {
  Preset preset = llama(name, title, shape);
  preset.config.qkv_bias = true;
  preset.config.norm_eps = norm_eps;
  return preset;
}

// Qwen3 Technical Report, 2025, table 1, and the config.json of each model.
Preset qwen3(const char* name, const char* title, int64_t layers, int64_t hidden, int64_t heads,
             int64_t ffn_hidden, bool tied_head) {
  Preset preset =
      llama(name, title, {layers, hidden, heads, 8, 128, ffn_hidden, 151936, tied_head, 1e6});
  preset.config.qk_norm = true;
  preset.config.norm_eps = 1e-6;
  return preset;
}

}  // namespace

const std::vector<Preset>& presets() {
  // Llama shapes: layers, hidden, heads, query groups, head_dim, ffn, vocab (0: the tokenizer's),
  // tied head, RoPE theta; from the config.json of each published model.
  static const std::vector<Preset> all = {
      llama("llama-3m", "Llama, 3M on bytes", {4, 256, 8, 4, 32, 704, 0, true, 1e4}),
      llama("llama-10m", "Llama, 10M on bytes", {6, 384, 6, 3, 64, 1024, 0, true, 1e4}),
      llama("llama-25m", "Llama, 25M on bytes", {8, 512, 8, 4, 64, 1536, 0, true, 1e4}),
      llama("llama-110m", "llama2.c stories110M", {12, 768, 12, 12, 64, 2048, 32000, true, 1e4}),
      gpt2("gpt2-124m", "GPT-2 small", 12, 768, 12),
      gpt2("gpt2-355m", "GPT-2 medium", 24, 1024, 16),
      gpt2("gpt2-774m", "GPT-2 large", 36, 1280, 20),
      gpt2("gpt2-1558m", "GPT-2 XL", 48, 1600, 25),
      llama3_scaled("llama-3.2-1b", "Llama 3.2 1B", {16, 2048, 32, 8, 64, 8192, 128256, true, 5e5},
                    32),
      llama3_scaled("llama-3.2-3b", "Llama 3.2 3B", {28, 3072, 24, 8, 128, 8192, 128256, true, 5e5},
                    32),
      llama3_scaled("llama-3.1-8b", "Llama 3.1 8B",
                    {32, 4096, 32, 8, 128, 14336, 128256, false, 5e5}, 8),
      llama("llama-3-8b", "Llama 3 8B", {32, 4096, 32, 8, 128, 14336, 128256, false, 5e5}),
      llama("llama-2-7b", "Llama 2 7B", {32, 4096, 32, 32, 128, 11008, 32000, false, 1e4}),
      llama("llama-2-13b", "Llama 2 13B", {40, 5120, 40, 40, 128, 13824, 32000, false, 1e4}),
      llama("llama-34b", "Code Llama 34B", {48, 8192, 64, 8, 128, 22016, 32000, false, 1e6}),
      llama("llama-64b", "Llama, 64B, between Llama 3 8B and 70B",
            {72, 8192, 64, 8, 128, 28672, 128256, false, 5e5}),
      llama("mistral-7b", "Mistral 7B v0.3", {32, 4096, 32, 8, 128, 14336, 32768, false, 1e6}),
      llama("smollm2-135m", "SmolLM2 135M", {30, 576, 9, 3, 64, 1536, 49152, true, 1e5}),
      llama("smollm2-360m", "SmolLM2 360M", {32, 960, 15, 5, 64, 2560, 49152, true, 1e5}),
      llama("smollm2-1.7b", "SmolLM2 1.7B", {24, 2048, 32, 32, 64, 8192, 49152, true, 1.3e5}),
      qwen25("qwen2.5-0.5b", "Qwen2.5 0.5B", {24, 896, 14, 2, 64, 4864, 151936, true, 1e6}, 1e-6),
      qwen25("qwen2.5-1.5b", "Qwen2.5 1.5B", {28, 1536, 12, 2, 128, 8960, 151936, true, 1e6}, 1e-6),
      qwen25("qwen2.5-3b", "Qwen2.5 3B", {36, 2048, 16, 2, 128, 11008, 151936, true, 1e6}, 1e-6),
      qwen25("qwen2.5-7b", "Qwen2.5 7B", {28, 3584, 28, 4, 128, 18944, 152064, false, 1e6}, 1e-6),
      qwen25("qwen2.5-14b", "Qwen2.5 14B", {48, 5120, 40, 8, 128, 13824, 152064, false, 1e6}, 1e-5),
      qwen25("qwen2.5-32b", "Qwen2.5 32B", {64, 5120, 40, 8, 128, 27648, 152064, false, 1e6}, 1e-5),
      qwen3("qwen3-0.6b", "Qwen3 0.6B", 28, 1024, 16, 3072, true),
      qwen3("qwen3-1.7b", "Qwen3 1.7B", 28, 2048, 16, 6144, true),
      qwen3("qwen3-4b", "Qwen3 4B", 36, 2560, 32, 9728, true),
      qwen3("qwen3-8b", "Qwen3 8B", 36, 4096, 32, 12288, false),
      qwen3("qwen3-14b", "Qwen3 14B", 40, 5120, 40, 17408, false),
      qwen3("qwen3-32b", "Qwen3 32B", 64, 5120, 64, 25600, false),
  };
  return all;
}

const ModelConfig& preset(const std::string& name) {
  std::vector<std::string> names;
  for (const Preset& known : presets()) {
    if (known.name == name) return known.config;
    names.push_back(known.name);
  }
  const std::string close = nearest(name, names);
  throw Error(Exit::usage, fmt::format("model.preset = \"{}\" is not a preset.", name),
              fmt::format("{}The presets are {}.",
                          close.empty() ? "" : fmt::format("Did you mean {}? ", close),
                          fmt::join(names, ", ")));
}

}  // namespace plimsoll::model

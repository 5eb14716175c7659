#include "plimsoll/train/generate.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "plimsoll/base/limits.h"
#include "plimsoll/base/shell.h"
#include "plimsoll/checkpoint/checkpoint.h"
#include "plimsoll/config/config.h"
#include "plimsoll/data/token_source.h"
#include "plimsoll/data/tokenizer.h"
#include "plimsoll/data/utf8.h"
#include "plimsoll/numerics/random.h"
#include "plimsoll/runtime/cpu/cpu_backend.h"
#include "plimsoll/runtime/cpu/threads.h"
#include "plimsoll/runtime/executor.h"
#include "plimsoll/train/run_checkpoints.h"
#include "plimsoll/train/training_state.h"

namespace plimsoll::train {

namespace {

void check_options(const GenerateOptions& options) {
  if (options.prompt.empty()) {
    throw Error(Exit::usage, "--prompt is empty.", "Give the text to continue.");
  }
  if (options.tokens < 1) {
    throw Error(Exit::usage, fmt::format("--tokens = {} is not positive.", options.tokens),
                "Ask for at least one token.");
  }
  if (!(options.temperature >= 0) || options.top_k < 0) {
    throw Error(Exit::usage, "--temperature and --top-k must not be negative.",
                "Use 0 to always take the likeliest token, or to draw from all.");
  }
  if (options.threads < 0 || options.threads > 4096) {
    throw Error(Exit::usage, fmt::format("--threads = {} is out of range.", options.threads),
                "Write an integer from 0 to 4096; 0: one a core.");
  }
}

// Bytes and the end of a text: the ids that stand for something, of a vocabulary that may be
// padded.
constexpr int64_t kIdsWithText = data::kEndOfText + 1;

// Whether the tokens of the run are the byte tokenizer's. Checkpoints of before say nothing; then
// the corpus does, and if that is gone, its vocabulary.
bool tokens_are_bytes(const config::Config& config, const nlohmann::json& extra) {
  if (extra.is_object() && extra.contains(tokenizer_key)) {
    return extra.at(tokenizer_key) == byte_tokenizer;
  }
  if (config.data.format != "auto") return config.data.format == "text";
  try {
    return data::open_tokens(config.data.train).format() == data::TokenFormat::text;
  } catch (const Error&) {
    return config.model.vocab == data::kByteVocabulary;
  }
}

void require_text(const std::filesystem::path& run, const config::Config& config,
                  const nlohmann::json& extra, std::string_view prompt) {
  if (!tokens_are_bytes(config, extra)) {
    throw Error(Exit::usage, fmt::format("{} was trained on token ids, not on text.", run.string()),
                "generate writes text of the byte tokenizer only: the ids' meaning is known to the "
                "tool that made them.");
  }
  for (const char byte : prompt) {
    if (static_cast<uint8_t>(byte) < config.model.vocab) continue;
    throw Error(Exit::usage,
                fmt::format("--prompt has the byte {}, outside the model's vocabulary of {}.",
                            static_cast<uint8_t>(byte), config.model.vocab),
                "Use other letters.");
  }
}

void require_memory(Bytes needed, const runtime::Backend& backend) {
  const auto [usable, source] = backend.capacity();
  if (needed <= usable) return;
  throw Error(Exit::does_not_fit,
              fmt::format("This does not fit: {} needed, {} usable ({}).", to_text(needed),
                          to_text(usable), source),
              "Free some memory, or generate on a larger machine.");
}

void require_finite(std::span<const float> logits, const std::filesystem::path& checkpoint) {
  if (std::ranges::all_of(logits, [](float x) { return std::isfinite(x); })) return;
  throw Error(Exit::data,
              fmt::format("The logits are not finite with the weights of {}.", checkpoint.string()),
              "The training has diverged, or the weights are damaged: use an earlier checkpoint.");
}

checkpoint::Found require_checkpoint(const std::filesystem::path& run,
                                     const config::Config& config) {
  const std::optional<checkpoint::Found> found =
      checkpoint::newest_valid(checkpoint_root(config, run));
  if (!found) {
    throw Error(Exit::data, fmt::format("{} has no checkpoint yet.", run.string()),
                "Let the run reach one: plimsoll train --resume " + shell_quoted(run.string()));
  }
  return *found;
}

checkpoint::Shard weights_shard(const step::Inference& inference,
                                const runtime::Executor& executor) {
  checkpoint::Shard shard = {.file = weights_file};
  for (const step::ParameterTensors& p : inference.parameters) {
    shard.tensors.push_back(named_tensor(inference.program, &executor, p.parameter.name,
                                         shape_of(p.parameter), p.compute));
  }
  return shard;
}

}  // namespace

int32_t draw(std::span<const float> logits, double temperature, int64_t top_k, double uniform) {
  std::vector<int32_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    return logits[static_cast<size_t>(a)] > logits[static_cast<size_t>(b)];
  });
  if (temperature == 0) return order.front();
  if (top_k > 0 && top_k < static_cast<int64_t>(order.size())) {
    order.resize(static_cast<size_t>(top_k));
  }
  const double largest = logits[static_cast<size_t>(order.front())];
  std::vector<double> cumulative;
  double sum = 0;
  for (const int32_t token : order) {
    sum += std::exp((logits[static_cast<size_t>(token)] - largest) / temperature);
    cumulative.push_back(sum);
  }
  const auto chosen = std::upper_bound(cumulative.begin(), cumulative.end(), uniform * sum);
  const size_t index = std::min(order.size() - 1, static_cast<size_t>(chosen - cumulative.begin()));
  return order[index];
}

void generate(const std::filesystem::path& run_path, const GenerateOptions& options,
              std::ostream& out, std::ostream& notes) {
  check_options(options);
  const std::filesystem::path config_path = run_path / "run.toml";
  if (!std::filesystem::is_regular_file(config_path)) {
    throw Error(Exit::usage,
                fmt::format("{} is not a run directory: it has no run.toml.", run_path.string()),
                "Name the directory that `plimsoll train` printed at its end.");
  }
  const config::Config config = config::resolve(config::read_config(config_path, {}));
  checkpoint::Found found = require_checkpoint(run_path, config);
  require_text(run_path, config, found.state.extra, options.prompt);

  const int64_t context = config.step.sequence_length;
  const auto backend = cpu::make_cpu_backend(options.threads);
  step::Inference inference = step::build_inference(config.model, step::Precision::fp32, context);
  inference.program = runtime::with_workspaces(std::move(inference.program), *backend);
  const step::MemoryPlan plan = step::plan_memory(inference.program);
  require_memory(plan.arena, *backend);
  cpu::start_threads(options.threads);
  require_address_space(plan.arena);
  const runtime::Executor executor(inference.program, plan, *backend);
  const checkpoint::Shard shard = weights_shard(inference, executor);
  for (;;) {
    try {
      checkpoint::load_checkpoint(found, std::span(&shard, 1));
      break;
    } catch (const Error& error) {
      // A run that is still going may have removed it for a newer one.
      if (error.code() != Exit::data || std::filesystem::exists(found.path)) throw;
      found = require_checkpoint(run_path, config);
    }
  }
  for (const std::string& damaged : found.damaged) notes << "passed over: " << damaged << '\n';
  executor.run(step::Phase::setup);

  std::vector<int32_t> window(static_cast<size_t>(context));
  std::vector<float> logits(static_cast<size_t>(config.model.vocab));
  std::vector<int32_t> tokens = data::encode(options.prompt);
  data::Utf8Stream text;
  out << text.push(options.prompt) << std::flush;
  for (int64_t i = 0; i < options.tokens && out; ++i) {
    if (static_cast<int64_t>(tokens.size()) > context) {
      tokens.erase(tokens.begin(), tokens.end() - std::max<int64_t>(1, context / 2));
    }
    std::copy(tokens.begin(), tokens.end(), window.begin());
    executor.write(inference.tokens, window);
    const int last = static_cast<int>(tokens.size()) - 1;
    executor.run(inference.begin, inference.body);
    executor.run(inference.body + last, inference.body + last + 1);
    const Philox random = philox({static_cast<uint32_t>(i), static_cast<uint32_t>(i >> 32), 0, 0},
                                 {static_cast<uint32_t>(options.seed),
                                  0x67656e65 ^ static_cast<uint32_t>(options.seed >> 32)});
    executor.read(inference.logits, logits);
    require_finite(logits, found.path);
    const auto with_text =
        std::span(logits).first(std::min(logits.size(), static_cast<size_t>(kIdsWithText)));
    const int32_t next = draw(with_text, options.temperature, options.top_k, uniform(random[0]));
    if (next == data::kEndOfText) break;
    tokens.push_back(next);
    out << text.push(data::decode(std::span(&next, 1))) << std::flush;
  }
  out << text.finish() << '\n';
}

}  // namespace plimsoll::train

#include "plimsoll/train/generate.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "plimsoll/checkpoint/checkpoint.h"
#include "plimsoll/config/config.h"
#include "plimsoll/data/tokenizer.h"
#include "plimsoll/numerics/random.h"
#include "plimsoll/runtime/cpu/cpu_backend.h"
#include "plimsoll/runtime/executor.h"
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
}

checkpoint::Found require_checkpoint(const std::filesystem::path& run) {
  if (!std::filesystem::exists(run / "run.toml")) {
    throw Error(Exit::usage,
                fmt::format("{} is not a run directory: it has no run.toml.", run.string()),
                "Name the directory that `plimsoll train` printed at its end.");
  }
  const std::optional<checkpoint::Found> found = checkpoint::newest_valid(run / "checkpoints");
  if (!found) {
    throw Error(Exit::data, fmt::format("{} has no checkpoint yet.", run.string()),
                "Let the run reach one: plimsoll train --resume " + run.string());
  }
  return *found;
}

checkpoint::Shard weights_shard(const step::Inference& inference,
                                const runtime::Executor& executor) {
  checkpoint::Shard shard = {.file = weights_file};
  for (const step::ParameterTensors& p : inference.parameters) {
    std::vector<int64_t> shape = {p.parameter.columns};
    if (p.parameter.matrix) shape.insert(shape.begin(), p.parameter.rows);
    shard.tensors.push_back(
        {p.parameter.name, shape, Format::f32, executor.view(p.compute).bytes()});
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
              std::ostream& out) {
  check_options(options);
  const checkpoint::Found found = require_checkpoint(run_path);
  const config::Config config = config::resolve(config::read_config(run_path / "run.toml", {}));
  if (config.model.vocab != data::kByteVocabulary) {
    throw Error(Exit::usage,
                fmt::format("{} was trained on token ids of a vocabulary of {}, not on bytes.",
                            run_path.string(), config.model.vocab),
                "generate writes text of the byte tokenizer only.");
  }
  const int64_t context = config.step.sequence_length;
  const auto backend = cpu::make_cpu_backend(options.threads);
  step::Inference inference = step::build_inference(config.model, step::Precision::fp32, context);
  inference.program = runtime::with_workspaces(std::move(inference.program), *backend);
  const step::MemoryPlan plan = step::plan_memory(inference.program);
  const runtime::Arena arena(plan.arena);
  const runtime::Executor executor(inference.program, plan, *backend, arena);
  const checkpoint::Shard shard = weights_shard(inference, executor);
  checkpoint::load_checkpoint(found, std::span(&shard, 1));
  executor.run(step::Phase::setup);

  const std::span<int32_t> window = executor.view(inference.tokens).span<int32_t>();
  std::vector<int32_t> tokens = data::encode(options.prompt);
  out << options.prompt << std::flush;
  for (int64_t i = 0; i < options.tokens; ++i) {
    if (static_cast<int64_t>(tokens.size()) > context) {
      tokens.erase(tokens.begin(), tokens.end() - std::max<int64_t>(1, context / 2));
    }
    std::copy(tokens.begin(), tokens.end(), window.begin());
    const int last = static_cast<int>(tokens.size()) - 1;
    executor.run(inference.begin, inference.body);
    executor.run(inference.body + last, inference.body + last + 1);
    const Philox random = philox({static_cast<uint32_t>(i), 0, 0, 0},
                                 {static_cast<uint32_t>(options.seed), 0x67656e65});
    const std::span<float> logits = executor.view(inference.logits).span<float>();
    const int32_t next = draw(logits, options.temperature, options.top_k, uniform(random[0]));
    if (next == data::kEndOfText) break;
    tokens.push_back(next);
    out << data::decode(std::span(&next, 1)) << std::flush;
  }
  out << '\n';
}

}  // namespace plimsoll::train

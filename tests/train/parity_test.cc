// Whole models against PyTorch: the golden files and what is in them, tests/golden/README.md.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "plimsoll/checkpoint/safetensors.h"
#include "tests/train/step_under_test.h"

namespace plimsoll::train {
namespace {

class Golden {
 public:
  explicit Golden(const std::string& name)
      : file_(std::filesystem::path(PLIMSOLL_TEST_DATA) / (name + ".safetensors")) {}

  const std::string& text(const char* key) const { return file_.metadata().at(key); }
  int64_t integer(const char* key) const { return std::stoll(text(key)); }
  double real(const char* key) const { return std::stod(text(key)); }
  bool flag(const char* key) const { return text(key) == "true"; }

  template <class T>
  std::vector<T> values(const std::string& name) const {
    const checkpoint::StoredTensor* tensor = file_.find(name);
    if (tensor == nullptr) throw std::runtime_error("no golden tensor " + name);
    std::vector<T> values(tensor->bytes.size() / sizeof(T));
    std::memcpy(values.data(), tensor->bytes.data(), tensor->bytes.size());
    return values;
  }

  model::ModelConfig model() const {
    return model::resolve(
        {.family = text("family") == "gpt2" ? model::Family::gpt2 : model::Family::llama,
         .layers = integer("layers"),
         .hidden = integer("hidden"),
         .heads = integer("heads"),
         .query_groups = integer("query_groups"),
         .head_dim = integer("head_dim"),
         .ffn_hidden = integer("ffn_hidden"),
         .vocab = integer("vocab"),
         .max_positions = integer("max_positions"),
         .tied_head = flag("tied_head"),
         .qk_norm = flag("qk_norm"),
         .norm_eps = real("norm_eps"),
         .rope = {.theta = real("rope_theta")}});
  }

  step::OptimizerConfig optimizer() const {
    return {.beta1 = real("beta1"),
            .beta2 = real("beta2"),
            .eps = real("eps"),
            .weight_decay = real("weight_decay"),
            .clip_norm = real("clip_norm")};
  }

 private:
  checkpoint::SafetensorsFile file_;
};

// The largest difference, relative to the largest golden value of the tensor.
double relative_error(std::span<const float> values, const std::vector<float>& golden) {
  EXPECT_EQ(values.size(), golden.size());
  double largest = 0, difference = 0;
  for (size_t i = 0; i < golden.size(); ++i) {
    largest = std::max(largest, std::abs(static_cast<double>(golden[i])));
    difference = std::max(difference, std::abs(static_cast<double>(values[i]) - golden[i]));
  }
  return difference / std::max(largest, 1e-30);
}

// Chunks that do not divide the tokens, and micro-batches of one sequence or of all.
struct Case {
  std::string model;
  int64_t micro_batch;
  int64_t head_chunk;
};

class Parity : public ::testing::TestWithParam<Case> {
 protected:
  Parity() : golden_(GetParam().model) {}

  step::StepConfig config() const {
    return {.precision = step::Precision::fp32,
            .micro_batch = GetParam().micro_batch,
            .global_batch = golden_.integer("micro_batch"),
            .sequence_length = golden_.integer("sequence_length"),
            .head_chunk = GetParam().head_chunk};
  }

  void load_weights(StepUnderTest& run) const {
    for (const step::ParameterTensors& p : run.step.parameters) {
      const auto weights = golden_.values<float>("weights/" + p.parameter.name);
      ASSERT_EQ(weights.size(), run.floats(p.master).size()) << p.parameter.name;
      std::copy(weights.begin(), weights.end(), run.floats(p.master).begin());
    }
    run.executor->run(step::Phase::setup);
  }

  // Runs the micro-steps of golden step `number`; returns the mean loss.
  double accumulate(StepUnderTest& run, size_t number) const {
    const auto tokens = golden_.values<int32_t>("tokens");
    const auto targets = golden_.values<int32_t>("targets");
    const size_t micro = run.ids(run.step.tokens).size();
    const size_t global = tokens.size() / static_cast<size_t>(golden_.integer("steps"));
    double loss = 0;
    for (size_t begin = 0; begin < global; begin += micro) {
      const size_t at = number * global + begin;
      std::copy_n(tokens.begin() + static_cast<int64_t>(at), micro,
                  run.ids(run.step.tokens).begin());
      std::copy_n(targets.begin() + static_cast<int64_t>(at), micro,
                  run.ids(run.step.targets).begin());
      run.executor->run_micro_step();
      loss += run.mean_loss() * static_cast<double>(micro) / static_cast<double>(global);
    }
    return loss;
  }

  Golden golden_;
};

TEST_P(Parity, OfLossAndEveryGradientWithPyTorch) {
  StepUnderTest run(golden_.model(), config(), golden_.optimizer());
  load_weights(run);
  const double loss = accumulate(run, 0);
  EXPECT_NEAR(loss / golden_.values<float>("losses")[0], 1, 1e-5);
  for (const step::ParameterTensors& p : run.step.parameters) {
    const auto golden = golden_.values<float>("gradients/" + p.parameter.name);
    EXPECT_LE(relative_error(run.floats(p.gradient), golden), 1e-4) << p.parameter.name;
  }
}

TEST_P(Parity, OfTenAdamWStepsWithPyTorch) {
  StepUnderTest run(golden_.model(), config(), golden_.optimizer());
  load_weights(run);
  const auto losses = golden_.values<float>("losses");
  const auto norms = golden_.values<float>("grad_norms");
  for (size_t i = 0; i < losses.size(); ++i) {
    EXPECT_NEAR(accumulate(run, i) / losses[i], 1, 1e-5) << "step " << i + 1;
    run.executor->write(run.step.settings,
                        std::array{static_cast<float>(golden_.real("learning_rate")),
                                   static_cast<float>(1 - std::pow(golden_.real("beta1"), i + 1)),
                                   static_cast<float>(1 - std::pow(golden_.real("beta2"), i + 1))});
    run.executor->run(step::Phase::optimizer);
    EXPECT_NEAR(run.floats(run.step.clip)[0] / norms[i], 1, 1e-4) << "step " << i + 1;
  }
  const int64_t hidden = golden_.integer("hidden");
  for (const step::ParameterTensors& p : run.step.parameters) {
    auto golden = golden_.values<float>("final/" + p.parameter.name);
    auto weights = run.floats(p.master);
    const std::string& name = p.parameter.name;
    if (name.ends_with("qkv.bias")) {
      // The key biases have no gradient but rounding noise (tests/golden/README.md).
      std::copy_n(golden.begin() + hidden, hidden, weights.begin() + hidden);
    }
    EXPECT_LE(relative_error(weights, golden), 1e-4) << name;
  }
}

TEST_P(Parity, OfLogitsWithPyTorch) {
  if (GetParam().micro_batch != 1) GTEST_SKIP() << "one inference a model";
  const int64_t sequence = golden_.integer("sequence_length");
  const auto backend = runtime::make_test_backend(2);
  step::Inference inference =
      step::build_inference(golden_.model(), step::Precision::fp32, sequence);
  inference.program = runtime::with_workspaces(std::move(inference.program), *backend);
  const step::MemoryPlan plan = step::plan_memory(inference.program);
  const runtime::Executor executor(inference.program, plan, *backend);
  for (const step::ParameterTensors& p : inference.parameters) {
    const auto weights = golden_.values<float>("weights/" + p.parameter.name);
    executor.write(p.compute, weights);
  }
  executor.run(step::Phase::setup);
  const auto tokens = golden_.values<int32_t>("tokens");
  const auto logits = golden_.values<float>("logits");
  executor.write(inference.tokens, std::span(tokens).first(static_cast<size_t>(sequence)));
  executor.run(inference.begin, inference.body);
  for (int64_t i = 0; i < sequence; ++i) {
    executor.run(inference.body + static_cast<int>(i), inference.body + static_cast<int>(i) + 1);
    const runtime::HostValues<float> row(executor, inference.program, inference.logits);
    const int64_t vocab = static_cast<int64_t>(row.size());
    const std::vector<float> golden(logits.begin() + i * vocab, logits.begin() + (i + 1) * vocab);
    EXPECT_LE(relative_error(row, golden), 1e-5) << "token " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Models, Parity,
                         ::testing::Values(Case{"gpt2", 2, 64}, Case{"gpt2", 1, 7},
                                           Case{"llama", 2, 64}, Case{"llama", 1, 7},
                                           Case{"qwen3", 2, 64}, Case{"qwen3", 1, 7}),
                         [](const auto& info) {
                           return info.param.model + "_" + std::to_string(info.param.micro_batch);
                         });

}  // namespace
}  // namespace plimsoll::train

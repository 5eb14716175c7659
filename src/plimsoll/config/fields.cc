#include "plimsoll/config/fields.h"

#include <algorithm>
#include <cmath>

#include "plimsoll/base/names.h"
#include "plimsoll/data/token_format.h"

namespace plimsoll::config {

namespace {

template <class Enum>
std::vector<std::string> names_of() {
  std::vector<std::string> names;
  for (const Enum value : values_of<Enum>()) names.emplace_back(name(value));
  return names;
}

template <class Enum>
Enum value_of(const std::string& text) {
  for (const Enum value : values_of<Enum>()) {
    if (name(value) == text) return value;
  }
  throw Error(Exit::bug, fmt::format("no value is called {}", text));
}

template <class Enum>
Choice choice(Enum& field) {
  return {names_of<Enum>(), [&field] { return std::string(name(field)); },
          [&field](const std::string& text) { field = value_of<Enum>(text); }};
}

// A feature that the model's family sets while it is left open.
template <class Enum>
Choice choice(std::optional<Enum>& field) {
  std::vector<std::string> names = names_of<Enum>();
  names.emplace_back(kOfFamily);
  return {std::move(names), [&field] { return std::string(field ? name(*field) : kOfFamily); },
          [&field](const std::string& text) {
            field = text == kOfFamily ? std::nullopt : std::optional(value_of<Enum>(text));
          }};
}

Choice choice(std::string& field, std::vector<std::string> names) {
  return {std::move(names), [&field] { return field; },
          [&field](const std::string& name) { field = name; }};
}

Bounds from(double min, double max) { return {min, max, false, false}; }
Bounds at_least(double min) { return {.min = min}; }
Bounds above(double min) { return {.min = min, .above_min = true}; }
constexpr Bounds fraction = {0, 1, false, false};
constexpr Bounds fraction_below_one = {0, 1, false, true};

// Upper bounds keep products of two sizes, and of a size and a count, inside 64 bits.
constexpr double kLargestSize = 1 << 24;
constexpr double kMostLayers = 10000;
constexpr double kMostSteps = 1e9;

Table describe(model::ModelConfig& m) {
  const Bounds size = from(1, kLargestSize);
  const Bounds derived = from(0, kLargestSize);
  return {
      "model",
      "The shape of the model.",
      {{"preset", &m.preset,
        "published shape to start from; the other keys of [model] override it. "
        "--set model.preset replaces all of [model] in the file"},
       {"family", choice(m.family),
        "sets the features that are left open. llama: RMSNorm, RoPE, SwiGLU, no biases; gpt2: "
        "LayerNorm, learned positions, GELU, biases. Given, it resets those of a preset or file"},
       {"norm", choice(m.norm), "every normalisation; layer: LayerNorm with a bias"},
       {"positions", choice(m.positions),
        "rope: queries and keys are rotated; learned: a table is added to the embedding"},
       {"activation", choice(m.activation),
        "between the products of the MLP; GELU is the tanh form"},
       {"qkv_bias", &m.qkv_bias, "queries, keys and values have biases"},
       {"output_bias", &m.output_bias, "attention's output product has a bias"},
       {"mlp_bias", &m.mlp_bias, "the products of the MLP have biases"},
       {"layers", &m.layers, "transformer layers", from(1, kMostLayers)},
       {"hidden", &m.hidden, "width of the residual stream", size},
       {"heads", &m.heads, "query heads", size},
       {"query_groups", &m.query_groups, "key and value heads; 0: as many as heads", derived},
       {"head_dim", &m.head_dim, "width of a head; 0: hidden / heads", derived},
       {"ffn_hidden", &m.ffn_hidden,
        "width inside the MLP; 0: 4 x hidden (gelu), 8/3 x hidden rounded up to 64 (gated)",
        derived},
       {"vocab", &m.vocab, "tokens in the vocabulary; 0: the byte tokenizer's 264", derived},
       {"max_positions", &m.max_positions,
        "rows of the learned position table; 0: the sequence length", derived},
       {"tied_head", &m.tied_head, "the head reads the token embedding"},
       {"qk_norm", &m.qk_norm, "RMSNorm on every query and key head, as in Qwen3"},
       {"norm_eps", &m.norm_eps, "added to the variance in every normalisation", above(0)},
       {"rope_theta", &m.rope.theta,
        "base of the rotary frequencies; given, it resets the rope_* keys of a preset or file",
        above(0)},
       {"rope_scaling", choice(m.rope.scaling),
        "for sequences longer than a model was made for; the formulas of Hugging Face"},
       {"rope_factor", &m.rope.factor, "how many times longer sequences become", above(0)},
       {"rope_original_positions", &m.rope.original_positions,
        "llama3, yarn: the sequence length before the scaling", derived},
       {"rope_low_freq_factor", &m.rope.low_freq_factor,
        "llama3: waves longer than the original length over this are scaled whole", above(0)},
       {"rope_high_freq_factor", &m.rope.high_freq_factor,
        "llama3: waves shorter than the original length over this are not scaled", above(0)},
       {"rope_beta_fast", &m.rope.beta_fast,
        "yarn: pairs with more turns in the original length are not scaled", above(0)},
       {"rope_beta_slow", &m.rope.beta_slow,
        "yarn: pairs with fewer turns in the original length are scaled whole", above(0)},
       {"rope_attention_factor", &m.rope.attention_factor,
        "yarn: amplitude of the rotation; 0: 0.1 ln(rope_factor) + 1", at_least(0)},
       {"sliding_window", &m.sliding_window,
        "tokens that attention looks back on; only 0, the whole sequence, for now", derived},
       {"init_std", &m.init_std,
        "standard deviation of initial weights; into the residual stream: / sqrt(2 layers)",
        at_least(0)}}};
}

Table describe(step::StepConfig& s) {
  const Bounds derived = from(0, kLargestSize);
  return {"step",
          "The training step: numbers and batch.",
          {{"precision", choice(s.precision),
            "bf16: weights and activations in bf16, master weights, gradients and moments in fp32"},
           {"micro_batch", &s.micro_batch, "sequences computed at once", from(1, kLargestSize)},
           {"global_batch", &s.global_batch,
            "sequences in an optimizer step, a multiple of micro_batch; 0: micro_batch", derived},
           {"sequence_length", &s.sequence_length, "tokens in a sequence; 0: 256", derived},
           {"head_chunk", &s.head_chunk,
            "tokens whose logits exist at once; 0: as many as make about 32 MiB", derived},
           {"ffn_chunk", &s.ffn_chunk,
            "tokens whose inner FFN activations exist at once, computed again in the backward; "
            "best a multiple of 256; 0: all",
            derived},
           {"checkpointing", &s.checkpointing,
            "activations dropped and recomputed: none, full, layers:K, selective:NAMES, "
            "budget:SIZE or budget:auto"}}};
}

Table describe(step::RecipeConfig& r) {
  const Bounds count = from(0, kMostSteps);
  return {
      "recipe",
      "Reduced precision of the linear layers' products; docs/precision.md.",
      {{"name", choice(r.name),
        "number format and scaling of the operands; none: step.precision alone"},
       {"first_bf16", &r.first_bf16, "first layers whose products stay in bf16",
        from(0, kMostLayers)},
       {"last_bf16", &r.last_bf16,
        "last layers whose products stay in bf16; -1: 15 % of the layers for nvfp4, else none",
        from(-1, kMostLayers)},
       {"bf16_layers", &r.bf16_layers,
        "weights whose products stay in bf16: names or patterns with *, with commas between, for "
        "example \"*.attention.*, layers.0.mlp.down.weight\""},
       {"gradient_format", choice(r.gradient_format),
        "8 bit format of the output gradients; published: e5m2 for fp8_delayed and fp8_current, "
        "else e4m3"},
       {"margin", &r.margin, "fp8_delayed: scales are 2^margin smaller", from(0, 32)},
       {"history", &r.history, "fp8_delayed: steps whose largest magnitudes are remembered",
        from(1, 1 << 20)},
       {"algorithm", choice(r.algorithm),
        "fp8_delayed: which of the remembered magnitudes sets the scale"},
       {"power_of_two", &r.power_of_two, "fp8_current: scales are powers of two"},
       {"mx_rule", choice(r.mx_rule),
        "mxfp8: rounding of the block scale; floor is OCP's rule, which saturates"},
       {"variant", choice(r.variant), "nvfp4: whose arithmetic of the block scale"},
       {"hadamard", &r.hadamard,
        "nvfp4: Hadamard transform of both operands of the weight gradient"},
       {"stochastic_rounding", &r.stochastic_rounding,
        "nvfp4: output gradients are rounded stochastically"},
       {"weight_tiles", &r.weight_tiles, "nvfp4: scales of weights for 16x16 tiles, else 1x16"},
       {"cache_weights", &r.cache_weights,
        "quantised weights are kept from one optimizer step to the next; false: made for each use"},
       {"bf16_weights", &r.bf16_weights,
        "bf16 weights are kept beside the quantised ones; false needs cache_weights"},
       {"statistics_every", &r.statistics_every,
        "steps between quantisation statistics in metrics.jsonl; 0: never", count},
       {"loss_scale_log2", &r.loss_scale_log2, "fp16: the first loss scale is 2 to this",
        from(0, 126)},
       {"loss_scale_growth", &r.loss_scale_growth,
        "fp16: steps without overflow until the loss scale doubles", from(1, kMostSteps)}}};
}

Table describe(step::OptimizerConfig& o) {
  return {
      "optimizer",
      "AdamW.",
      {{"beta1", &o.beta1, "decay of the first moment", fraction_below_one},
       {"beta2", &o.beta2, "decay of the second moment", fraction_below_one},
       {"eps", &o.eps, "added to the root of the second moment", above(0)},
       {"weight_decay", &o.weight_decay, "decoupled weight decay, on matrices only", at_least(0)},
       {"moments", choice(o.moments),
        "format of both moments; bf16 halves them and rounds every update to 8 bits"},
       {"clip_norm", &o.clip_norm, "bound on the global gradient norm; 0: none", at_least(0)}}};
}

Table describe(ScheduleConfig& s) {
  return {"schedule",
          "The learning rate over the run.",
          {{"lr", &s.lr, "peak learning rate", at_least(0)},
           {"min_lr_fraction", &s.min_lr_fraction,
            "learning rate at the end, as a fraction of the peak", fraction},
           {"warmup_steps", &s.warmup_steps, "steps of linear warm-up from 0", from(0, kMostSteps)},
           {"decay", choice(s.decay),
            "from the peak to the end; wsd: constant, then linear over decay_fraction"},
           {"decay_fraction", &s.decay_fraction,
            "share of the steps in the final linear decay of wsd; 0: none", fraction}}};
}

Table describe(DataConfig& d) {
  return {"data",
          "What the model reads.",
          {{"train", &d.train,
            "file to train on: text, gzip text, llm.c .bin, nanoGPT .bin or .tokens"},
           {"validation", &d.validation,
            "file to evaluate on; empty: the end of train, validation_fraction of it"},
           {"validation_fraction", &d.validation_fraction,
            "share of train held out when validation is empty; 0: none, trained without a held-out "
            "loss",
            fraction_below_one},
           {"format", choice(d.format, data::format_names()),
            "format of the files; auto: found from the content"}}};
}

Table describe(TrainConfig& t) {
  return {
      "train",
      "The run.",
      {{"steps", &t.steps, "optimizer steps", from(1, kMostSteps)},
       {"seed", &t.seed, "seed of the initial weights and of the order of the data", at_least(0)},
       {"perturb_weights", &t.perturb_weights,
        "initial weights are one ulp larger; shows how far rounding alone drives two runs apart"},
       {"threads", &t.threads, "CPU threads; 0: all cores", from(0, 4096)},
       {"eval_every", &t.eval_every, "steps between evaluations; 0: only at the end",
        from(0, kMostSteps)},
       {"eval_sequences", &t.eval_sequences,
        "held-out sequences in an evaluation, spread evenly over them: the same ones at every "
        "evaluation, however they are batched",
        from(1, kMostSteps)},
       {"eval_batches", &t.eval_batches,
        "eval_sequences, given in global batches; 0: eval_sequences says it", from(0, kMostSteps)},
       {"memory_limit", &t.memory_limit,
        "memory the run may use, for example \"12 GiB\"; empty: what the machine has available"},
       {"run_directory", &t.run_directory,
        "where the run is written; empty: runs/ and the name of the config file"}}};
}

Table describe(CheckpointConfig& c) {
  return {"checkpoint",
          "What is kept of the run.",
          {{"every", &c.every, "steps between checkpoints; 0: only at the end and on a signal",
            from(0, kMostSteps)},
           {"keep_last", &c.keep_last, "checkpoints kept, the newest; 0: all", from(0, kMostSteps)},
           {"in_background", choice(c.in_background),
            "write beside the compute, from a copy in memory; auto: where the copy fits beside the "
            "rest"},
           {"directory", &c.directory,
            "where they are kept, for example a folder that is copied to another machine; empty: "
            "checkpoints in the run directory"}}};
}

// A whole number without exponent, anything else in its shortest form.
std::string bound_text(double bound) {
  return bound == std::trunc(bound) ? fmt::format("{:.0f}", bound) : fmt::format("{}", bound);
}

std::string range_text(const Bounds& range) {
  const bool has_min = std::isfinite(range.min);
  const bool has_max = std::isfinite(range.max);
  if (has_min && has_max) {
    return fmt::format(" from {} to {}{}", bound_text(range.min), range.below_max ? "below " : "",
                       bound_text(range.max));
  }
  if (!has_min) return "";
  return range.above_min ? fmt::format(" above {}", bound_text(range.min))
                         : fmt::format(" of {} or more", bound_text(range.min));
}

// `visit` with the pointed-to value, or the Choice.
template <class Visit>
auto visit_value(const Field& field, Visit&& visit) {
  return std::visit(
      [&](const auto& value) {
        if constexpr (std::is_pointer_v<std::decay_t<decltype(value)>>) {
          return visit(*value);
        } else {
          return visit(value);
        }
      },
      field.value);
}

template <class... Functions>
struct Overloaded : Functions... {
  using Functions::operator()...;
};
template <class... Functions>  // clang 14 does not find it by itself
Overloaded(Functions...)->Overloaded<Functions...>;

}  // namespace

bool Bounds::contains(double value) const {
  return std::isfinite(value) && (above_min ? value > min : value >= min) &&
         (below_max ? value < max : value <= max);
}

std::vector<Table> tables(Config& config) {
  return {describe(config.model),     describe(config.step),      describe(config.recipe),
          describe(config.optimizer), describe(config.schedule),  describe(config.data),
          describe(config.train),     describe(config.checkpoint)};
}

bool Choice::has_booleans() const { return std::ranges::count(names, "true") > 0; }

std::string wanted(const Field& field) {
  return visit_value(field,
                     Overloaded{[](bool) { return std::string("true or false"); },
                                [](const std::optional<bool>&) {
                                  return fmt::format("true, false or \"{}\"", kOfFamily);
                                },
                                [](const std::string&) { return std::string("a string"); },
                                [&](double) { return "a number" + range_text(field.range); },
                                [&](int64_t) { return "an integer" + range_text(field.range); },
                                [&](int) { return "an integer" + range_text(field.range); },
                                [](const Choice& choice) {
                                  return fmt::format("one of {}", fmt::join(choice.names, ", "));
                                }});
}

std::string toml_text(const Field& field) {
  return visit_value(field,
                     Overloaded{[](bool value) { return fmt::format("{}", value); },
                                [](const std::optional<bool>& value) {
                                  return value ? fmt::format("{}", *value) : toml_string(kOfFamily);
                                },
                                [](const std::string& value) { return toml_string(value); },
                                [](double value) { return toml_number(value); },
                                [](int64_t value) { return fmt::format("{}", value); },
                                [](int value) { return fmt::format("{}", value); },
                                [](const Choice& choice) {
                                  const std::string name = choice.get();
                                  const bool bare = name == "true" || name == "false";
                                  return bare ? name : toml_string(name);
                                }});
}

std::string toml_number(double value) {
  // The shortest text that reads back as the same double; TOML tells floats by the point or e.
  std::string text = fmt::format("{}", value);
  if (text.find_first_not_of("-0123456789") == std::string::npos) text += ".0";
  return text;
}

std::string toml_string(const std::string& value) {
  std::string text = "\"";
  for (const char c : value) {
    const auto code = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      text += '\\';
      text += c;
    } else if (code < 0x20 || code == 0x7f) {
      text += fmt::format("\\u{:04X}", code);
    } else {
      text += c;
    }
  }
  return text + '"';
}

bool accepts(const Field& field) {
  return visit_value(
      field,
      Overloaded{
          [](bool) { return true; }, [](const std::optional<bool>&) { return true; },
          [](const std::string&) { return true; },
          // The step computes in f32: there 1e-60 is 0 and 1e60 is infinite.
          [&](double value) {
            return field.range.contains(value) && field.range.contains(static_cast<float>(value));
          },
          [&](int64_t value) { return field.range.contains(static_cast<double>(value)); },
          [&](int value) { return field.range.contains(value); },
          [](const Choice& choice) { return std::ranges::count(choice.names, choice.get()) > 0; }});
}

Error refusal(const std::string& subject, const Field& field, const std::string& value) {
  if (const Choice* choice = std::get_if<Choice>(&field.value)) {
    const std::string close = nearest(value.substr(1, value.size() - 2), choice->names);
    return {Exit::usage, fmt::format("{} = {} is not {}.", subject, value, wanted(field)),
            close.empty() ? fmt::format("Write {}.", wanted(field))
                          : fmt::format("Did you mean \"{}\"?", close)};
  }
  return {Exit::usage, fmt::format("{} = {} is out of range.", subject, value),
          fmt::format("Write {}: {}.", wanted(field), field.description)};
}

}  // namespace plimsoll::config

// What a transformer is made of, feature by feature, and what the families set where a config does
// not say.
#pragma once

#include <cstdint>
#include <string_view>

namespace plimsoll::model {

enum class Norm : uint8_t {
  rms,    // RMSNorm
  layer,  // LayerNorm, with a bias
};
constexpr std::string_view name(Norm norm) {
  switch (norm) {
    case Norm::rms:
      return "rms";
    case Norm::layer:
      return "layer";
  }
  return "";
}

enum class Positions : uint8_t {
  rope,     // rotary, on queries and keys
  learned,  // a table added to the token embedding
};
constexpr std::string_view name(Positions positions) {
  switch (positions) {
    case Positions::rope:
      return "rope";
    case Positions::learned:
      return "learned";
  }
  return "";
}

// Between the two products of the MLP.
enum class Activation : uint8_t {
  swiglu,  // silu(gate) * up
  geglu,   // gelu(gate) * up, tanh form
  gelu,    // of one projection, tanh form
};
constexpr std::string_view name(Activation activation) {
  switch (activation) {
    case Activation::swiglu:
      return "swiglu";
    case Activation::geglu:
      return "geglu";
    case Activation::gelu:
      return "gelu";
  }
  return "";
}

// Whether the MLP's first product makes a gate beside its other half.
constexpr bool is_gated(Activation activation) {
  switch (activation) {
    case Activation::swiglu:
    case Activation::geglu:
      return true;
    case Activation::gelu:
      return false;
  }
  return false;
}

enum class Family : uint8_t { llama, gpt2 };
constexpr std::string_view name(Family family) {
  switch (family) {
    case Family::llama:
      return "llama";
    case Family::gpt2:
      return "gpt2";
  }
  return "";
}

struct Features {
  Norm norm;
  Positions positions;
  Activation activation;
  bool qkv_bias, output_bias, mlp_bias;
};
constexpr Features features_of(Family family) {
  switch (family) {
    case Family::gpt2:
      return {Norm::layer, Positions::learned, Activation::gelu, true, true, true};
    case Family::llama:
      break;
  }
  return {Norm::rms, Positions::rope, Activation::swiglu, false, false, false};
}

}  // namespace plimsoll::model

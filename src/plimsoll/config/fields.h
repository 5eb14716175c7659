// The keys of a configuration as data: for each, where its value lives, what it means, what it
// may be. Everything that reads, writes or documents a configuration walks these tables.
#pragma once

#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "plimsoll/base/error.h"
#include "plimsoll/config/config.h"

namespace plimsoll::config {

// A value that is one of a few names.
struct Choice {
  std::vector<std::string> names;
  std::function<std::string()> get;
  std::function<void(const std::string&)> set;  // the argument is one of `names`

  // Whether true and false are among the names: they are read and written without quotes.
  bool has_booleans() const;
};

// The numbers a key accepts; always finite.
struct Bounds {
  double min = -std::numeric_limits<double>::infinity();
  double max = std::numeric_limits<double>::infinity();
  bool above_min = false;  // min itself is excluded
  bool below_max = false;  // max itself is excluded

  bool contains(double value) const;
};

// How a feature is written that is left to the model's family.
inline constexpr const char* kOfFamily = "family";

struct Field {
  std::string key;
  std::variant<bool*, std::optional<bool>*, int*, int64_t*, double*, std::string*, Choice> value;
  std::string description;
  Bounds range = {};  // of a number
};

struct Table {
  std::string name;
  std::string description;
  std::vector<Field> fields;
};

// Every table with its keys. The fields point into `config`, which must outlive them.
std::vector<Table> tables(Config& config);

// What the field accepts: "an integer from 1 to 10000", "a number above 0", "one of a, b".
std::string wanted(const Field&);

// The value as TOML: 3, 1e-05, true, "text".
std::string toml_text(const Field&);
std::string toml_number(double);
std::string toml_string(const std::string&);

// Whether the field's own value is one it accepts.
bool accepts(const Field&);

// The error that refuses `value` (as TOML) for the field: "model.layers = 0 is out of range."
// `subject` is the place and the name of the key.
Error refusal(const std::string& subject, const Field&, const std::string& value);

}  // namespace plimsoll::config

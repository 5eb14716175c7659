#include <toml++/toml.h>
#include <algorithm>
#include <map>
#include <optional>

#include "plimsoll/base/files.h"
#include "plimsoll/base/streams.h"
#include "plimsoll/config/fields.h"
#include "plimsoll/config/toml_guard.h"

namespace plimsoll::config {

namespace {

// A value as it was written, free of the parser's types.
struct Literal {
  std::variant<std::monostate, bool, int64_t, double, std::string> value;  // monostate: no scalar
  std::string type;                                                        // "an integer"
};

// One key that a file or a setting gives.
struct Given {
  std::string table;  // empty: outside any table
  std::string key;    // empty: the table itself
  std::string place;  // "config.toml:14"
  Literal literal;
  int64_t line = 0;

  std::string name() const {
    if (table.empty() || key.empty()) return table + key;
    return table + "." + key;
  }
};

Literal literal(const toml::node& node) {
  if (const auto value = node.value_exact<bool>()) return {*value, "a boolean"};
  if (const auto value = node.value_exact<int64_t>()) return {*value, "an integer"};
  if (const auto value = node.value_exact<double>()) return {*value, "a float"};
  if (const auto value = node.value_exact<std::string>()) return {*value, "a string"};
  if (node.is_array()) return {{}, "an array"};
  if (node.is_table()) return {{}, "a table"};
  return {{}, "a date or time"};
}

std::string toml_text(const Literal& literal) {
  if (const auto* value = std::get_if<bool>(&literal.value)) return *value ? "true" : "false";
  if (const auto* value = std::get_if<int64_t>(&literal.value)) return fmt::format("{}", *value);
  if (const auto* value = std::get_if<double>(&literal.value)) return toml_number(*value);
  if (const auto* value = std::get_if<std::string>(&literal.value)) return toml_string(*value);
  return "";
}

// Raises Exit::usage of toml_guard.h, or the parser's toml::parse_error.
toml::table parse(std::string_view text, const std::string& source) {
  check_toml(text, source);
  return toml::parse(text, source);
}

constexpr Bytes kLargestFile = {1 << 20};

toml::table parse_file(const std::filesystem::path& path) {
  try {
    return parse(read_input(path, kLargestFile), path.string());
  } catch (const FileError& error) {
    throw Error(
        Exit::usage,
        fmt::format("{}: the config file cannot be read: {}.", path.string(), error.reason()),
        error.advice());
  } catch (const toml::parse_error& error) {
    const toml::source_position at = error.source().begin;
    throw Error(
        Exit::usage,
        fmt::format("{}:{}:{}: {}.", path.string(), at.line, at.column, error.description()),
        "Correct the TOML there: [table] lines, and key = value under them.");
  }
}

// The keys of a parsed file in the order of its lines.
std::vector<Given> given_in(const toml::table& file, const std::filesystem::path& path) {
  std::vector<Given> all;
  const auto add = [&](std::string table, std::string_view key, const toml::node& node) {
    const int64_t line = node.source().begin.line;
    all.push_back({std::move(table), std::string(key), fmt::format("{}:{}", path.string(), line),
                   literal(node), line});
  };
  Config config;
  const std::vector<Table> known = tables(config);
  for (const auto& [name, node] : file) {
    const std::string table(name.str());
    const bool is_known = std::ranges::count(known, table, &Table::name) > 0;
    if (is_known && node.is_table()) {
      for (const auto& [key, value] : *node.as_table()) add(table, key.str(), value);
    } else if (is_known || node.is_table()) {
      add(table, "", node);
    } else {
      add("", table, node);
    }
  }
  std::ranges::stable_sort(all, {}, &Given::line);
  return all;
}

std::string trimmed(std::string_view text) {
  const size_t begin = std::min(text.find_first_not_of(" \t"), text.size());
  const size_t end = text.find_last_not_of(" \t") + 1;
  return std::string(text.substr(begin, std::max(begin, end) - begin));
}

// The value of a setting: TOML where it parses, otherwise the bare words as a string.
Literal parse_setting(const std::string& text) {
  try {
    const toml::table parsed = parse("value = " + text, "--set");
    if (parsed.size() == 1) return literal(*parsed.get("value"));
  } catch (const toml::parse_error&) {
    // Not TOML: a bare word, such as a path.
  }
  return {text, "a string"};
}

Given given_in(const std::string& setting) {
  const size_t equals = setting.find('=');
  if (equals == std::string::npos) {
    throw Error(Exit::usage, fmt::format("--set {} gives no value.", setting),
                "Write --set table.key=value, for example --set train.steps=100.");
  }
  const std::string name = trimmed(std::string_view(setting).substr(0, equals));
  const std::string text = trimmed(std::string_view(setting).substr(equals + 1));
  const size_t dot = name.find('.');
  Given given{"", name, "--set " + setting, parse_setting(text)};
  if (dot != std::string::npos) {
    given.table = name.substr(0, dot);
    given.key = name.substr(dot + 1);
  }
  // --set data.train=2024 names a file.
  Config config;
  for (const Table& table : tables(config)) {
    for (const Field& field : table.fields) {
      if (table.name != given.table || field.key != given.key) continue;
      const bool is_text = std::holds_alternative<std::string*>(field.value);
      if (is_text && given.literal.type != "a string") given.literal = {text, "a string"};
    }
  }
  return given;
}

// The key that was probably meant: the same key of another table, then the nearest.
std::string suggestion(const Given& given, const std::vector<Table>& known) {
  std::vector<std::string> names, siblings;
  for (const Table& table : known) {
    for (const Field& field : table.fields) {
      const std::string name = table.name + "." + field.key;
      if (field.key == given.key) return name;
      names.push_back(name);
      if (table.name == given.table) siblings.push_back(field.key);
    }
  }
  if (siblings.empty()) return nearest(given.name(), names);
  const std::string sibling = nearest(given.key, siblings);
  return sibling.empty() ? "" : given.table + "." + sibling;
}

[[noreturn]] void raise_unknown(const Given& given, const std::vector<Table>& known) {
  const auto join = [](const auto& all, auto member) {
    std::vector<std::string> names;
    for (const auto& one : all) names.push_back(one.*member);
    return fmt::format("{}", fmt::join(names, ", "));
  };
  const std::string table_names = join(known, &Table::name);
  const auto table = std::ranges::find(known, given.table, &Table::name);
  if (given.key.empty() && table != known.end()) {
    throw Error(
        Exit::usage,
        fmt::format("{}: {} is {}, not a table.", given.place, given.table, given.literal.type),
        fmt::format("Write [{}] and its keys under it.", given.table));
  }
  std::string close = suggestion(given, known);
  if (given.key.empty()) {
    std::vector<std::string> names;
    for (const Table& one : known) names.push_back(one.name);
    close = nearest(given.table, names);
    if (!close.empty()) close = "[" + close + "]";
  }
  const std::string list =
      table == known.end()
          ? fmt::format("The tables are {}.", table_names)
          : fmt::format("The keys of [{}] are {}.", given.table, join(table->fields, &Field::key));
  throw Error(Exit::usage,
              given.key.empty() ? fmt::format("{}: unknown table [{}].", given.place, given.table)
                                : fmt::format("{}: unknown key {}.", given.place, given.name()),
              close.empty() ? list : fmt::format("Did you mean {}? {}", close, list));
}

[[noreturn]] void raise_wrong_type(const Given& given, const Field& field) {
  const std::string value = toml_text(given.literal);
  throw Error(Exit::usage,
              fmt::format("{}: {}{} is {}, not {}.", given.place, given.name(),
                          value.empty() ? "" : " = " + value, given.literal.type, wanted(field)),
              fmt::format("Write {}: {}.", wanted(field), field.description));
}

// Puts the literal into the field, or raises.
void assign(const Given& given, const Field& field) {
  const auto& value = given.literal.value;
  const auto refuse = [&] {
    throw refusal(given.place + ": " + given.name(), field, toml_text(given.literal));
  };
  const auto checked = [&](auto number) {
    if (!field.range.contains(static_cast<double>(number))) refuse();
    return number;
  };
  const auto* boolean = std::get_if<bool>(&value);
  const auto* integer = std::get_if<int64_t>(&value);
  const auto* real = std::get_if<double>(&value);
  const auto* text = std::get_if<std::string>(&value);
  if (auto* target = std::get_if<bool*>(&field.value); target && boolean) {
    **target = *boolean;
  } else if (auto* target = std::get_if<std::optional<bool>*>(&field.value);
             target && (boolean || (text && *text == kOfFamily))) {
    **target = boolean ? std::optional(*boolean) : std::nullopt;
  } else if (auto* target = std::get_if<int*>(&field.value); target && integer) {
    **target = static_cast<int>(checked(*integer));
  } else if (auto* target = std::get_if<int64_t*>(&field.value); target && integer) {
    **target = checked(*integer);
  } else if (auto* target = std::get_if<double*>(&field.value); target && (real || integer)) {
    **target = checked(real ? *real : static_cast<double>(*integer));
    if (!accepts(field)) refuse();
  } else if (auto* target = std::get_if<std::string*>(&field.value); target && text) {
    **target = *text;
  } else if (auto* target = std::get_if<Choice>(&field.value); target && text) {
    if (std::ranges::count(target->names, *text) == 0) refuse();
    target->set(*text);
  } else if (target && boolean && target->has_booleans()) {
    target->set(*boolean ? "true" : "false");
  } else {
    raise_wrong_type(given, field);
  }
}

using Places = std::map<std::string, std::string>;  // key -> where it was last given

// Opens the features, so that the family sets them.
void leave_to_family(model::ModelConfig& model) {
  model.norm.reset();
  model.positions.reset();
  model.activation.reset();
  model.qkv_bias.reset();
  model.output_bias.reset();
  model.mlp_bias.reset();
}

// The preset first, whatever its line: the other keys change it. Then the keys that reset others:
// a file that was written before there were features or scalings means what it meant.
void apply(const std::vector<Given>& all, Config& config, Places& places) {
  const std::vector<Table> known = tables(config);
  const auto field_of = [&](const Given& given) -> const Field& {
    const auto table = std::ranges::find(known, given.table, &Table::name);
    if (table == known.end()) raise_unknown(given, known);
    const auto field = std::ranges::find(table->fields, given.key, &Field::key);
    if (field == table->fields.end()) raise_unknown(given, known);
    return *field;
  };
  for (const Given& given : all) {
    if (given.name() != "model.preset") continue;
    assign(given, field_of(given));
    if (config.model.preset.empty()) continue;
    try {
      config.model = model::preset(config.model.preset);
    } catch (const Error& error) {
      throw Error(error.code(), fmt::format("{}: {}", given.place, error.what()), error.advice());
    }
    std::erase_if(places, [](const auto& entry) { return entry.first.starts_with("model."); });
  }
  for (const Given& given : all) {
    if (given.name() == "model.family") leave_to_family(config.model);
    if (given.name() == "model.rope_theta") config.model.rope = {};
  }
  for (const Given& given : all) {
    if (given.name() != "model.preset") assign(given, field_of(given));
    places[given.name()] = given.place;
  }
}

// Where the first key named in `sentence` was given.
std::optional<std::string> place_of(std::string_view sentence, const Places& places) {
  while (!sentence.empty()) {
    const size_t end = std::min(sentence.find(' '), sentence.size());
    const auto found = places.find(std::string(sentence.substr(0, end)));
    if (found != places.end()) return found->second;
    sentence.remove_prefix(std::min(end + 1, sentence.size()));
  }
  return std::nullopt;
}

}  // namespace

Config read_config(const std::filesystem::path& path, const std::vector<std::string>& settings) {
  Config config;
  Places places;
  if (!path.empty()) apply(given_in(parse_file(path), path), config, places);
  std::vector<Given> given;
  for (const std::string& setting : settings) given.push_back(given_in(setting));
  apply(given, config, places);
  // A key that does not go with the others is refused here, where its line is known.
  try {
    resolve(config);
  } catch (const Error& error) {
    const std::optional<std::string> place = place_of(error.what(), places);
    if (place) {
      throw Error(error.code(), fmt::format("{}: {}", *place, error.what()), error.advice());
    }
  }
  return config;
}

}  // namespace plimsoll::config

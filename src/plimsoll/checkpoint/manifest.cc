#include "plimsoll/checkpoint/manifest.h"

#include "plimsoll/base/error.h"
#include "plimsoll/base/hash.h"

namespace plimsoll::checkpoint {

using nlohmann::ordered_json;

namespace {

constexpr int64_t format_version = 1;
constexpr int deepest = 32;
const std::string no_hash(64, '0');

[[noreturn]] void fail(const std::string& problem) {
  throw Error(Exit::data, fmt::format("manifest.json {}.", problem));
}

// The hash is the first member, so its first occurrence in the text is the member itself.
std::string with_hash(std::string text, const std::string& old_hash, const std::string& new_hash) {
  const size_t position = text.find(old_hash);
  // Only a file that others wrote can have it in another spelling, with escapes.
  if (position == std::string::npos) fail("has been changed: its hash is not written plainly");
  return text.replace(position, new_hash.size(), new_hash);
}

ordered_json parse(const std::string& text) {
  // Copying and comparing values recurses as deep as they nest; a manifest needs a few levels.
  const auto watch = [](int depth, ordered_json::parse_event_t, ordered_json&) {
    if (depth > deepest) fail("nests too deeply");
    return true;
  };
  try {
    return ordered_json::parse(text, watch);
  } catch (const ordered_json::exception&) {
    fail("is not JSON");
  }
}

}  // namespace

std::string to_text(const Manifest& manifest) {
  ordered_json document = {{"manifest_sha256", no_hash},     {"format_version", format_version},
                           {"step", manifest.state.step},    {"samples", manifest.state.samples},
                           {"files", ordered_json::array()}, {"extra", manifest.state.extra}};
  for (const ManifestFile& file : manifest.files) {
    document["files"].push_back(
        {{"name", file.name}, {"bytes", file.bytes.count}, {"sha256", file.sha256}});
  }
  const std::string text = document.dump(2) + "\n";
  return with_hash(text, no_hash, sha256_hex(text));
}

Manifest parse_manifest(const std::string& text) {
  const ordered_json document = parse(text);
  try {
    // The version comes first: another version may hash differently.
    if (const auto version = document.at("format_version").get<int64_t>();
        version > format_version) {
      fail(fmt::format("has format version {}; this Plimsoll reads up to {}", version,
                       format_version));
    }
    const std::string hash = document.at("manifest_sha256").get<std::string>();
    if (hash.size() != no_hash.size() || sha256_hex(with_hash(text, hash, no_hash)) != hash) {
      fail("has been changed: its hash is not the one it states");
    }
    Manifest manifest{{document.at("step").get<int64_t>(), document.at("samples").get<int64_t>(),
                       document.at("extra")},
                      {}};
    for (const ordered_json& file : document.at("files")) {
      manifest.files.push_back({file.at("name").get<std::string>(),
                                {file.at("bytes").get<int64_t>()},
                                file.at("sha256").get<std::string>()});
    }
    return manifest;
  } catch (const ordered_json::exception&) {
    fail("lacks a member or has one of the wrong type");
  }
}

}  // namespace plimsoll::checkpoint

// The one translation unit that knows toml++.
#include <fmt/core.h>
#include <unistd.h>

#include <toml++/toml.h>
#include <algorithm>
#include <cerrno>
#include <set>
#include <sstream>

#include "daemon/config.h"
#include "daemon/ingest/link/limits.h"
#include "storage/fs/rooted_directory.h"

namespace collect::daemon {
namespace {

Result<std::string> read_small_file(const std::string& path, uint64_t max_bytes) {
  // A file: a named pipe would hold up the start, or a reload.
  const auto opened = storage::open_named_file(path);
  if (!opened.ok()) return opened.error();
  const int file = opened->get();
  std::string text(max_bytes + 1, '\0');
  size_t filled = 0;
  while (filled < text.size()) {
    const ssize_t count = ::read(file, text.data() + filled, text.size() - filled);
    if (count < 0) return errno_error(errno, path);
    if (count == 0) break;
    filled += static_cast<size_t>(count);
  }
  if (filled > max_bytes) {
    return Error{Code::kLimit, fmt::format("{}: larger than {} bytes", path, max_bytes)};
  }
  text.resize(filled);
  return text;
}

std::string at(const std::string& path, const toml::source_region& source) {
  return fmt::format("{}:{}:{}: ", path, source.begin.line, source.begin.column);
}

// Each returns false when the node is of another type.
bool take(const toml::node& node, std::string& field) {
  const auto value = node.value_exact<std::string>();
  if (value) field = *value;
  return value.has_value();
}
bool take(const toml::node& node, bool& field) {
  const auto value = node.value_exact<bool>();
  if (value) field = *value;
  return value.has_value();
}
bool take(const toml::node& node, uint64_t& field) {
  const auto value = node.value_exact<int64_t>();
  if (!value || *value < 0) return false;
  field = static_cast<uint64_t>(*value);
  return true;
}
bool take(const toml::node& node, std::vector<std::string>& field) {
  const toml::array* array = node.as_array();
  if (array == nullptr) return false;
  std::vector<std::string> values;
  for (const toml::node& element : *array) {
    if (!take(element, values.emplace_back())) return false;
  }
  field = std::move(values);
  return true;
}

const char* wanted(const std::string&) {
  return "a string";
}
const char* wanted(const bool&) {
  return "true or false";
}
const char* wanted(const uint64_t&) {
  return "a whole number, 0 or more";
}
const char* wanted(const std::vector<std::string>&) {
  return "a list of strings";
}

void put(toml::table& table, const char* key, const std::string& field) {
  table.insert(key, field);
}
void put(toml::table& table, const char* key, bool field) {
  table.insert(key, field);
}
void put(toml::table& table, const char* key, uint64_t field) {
  table.insert(key, static_cast<int64_t>(field));
}
void put(toml::table& table, const char* key, const std::vector<std::string>& field) {
  toml::array array;
  for (const std::string& element : field) array.push_back(element);
  table.insert(key, std::move(array));
}

// The first key, by its place in the file, that is not ours.
Status check_unknown(const std::string& path, const toml::table& table,
                     const std::set<std::string, std::less<>>& known) {
  for (const auto& [key, node] : table) {
    if (known.contains(key.str())) continue;
    return Error{Code::kInvalidArgument,
                 fmt::format("{}unknown key \"{}\"", at(path, key.source()), key.str())};
  }
  return {};
}

}  // namespace

Status read_config_file(const std::string& path, Config& config) {
  const Result<std::string> text = read_small_file(path, kMaxConfigBytes);
  if (!text.ok()) return text.error();
  toml::table table;
  try {
    table = toml::parse(*text, path);
  } catch (const toml::parse_error& error) {
    std::string what(error.description());
    std::replace(what.begin(), what.end(), '\n', ' ');
    return Error{Code::kInvalidArgument, at(path, error.source()) + what};
  }
  std::set<std::string, std::less<>> known;
  std::string fault;
  each_key(config, [&](const char* key, const char*, auto& field) {
    known.insert(key);
    const toml::node* node = table.get(key);
    if (node == nullptr || !fault.empty()) return;
    if (!take(*node, field)) {
      fault = fmt::format("{}{} must be {}", at(path, node->source()), key, wanted(field));
      return;
    }
    const std::string why = value_fault(key, config);
    if (!why.empty()) fault = fmt::format("{}{}: {}", at(path, node->source()), key, why);
  });
  COLLECT_TRY(check_unknown(path, table, known));
  if (!fault.empty()) return Error{Code::kInvalidArgument, fault};
  return {};
}

std::string config_to_toml(const Config& config) {
  toml::table table;
  each_key(config,
           [&table](const char* key, const char*, const auto& field) { put(table, key, field); });
  std::ostringstream out;
  out << table << "\n";
  return out.str();
}

Result<std::string> read_token_file(const std::string& path) {
  Result<std::string> text = read_small_file(path, 4 * ingest::kMaxTokenBytes);
  if (!text.ok()) return text.error();
  while (text->ends_with('\n') || text->ends_with('\r')) text->pop_back();
  if (text->empty() || text->size() > ingest::kMaxTokenBytes) {
    return Error{Code::kInvalidArgument, fmt::format("{}: a token has 1 to {} bytes on one line",
                                                     path, ingest::kMaxTokenBytes)};
  }
  return text;
}

}  // namespace collect::daemon

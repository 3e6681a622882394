#include "daemon/web/http/json_body.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>

namespace collect::web {

Result<std::string> word_in(const std::string& body, const char* key) {
  const auto json = nlohmann::json::parse(body, nullptr, false);
  if (!json.is_object()) return Error{Code::kInvalidArgument, "the body is no JSON object"};
  const auto found = json.find(key);
  if (found == json.end() || !found->is_string()) {
    return Error{Code::kInvalidArgument, fmt::format("the body has no text \"{}\"", key)};
  }
  return found->get<std::string>();
}

Result<std::vector<std::string>> words_in(const std::string& body, const char* key) {
  const auto json = nlohmann::json::parse(body, nullptr, false);
  std::vector<std::string> words;
  if (!json.is_object() || !json.contains(key)) return words;
  const Error error{Code::kInvalidArgument, fmt::format("\"{}\" is no list of texts", key)};
  if (!json[key].is_array()) return error;
  for (const auto& word : json[key]) {
    if (!word.is_string()) return error;
    words.push_back(word.get<std::string>());
  }
  return words;
}

}  // namespace collect::web

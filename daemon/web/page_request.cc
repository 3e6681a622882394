#include "daemon/web/page_request.h"

#include <nlohmann/json.hpp>

namespace collect::web {
namespace {

using nlohmann::json;

std::string text_of(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

// Paths and names of functions need not be UTF-8, and a replaced byte is another one: as numbers.
json bytes_of(const std::string& text) {
  json bytes = json::array();
  for (const char c : text) bytes.push_back(static_cast<uint8_t>(c));
  return bytes;
}

std::string string_of(const json& bytes) {
  std::string text;
  for (const json& byte : bytes) text += static_cast<char>(byte.get<uint8_t>());
  return text;
}

json paths_of(const std::vector<std::string>& paths) {
  json list = json::array();
  for (const std::string& path : paths) list.push_back(bytes_of(path));
  return list;
}

std::vector<std::string> paths_of(const json& list) {
  std::vector<std::string> paths;
  for (const json& path : list) paths.push_back(string_of(path));
  return paths;
}

}  // namespace

std::string PageRequest::to_json() const {
  json request = {{"directory", bytes_of(directory)},
                  {"can_change", can_change},
                  {"want", static_cast<uint32_t>(want)},
                  {"first_ns", first_ns},
                  {"last_ns", last_ns},
                  {"thread", thread},
                  {"record", record},
                  {"function", bytes_of(function)}};
  if (symbols) {
    request["symbols"] = {{"directories", paths_of(symbols->directories)},
                          {"roots", paths_of(symbols->roots)}};
  }
  return text_of(request);
}

Result<PageRequest> PageRequest::parse(const std::string& text) {
  PageRequest request;
  try {
    const json read = json::parse(text);
    request.directory = string_of(read.at("directory"));
    request.can_change = read.at("can_change").get<bool>();
    const auto want = read.at("want").get<uint32_t>();
    if (want > static_cast<uint32_t>(PageWant::kLods)) {
      return Error{Code::kDamaged, "not a request for a page: no such kind of page"};
    }
    request.want = static_cast<PageWant>(want);
    request.first_ns = read.at("first_ns").get<uint64_t>();
    request.last_ns = read.at("last_ns").get<uint64_t>();
    request.thread = read.at("thread").get<uint32_t>();
    request.record = read.at("record").get<uint64_t>();
    request.function = string_of(read.at("function"));
    if (read.contains("symbols")) {
      const json& symbols = read.at("symbols");
      request.symbols = {paths_of(symbols.at("directories")), paths_of(symbols.at("roots"))};
    }
  } catch (const json::exception& error) {
    return Error{Code::kDamaged, std::string("not a request for a page: ") + error.what()};
  }
  return request;
}

std::string page_error_json(const std::string& sentence) {
  return text_of({{"error", sentence}});
}

std::optional<std::string> error_in_page(const std::string& output, PageWant want) {
  // Data are an object too, and begin otherwise.
  if (!output.starts_with(want == PageWant::kPage ? "{" : "{\"error\"")) return std::nullopt;
  const json read = json::parse(output, nullptr, false);
  if (!read.is_object() || !read.contains("error") || !read["error"].is_string()) {
    return "the page was not made";
  }
  return read["error"].get<std::string>();
}

}  // namespace collect::web

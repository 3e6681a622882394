#include "daemon/upload/store_request.h"

#include <fmt/core.h>

#include <charconv>
#include <optional>

namespace collect::upload {
namespace {

constexpr uint32_t kMaxKeepDays = 36'500;

template <class Number>
std::optional<Number> number_of(std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::string text_of(const std::string& text) {
  return text;
}
std::string text_of(bool value) {
  return value ? "1" : "0";
}
template <class Number>
std::string text_of(Number number) {
  return std::to_string(static_cast<uint64_t>(number));
}

bool take(std::string_view text, std::string& field) {
  field = text;
  return true;
}
bool take(std::string_view text, StoreWant& field) {
  const auto number = number_of<uint8_t>(text);
  if (!number || *number > static_cast<uint8_t>(StoreWant::kFollow)) return false;
  field = static_cast<StoreWant>(*number);
  return true;
}
template <class Number>
bool take(std::string_view text, Number& field) {
  const auto number = number_of<uint64_t>(text);
  if (number) field = static_cast<Number>(*number);
  return number.has_value();
}

// Calls visit(name, field) for each, but for the paths, of which there are several.
template <class Request, class Visit>
void each_field(Request& request, Visit&& visit) {
  visit("want", request.want);
  visit("url", request.location.url);
  visit("endpoint", request.location.endpoint);
  visit("region", request.location.region);
  visit("max_bytes_per_s", request.location.max_bytes_per_s);
  visit("output", request.output);
  visit("keep_local", request.keep_local);
  visit("tables", request.tables);
  visit("packed", request.packed);
  visit("json", request.json);
  visit("progress", request.progress);
  visit("strict", request.strict);
  visit("allow_incomplete", request.allow_incomplete);
  visit("columns", request.columns);
}

constexpr std::string_view kPath = "path";

}  // namespace

Result<StoreUrl> parse_store_url(std::string_view url) {
  const std::string named(url);
  if (!is_store_url(url)) {
    return Error{Code::kInvalidArgument, named + ": a store is s3://BUCKET"};
  }
  url.remove_prefix(sizeof kStoreUrlScheme - 1);
  const size_t slash = url.find('/');
  StoreUrl parsed;
  parsed.bucket = url.substr(0, slash);
  if (slash != std::string_view::npos) parsed.below = url.substr(slash + 1);
  if (parsed.bucket.empty()) {
    return Error{Code::kInvalidArgument, named + ": the name of the bucket is missing"};
  }
  return parsed;
}

Result<KeepLocal> parse_keep_local(std::string_view words) {
  if (words == "always") return KeepLocal{};
  if (words == "until_committed") return KeepLocal{KeepUntil::kCommitted};
  const size_t end = words.find_first_not_of("0123456789");
  if (end != 0 && end != std::string_view::npos) {
    const std::string_view unit = words.substr(end);
    const auto days = number_of<uint32_t>(words.substr(0, end));
    if ((unit == "d" || unit == " days" || unit == " day") && days && *days <= kMaxKeepDays) {
      return KeepLocal{KeepUntil::kDays, *days};
    }
  }
  return Error{
      Code::kInvalidArgument,
      fmt::format(
          "\"{}\" is not one of always, until_committed, or a number of days such as \"14 days\"",
          words)};
}

Result<StoreTables> parse_store_tables(std::string_view word) {
  if (word == "off") return StoreTables::kOff;
  if (word == "functions") return StoreTables::kFunctions;
  if (word == "all") return StoreTables::kAll;
  return Error{Code::kInvalidArgument,
               fmt::format("\"{}\" is not one of off, functions and all", word)};
}

std::vector<std::string> StoreRequest::to_arguments() const {
  std::vector<std::string> arguments;
  each_field(*this, [&](std::string_view name, const auto& field) {
    arguments.push_back(fmt::format("{}={}", name, text_of(field)));
  });
  for (const std::string& path : paths) arguments.push_back(fmt::format("{}={}", kPath, path));
  return arguments;
}

Result<StoreRequest> StoreRequest::parse(const std::vector<std::string>& arguments) {
  StoreRequest request;
  for (const std::string& argument : arguments) {
    const std::string_view all = argument;
    const size_t equals = all.find('=');
    const std::string_view name = all.substr(0, equals);
    bool is_taken = false;
    if (equals != std::string_view::npos) {
      const std::string_view value = all.substr(equals + 1);
      each_field(request, [&](std::string_view one, auto& field) {
        if (one == name) is_taken = take(value, field);
      });
      if (name == kPath) {
        request.paths.emplace_back(value);
        is_taken = true;
      }
    }
    if (!is_taken) {
      return Error{
          Code::kInvalidArgument,
          fmt::format(
              "\"{}\" is no argument of collect-store, which collectctl and collectord start",
              argument)};
    }
  }
  return request;
}

}  // namespace collect::upload

#include "daemon/web/session_target.h"

#include <fmt/core.h>

#include <charconv>
#include <limits>
#include <string>
#include <utility>

namespace collect::web {
namespace {

constexpr std::string_view kSessions = "/sessions/";

struct Part {
  std::string_view ending;
  PageWant want;
};
constexpr Part kParts[] = {{"/window", PageWant::kWindow},
                           {"/bars", PageWant::kBars},
                           {"/record", PageWant::kRecord},
                           {"/perfetto", PageWant::kPerfetto},
                           {"/function", PageWant::kFunction}};

// "KEY=123&" from the front of `query`; the last one has no &.
Result<uint64_t> take_number(std::string_view& query, std::string_view key) {
  const Error wrong{Code::kInvalidArgument,
                    fmt::format("the query has no number \"{}\" in its place", key)};
  if (!query.starts_with(key) || query.substr(key.size(), 1) != "=") return wrong;
  query.remove_prefix(key.size() + 1);
  const std::string_view digits = query.substr(0, query.find('&'));
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error != std::errc() || end != digits.data() + digits.size()) return wrong;
  query.remove_prefix(digits.size());
  if (query.size() > 1) query.remove_prefix(1);
  return number;
}

// "KEY=TEXT" and nothing behind it, with percent encoding (RFC 3986).
Result<std::string> take_last_text(std::string_view& query, std::string_view key) {
  const Error wrong{Code::kInvalidArgument,
                    fmt::format("the query has no text \"{}\" in its place", key)};
  if (!query.starts_with(key) || query.substr(key.size(), 1) != "=") return wrong;
  query.remove_prefix(key.size() + 1);
  std::string text;
  for (; !query.empty() && query[0] != '&'; query.remove_prefix(1)) {
    if (query[0] != '%') {
      text += query[0];
      continue;
    }
    uint8_t byte = 0;
    const std::string_view digits = query.substr(1, 2);
    const auto [end, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), byte, 16);
    if (error != std::errc() || digits.size() != 2 || end != digits.data() + 2) return wrong;
    text += static_cast<char>(byte);
    query.remove_prefix(2);
  }
  return text;
}

}  // namespace

Result<std::string_view> read_session_target(std::string_view target, PageRequest& request) {
  const size_t mark = target.find('?');
  std::string_view path = target.substr(kSessions.size(), mark - kSessions.size());
  std::string_view query = mark == std::string_view::npos ? "" : target.substr(mark + 1);
  if (mark == std::string_view::npos) path = target.substr(kSessions.size());
  for (const Part& part : kParts) {
    if (!path.ends_with(part.ending)) continue;
    path.remove_suffix(part.ending.size());
    request.want = part.want;
    break;
  }
  // The page of a session is the same page with any query.
  if (request.want == PageWant::kPage) return path;
  const bool is_record = request.want == PageWant::kRecord;
  const auto first = take_number(query, is_record ? "thread" : "first");
  if (!first.ok()) return first.error();
  const auto second = take_number(query, is_record ? "record" : "last");
  if (!second.ok()) return second.error();
  if (request.want == PageWant::kFunction) {
    auto name = take_last_text(query, "name");
    if (!name.ok()) return name.error();
    request.function = std::move(*name);
  }
  if (!query.empty()) return Error{Code::kInvalidArgument, "the query has more than is asked for"};
  if (is_record) {
    if (*first > std::numeric_limits<uint32_t>::max()) {
      return Error{Code::kInvalidArgument, "there is no such thread"};
    }
    request.thread = static_cast<uint32_t>(*first);
    request.record = *second;
    return path;
  }
  if (*first > *second) return Error{Code::kInvalidArgument, "the window ends before it begins"};
  request.first_ns = *first;
  request.last_ns = *second;
  return path;
}

}  // namespace collect::web

#include "daemon/control/service/paging.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdio>

#include "formats/core/crc32.h"

namespace collect::control {
namespace {

constexpr std::string_view kTokenPrefix = "p1-";
constexpr size_t kFilterDigits = 8;

// Ties a token to the filter it was made for; the checksum is no protection.
std::string filter_mark(std::string_view filter) {
  const auto crc = crc32c({reinterpret_cast<const uint8_t*>(filter.data()), filter.size()});
  char text[kFilterDigits + 1];
  std::snprintf(text, sizeof(text), "%08x", static_cast<unsigned>(crc));
  return text;
}

Error bad_token(const char* why) {
  return {Code::kInvalidArgument, fmt::format("page_token {}; list again without page_token", why)};
}

}  // namespace

Result<Page> page_of(const std::vector<std::string_view>& names, std::string_view filter,
                     int32_t page_size, std::string_view token) {
  if (page_size < 0) {
    return Error{Code::kInvalidArgument, "page_size is negative; leave it out for 100 entries"};
  }
  const std::string mark = filter_mark(filter);
  Page page;
  if (!token.empty()) {
    if (token.size() > kMaxPageToken || !token.starts_with(kTokenPrefix) ||
        token.size() < kTokenPrefix.size() + kFilterDigits + 1) {
      return bad_token("is not one that a list call returned");
    }
    token.remove_prefix(kTokenPrefix.size());
    if (token.substr(0, kFilterDigits) != mark) return bad_token("belongs to another request");
    token.remove_prefix(kFilterDigits + 1);
    const auto last = std::find(names.begin(), names.end(), token);
    if (last == names.end()) return bad_token("names an entry that is gone");
    page.begin = static_cast<size_t>(last - names.begin()) + 1;
  }
  const auto size =
      static_cast<size_t>(page_size == 0 ? kDefaultPageSize : std::min(page_size, kMaxPageSize));
  page.end = page.begin + std::min(size, names.size() - page.begin);
  if (page.end < names.size()) {
    page.next_token = fmt::format("{}{}-{}", kTokenPrefix, mark, names[page.end - 1]);
  }
  return page;
}

}  // namespace collect::control

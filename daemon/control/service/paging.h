// Pages of a list that changes between two calls. A token names the last item that was handed out,
// not a position: what came or went meanwhile neither repeats an item nor skips one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "formats/core/result.h"

namespace collect::control {

inline constexpr int32_t kDefaultPageSize = 100;  // when a request says 0
inline constexpr int32_t kMaxPageSize = 1000;     // larger sizes become this one
inline constexpr size_t kMaxPageToken = 1024;

struct Page {
  size_t begin = 0;
  size_t end = 0;
  std::string next_token;  // empty on the last page
};

// Which of the items named `names` belong on the page that `token` asks for. kInvalidArgument for a
// negative size, and for a token that is not ours, belongs to another filter, or whose item has
// gone.
Result<Page> page_of(const std::vector<std::string_view>& names, std::string_view filter,
                     int32_t page_size, std::string_view token);

}  // namespace collect::control

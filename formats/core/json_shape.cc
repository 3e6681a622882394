#include "formats/core/json_shape.h"

#include <fmt/core.h>

#include <string>

namespace collect {

Status check_json_shape(std::string_view text, const JsonLimits& limits) {
  size_t depth = 0;
  size_t values = 0;
  bool in_string = false;
  for (size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (in_string) {
      if (c == '\\') {
        ++at;
      } else if (c == '"') {
        in_string = false;
      }
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      ++values;
      if (++depth > limits.depth) return Error{Code::kLimit, "is nested too deeply"};
    } else if (c == ',') {
      ++values;
    } else if ((c == ']' || c == '}') && depth > 0) {
      --depth;
    }
    if (values > limits.values) {
      return Error{Code::kLimit, fmt::format("has more than {} values", limits.values)};
    }
  }
  return {};
}

}  // namespace collect

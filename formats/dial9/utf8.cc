#include "formats/dial9/utf8.h"

#include "formats/core/utf8.h"

namespace collect::dial9 {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

}  // namespace

void append_utf8(std::string_view text, std::string& out) {
  while (!text.empty()) {
    if (const size_t ascii = ascii_prefix(text); ascii != 0) {
      out.append(text.substr(0, ascii));
      text.remove_prefix(ascii);
      continue;
    }
    const Utf8Step step = utf8_step(text);
    out.append(step.is_valid ? text.substr(0, step.bytes) : kReplacement);
    text.remove_prefix(step.bytes);
  }
}

}  // namespace collect::dial9

// Any bytes as a name, a sentence, a text in blocks and a JSON string: what comes out is UTF-8
// without a character that is not printable, within its bound, and the same again where that is
// promised.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "formats/core/text/printable.h"
#include "formats/core/text/utf8.h"

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

void require_harmless(std::string_view text, bool lines_may_end) {
  while (!text.empty()) {
    const collect::Utf8Step step = collect::utf8_step(text);
    require(step.is_valid && (collect::is_printable(step.code_point) ||
                              (lines_may_end && (text[0] == '\n' || text[0] == '\t'))));
    text.remove_prefix(step.bytes);
  }
}

// In blocks that end where the input says.
std::string in_blocks(std::string_view text, uint8_t block) {
  std::string out;
  std::string held;
  while (!text.empty()) {
    held += text.substr(0, block + 1);
    text.remove_prefix(std::min<size_t>(text.size(), block + 1));
    const size_t rest = collect::append_printable_text(out, held);
    require(rest <= 3 && rest <= held.size());
    held.erase(0, held.size() - rest);
  }
  return out + collect::printable(held);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const size_t bound = data[0];
  const std::string_view text(reinterpret_cast<const char*>(data + 2), size - 2);
  for (const std::string& shown :
       {collect::printable(text, bound), collect::printable_sentence(text, bound)}) {
    require(shown.size() <= bound);
    require_harmless(shown, false);
  }
  const std::string name = collect::printable(text, SIZE_MAX);
  const std::string quoted = collect::in_quotes(text, SIZE_MAX);
  require_harmless(name, false);
  require_harmless(quoted, false);
  require(!collect::is_plain_name(text) || name == text);
  const std::string sentence = collect::printable_sentence(text, SIZE_MAX);
  require(collect::printable_sentence(sentence, SIZE_MAX) == sentence);
  require(collect::printable_sentence(name, SIZE_MAX) == name);
  std::string whole;
  const size_t rest = collect::append_printable_text(whole, text);
  whole += collect::printable(text.substr(text.size() - rest));
  require_harmless(whole, true);
  require(in_blocks(text, data[1]) == whole);
  std::string json;
  collect::append_json_string(json, text);
  require_harmless(json, false);
  std::string minimal;
  collect::append_minimal_json_string(minimal, text);
  require(collect::is_utf8(minimal));
  require(collect::printable_json(minimal) == json);
  return 0;
}

#include "formats/folded/writer.h"

#include <span>

#include "formats/core/text/utf8_text.h"

namespace collect::folded {

void Writer::push(std::string_view name) {
  lengths_.push_back(stack_.size());
  if (!stack_.empty()) stack_ += ';';
  const size_t from = stack_.size();
  append_utf8(utf8_prefix(name, kMaxNameBytes), stack_);
  // What ends a frame and a line cannot be in a name.
  for (char& each : std::span(stack_).subspan(from)) {
    const auto c = static_cast<uint8_t>(each);
    if (c == ';') each = ':';
    if (c < 0x20 || c == 0x7f) each = ' ';
  }
  if (stack_.size() == from) stack_ += "(no name)";
}

void Writer::pop() {
  stack_.resize(lengths_.back());
  lengths_.pop_back();
}

void Writer::weigh(uint64_t weight) {
  if (weight == 0 || stack_.empty()) return;
  text_.put(stack_);
  text_.put(' ');
  text_.dec(weight);
  text_.put("\n");
}

}  // namespace collect::folded

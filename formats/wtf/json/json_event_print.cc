#include <cmath>

#include "formats/wtf/json/json_events.h"
#include "formats/wtf/text.h"

namespace collect::wtf {
namespace {

bool print_float(std::string& out, uint32_t word) {
  const auto value = std::bit_cast<float>(word);
  if (std::isfinite(value)) {
    append_number(out, value);
  } else if (std::isinf(value)) {
    out += value > 0 ? "\"Infinity\"" : "\"-Infinity\"";
  } else if (word == kPlainNan) {
    out += "\"NaN\"";
  } else {
    return false;
  }
  return true;
}

// False for lone surrogates, which JSON text cannot hold.
bool print_characters(std::string& out, const Value& value) {
  const size_t count = value.argument->array ? value.count : 1;
  if (value.argument->type == ArgType::kWchar) {
    for (size_t i = 0; i < count; ++i) {
      const int64_t unit = value.argument->array ? value.element(i) : value.integer();
      const bool high = unit >= 0xD800 && unit < 0xDC00;
      if (high && i + 1 < count) {
        const int64_t low = value.element(i + 1);
        if (low < 0xDC00 || low >= 0xE000) return false;
        ++i;
      } else if (unit >= 0xD800 && unit < 0xE000) {
        return false;
      }
    }
  }
  append_json_string(out, value.utf8());
  return true;
}

bool print_array(std::string& out, const Value& value) {
  if (!value.present()) {
    out += "null";
    return true;
  }
  const ArgType type = value.argument->type;
  if (type == ArgType::kChar || type == ArgType::kWchar) return print_characters(out, value);
  out += '[';
  for (size_t i = 0; i < value.count; ++i) {
    if (i != 0) out += ',';
    if (type != ArgType::kFloat32) {
      append_number(out, value.element(i));
    } else if (!print_float(out, load_le<uint32_t>(value.elements.data() + 4 * i))) {
      return false;
    }
  }
  out += ']';
  return true;
}

void print_text(std::string& out, const Value& value, TextOrdinals& ordinals) {
  if (value.word == kNullOrdinal) {
    out += "null";
    return;
  }
  if (value.word == kEmptyOrdinal) {
    out += "\"\"";
    return;
  }
  // A text that the other side would take for another ordinal is named by its number.
  const bool plain = value.present() && is_utf8(value.text);
  if (!plain || ordinals.meant(value.text) != value.word) {
    out += "{\"ordinal\":";
    append_number(out, int64_t{value.word});
    out += '}';
    return;
  }
  ordinals.took(value.word);
  if (value.argument->type == ArgType::kAny && value.text.find_first_of(" \t\r\n") != 0 &&
      value.text.find_last_of(" \t\r\n") != value.text.size() - 1 &&
      is_json(value.text, kMaxInlineDepth)) {
    out += "{\"value\":";
    out += value.text;
    out += '}';
  } else {
    append_json_string(out, value.text);
  }
}

// False when the words are not what parsing would give back.
bool print_value(std::string& out, const Value& value, TextOrdinals& ordinals) {
  const Argument& argument = *value.argument;
  if (argument.array) return print_array(out, value);
  if (is_string(argument.type)) {
    print_text(out, value, ordinals);
    return true;
  }
  const size_t bits = 8 * element_bytes(argument.type);
  if (bits < 32 && value.word >> bits != 0) return false;
  switch (argument.type) {
    case ArgType::kBool:
      if (value.word > 1) return false;
      out += value.word == 1 ? "true" : "false";
      return true;
    case ArgType::kFloat32:
      return print_float(out, value.word);
    case ArgType::kChar:
    case ArgType::kWchar:
      return print_characters(out, value);
    default:
      append_number(out, value.integer());
      return true;
  }
}

// The padding behind arrays, which parsing fills with zeros.
bool padding_is_zero(const Event& event) {
  if (event.type->fixed_size) return true;
  uint64_t before = 0;
  Value value;
  for (Arguments walk = event.arguments(); walk.next(value);) {
    if (value.argument->array && value.present()) {
      for (uint64_t at = before + 4 + value.elements.size(); at < walk.consumed(); ++at) {
        if (event.argument_bytes[at] != 0) return false;
      }
    }
    before = walk.consumed();
  }
  return true;
}

// "args" of an event that has some; false, and nothing usable in `out`, when its bytes have to
// stay as they are.
bool print_arguments(std::string& out, const Event& event, TextOrdinals& ordinals) {
  if (!padding_is_zero(event)) return false;
  const bool list = !event.type->unique_names;
  out += list ? ",\"args\":[" : ",\"args\":{";
  bool first = true;
  Value value;
  for (Arguments walk = event.arguments(); walk.next(value); first = false) {
    if (!first) out += ',';
    if (!list) {
      append_json_string(out, value.argument->name);
      out += ':';
    }
    if (!print_value(out, value, ordinals)) return false;
  }
  out += list ? ']' : '}';
  return true;
}

}  // namespace

void TextOrdinals::clear() {
  texts_.clear();
  first_.clear();
  next_ = 0;
}

void TextOrdinals::add(std::string_view text) {
  first_.emplace(text, static_cast<uint32_t>(texts_.size()));
  texts_.push_back(text);
}

std::optional<uint32_t> TextOrdinals::meant(std::string_view text) const {
  if (next_ < texts_.size() && texts_[next_] == text) return static_cast<uint32_t>(next_);
  const auto known = first_.find(text);
  if (known == first_.end()) return std::nullopt;
  return known->second;
}

void print_event(std::string& out, const Event& event, TextOrdinals& ordinals) {
  out += "{\"wireId\":";
  append_number(out, int64_t{event.type->wire_id});
  out += ",\"time\":";
  append_number(out, int64_t{event.time_us});
  if (is_utf8(event.type->name)) {
    out += ",\"event\":";
    append_json_string(out, event.type->name);
  }
  if (!event.type->arguments.empty()) {
    const size_t before = out.size();
    const size_t mark = ordinals.mark();
    if (!print_arguments(out, event, ordinals)) {
      out.resize(before);
      ordinals.back_to(mark);
      out += ",\"raw\":\"";
      append_base64(out, event.argument_bytes);
      out += '"';
    }
  }
  out += '}';
}

void print_rest(std::string& out, Bytes rest) {
  out += "{\"rest\":\"";
  append_base64(out, rest);
  out += "\"}";
}

}  // namespace collect::wtf

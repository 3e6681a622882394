#include <fmt/core.h>

#include <algorithm>
#include <limits>

#include "formats/wtf/binary/chunk_encoder.h"
#include "formats/wtf/json/json_events.h"
#include "formats/wtf/text.h"

namespace collect::wtf {
namespace {

void put_padding(std::vector<uint8_t>& out) {
  out.resize((out.size() + 3) / 4 * 4);
}

// Code points of valid UTF-8.
template <class Take>
void for_each_code_point(std::string_view text, Take&& take) {
  while (!text.empty()) {
    const Utf8Step step = utf8_step(text);
    take(step.code_point);
    text.remove_prefix(step.bytes);
  }
}

}  // namespace

void EventParser::begin(std::vector<std::string>&& table) {
  table_ = std::move(table);
  added_.clear();
  ordinals_.clear();
  for (const std::string& text : table_) ordinals_.add(text);
  appended_ = false;
  over_limit_ = false;
}

std::string EventParser::table_bytes() const {
  std::string bytes;
  for (const std::string& text : table_) bytes.append(text) += '\0';
  for (const auto& text : added_) bytes.append(*text) += '\0';
  return bytes;
}

bool EventParser::misfit(uint64_t offset, std::string why) {
  findings_.add(Severity::kError, Rule::kJsonValue, offset,
                "an event is left out: " + std::move(why));
  return false;
}

bool EventParser::parse(JsonCursor& cursor, std::vector<uint8_t>& buffer) {
  Members members;
  if (cursor.peek() != JsonKind::kObject) {
    misfit(cursor.offset(), "it is no object");
    return cursor.skip();
  }
  const uint64_t offset = cursor.offset();
  if (!read_members(cursor, members)) return cursor.ok();
  if (members.rest) {
    const auto bytes = decode_base64(*members.rest);
    if (!bytes) return misfit(offset, "'rest' is not base64"), true;
    buffer.insert(buffer.end(), bytes->begin(), bytes->end());
    return true;
  }
  const size_t before = buffer.size();
  if (!put_event(members, offset, buffer)) buffer.resize(before);
  return true;
}

// False when a member is not what it has to be, which is a finding, or the text is no JSON.
bool EventParser::read_members(JsonCursor& cursor, Members& members) {
  const uint64_t offset = cursor.offset();
  std::string key;
  bool good = true;
  cursor.enter_object();
  while (cursor.next_member(key)) {
    const JsonKind kind = cursor.peek();
    std::string_view number;
    if ((key == "wireId" || key == "time") && kind == JsonKind::kNumber) {
      cursor.number(number);
      const auto value = json_integer(number);
      const bool fits = value && *value >= 0 && *value <= UINT32_MAX;
      if (!fits && good)
        good = misfit(offset, fmt::format("its '{}' is no number of 32 bits", key));
      (key == "time" ? members.time : members.wire_id) = value;
    } else if (key == "event" && kind == JsonKind::kString) {
      members.has_name = cursor.string(members.name);
    } else if (key == "args") {
      members.arguments_offset = cursor.offset();
      cursor.raw(members.arguments);
    } else if ((key == "raw" || key == "rest") && kind == JsonKind::kString) {
      std::string text;
      cursor.string(text);
      (key == "raw" ? members.raw : members.rest) = std::move(text);
    } else {
      cursor.skip();
    }
  }
  return good && cursor.ok();
}

const EventType* EventParser::type_of(const Members& members) const {
  if (members.wire_id) return types_.find(static_cast<uint32_t>(*members.wire_id));
  return members.has_name ? types_.find_name(members.name) : nullptr;
}

bool EventParser::put_event(const Members& members, uint64_t offset, std::vector<uint8_t>& buffer) {
  const EventType* const type = type_of(members);
  if (type == nullptr) {
    return misfit(offset, members.wire_id
                              ? fmt::format("wire id {} is not defined", *members.wire_id)
                              : fmt::format("event '{}' is not defined", members.name));
  }
  if (!members.time) return misfit(offset, "it has no 'time'");
  put_word(buffer, type->wire_id);
  put_word(buffer, static_cast<uint32_t>(*members.time));
  const size_t words = buffer.size();
  if (members.raw) {
    const auto bytes = decode_base64(*members.raw);
    if (!bytes || bytes->size() % 4 != 0)
      return misfit(offset, "'raw' is not base64 of whole words");
    buffer.insert(buffer.end(), bytes->begin(), bytes->end());
  } else if (!type->arguments.empty() && !put_arguments(*type, members, buffer)) {
    return false;
  }
  if (type->role == Role::kDefine) {
    learn(*type, offset, Bytes(buffer).subspan(words));
  }
  return true;
}

bool EventParser::put_arguments(const EventType& type, const Members& members,
                                std::vector<uint8_t>& buffer) {
  if (members.arguments.empty()) return misfit(members.arguments_offset, "it has no 'args'");
  JsonCursor cursor(members.arguments, members.arguments_offset);
  if (cursor.peek() == JsonKind::kArray) {
    cursor.enter_array();
    for (const Argument& argument : type.arguments) {
      if (!cursor.next_element()) return misfit(cursor.offset(), "it has too few arguments");
      if (!put_argument(argument, cursor, buffer)) return false;
    }
    return !cursor.next_element() || misfit(cursor.offset(), "it has too many arguments");
  }
  if (cursor.peek() != JsonKind::kObject) {
    return misfit(cursor.offset(), "its 'args' are neither object nor array");
  }
  // In the type's order, which is the usual one; else found by name.
  std::unordered_map<std::string, std::pair<std::string_view, uint64_t>> others;
  std::string key;
  size_t next = 0;
  cursor.enter_object();
  while (cursor.next_member(key)) {
    if (others.empty() && next < type.arguments.size() && key == type.arguments[next].name) {
      if (!put_argument(type.arguments[next++], cursor, buffer)) return false;
      continue;
    }
    if (others.size() == kMaxArguments) return misfit(cursor.offset(), "it has too many arguments");
    cursor.peek();
    const uint64_t offset = cursor.offset();
    std::string_view value;
    if (cursor.raw(value)) others[key] = {value, offset};
  }
  for (; next < type.arguments.size(); ++next) {
    const auto found = others.find(type.arguments[next].name);
    if (found == others.end()) {
      return misfit(cursor.offset(),
                    fmt::format("argument '{}' is missing", type.arguments[next].name));
    }
    JsonCursor value(found->second.first, found->second.second);
    if (!put_argument(type.arguments[next], value, buffer)) return false;
    others.erase(found);
  }
  return others.empty() ||
         misfit(cursor.offset(), "it has an argument that its type does not have");
}

bool EventParser::put_argument(const Argument& argument, JsonCursor& cursor,
                               std::vector<uint8_t>& buffer) {
  const JsonKind kind = cursor.peek();
  const uint64_t offset = cursor.offset();
  const bool put = argument.array             ? put_array(argument, cursor, buffer)
                   : is_string(argument.type) ? put_text(argument, cursor, buffer)
                                              : put_scalar(argument, cursor, buffer);
  if (put && cursor.ok()) return true;
  return misfit(offset, fmt::format("argument '{}' ({}{} cannot be what is there{}", argument.name,
                                    arg_type_name(argument.type), argument.array ? "[])" : ")",
                                    kind == JsonKind::kEnd ? ", which is nothing" : ""));
}

bool EventParser::put_number(ArgType type, JsonCursor& cursor, uint32_t& word) {
  if (type == ArgType::kFloat32 && cursor.peek() == JsonKind::kString) {
    std::string text;
    if (!cursor.string(text)) return false;
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    if (text == "NaN") {
      word = kPlainNan;
    } else if (text == "Infinity" || text == "-Infinity") {
      word = std::bit_cast<uint32_t>(text[0] == '-' ? -kInfinity : kInfinity);
    } else {
      return false;
    }
    return true;
  }
  if (cursor.peek() != JsonKind::kNumber) return false;
  std::string_view number;
  if (!cursor.number(number)) return false;
  if (type == ArgType::kFloat32) {
    const auto value = json_float(number);
    if (value) word = std::bit_cast<uint32_t>(*value);
    return value.has_value();
  }
  const auto value = json_integer(number);
  const int64_t bits = 8 * static_cast<int64_t>(element_bytes(type));
  const bool is_signed =
      type == ArgType::kInt8 || type == ArgType::kInt16 || type == ArgType::kInt32;
  const int64_t low = is_signed ? -(int64_t{1} << (bits - 1)) : 0;
  const int64_t high = (int64_t{1} << (is_signed ? bits - 1 : bits)) - 1;
  if (!value || *value < low || *value > high) return false;
  word = static_cast<uint32_t>(*value) & static_cast<uint32_t>((uint64_t{1} << bits) - 1);
  return true;
}

bool EventParser::put_scalar(const Argument& argument, JsonCursor& cursor,
                             std::vector<uint8_t>& buffer) {
  uint32_t word = 0;
  if (argument.type == ArgType::kBool) {
    bool value = false;
    const JsonKind kind = cursor.peek();
    if (kind != JsonKind::kTrue && kind != JsonKind::kFalse) return false;
    if (!cursor.boolean(value)) return false;
    word = value ? 1 : 0;
  } else if (argument.type == ArgType::kChar || argument.type == ArgType::kWchar) {
    std::vector<uint8_t> bytes;
    size_t count = 0;
    if (!put_characters(argument.type, cursor, bytes, count) || count != 1) return false;
    bytes.resize(sizeof word);
    word = load_le<uint32_t>(bytes.data());
  } else if (!put_number(argument.type, cursor, word)) {
    return false;
  }
  put_word(buffer, word);
  return true;
}

bool EventParser::put_characters(ArgType type, JsonCursor& cursor, std::vector<uint8_t>& bytes,
                                 size_t& count) {
  std::string text;
  if (!cursor.string(text)) return false;
  bool good = true;
  const auto put = [&](uint32_t unit) {
    ++count;
    bytes.push_back(static_cast<uint8_t>(unit));
    if (type == ArgType::kWchar) bytes.push_back(static_cast<uint8_t>(unit >> 8));
  };
  for_each_code_point(text, [&](uint32_t code) {
    if (type == ArgType::kChar) {
      good = good && code <= 0xFF;
      put(code);
    } else if (code < 0x10000) {
      put(code);
    } else {
      put(0xD800 + ((code - 0x10000) >> 10));
      put(0xDC00 + (code & 0x3FF));
    }
  });
  return good;
}

bool EventParser::put_array(const Argument& argument, JsonCursor& cursor,
                            std::vector<uint8_t>& buffer) {
  if (cursor.peek() == JsonKind::kNull) {
    put_word(buffer, kNullOrdinal);
    return cursor.null();
  }
  const size_t begin = buffer.size();
  put_word(buffer, 0);
  size_t count = 0;
  if (argument.type == ArgType::kChar || argument.type == ArgType::kWchar) {
    if (!put_characters(argument.type, cursor, buffer, count)) return false;
  } else {
    if (cursor.peek() != JsonKind::kArray || !cursor.enter_array()) return false;
    const size_t size = element_bytes(argument.type);
    for (; cursor.next_element(); ++count) {
      uint32_t word = 0;
      if (!put_number(argument.type, cursor, word)) return false;
      for (size_t i = 0; i < size; ++i) buffer.push_back(static_cast<uint8_t>(word >> 8 * i));
    }
  }
  put_padding(buffer);
  if (count >= kNullOrdinal) return false;
  store_le(buffer.data() + begin, static_cast<uint32_t>(count));
  return true;
}

// null, "text", {"ordinal": n}, and for `any` {"value": JSON}.
bool EventParser::put_text(const Argument& argument, JsonCursor& cursor,
                           std::vector<uint8_t>& buffer) {
  if (cursor.peek() == JsonKind::kNull) {
    put_word(buffer, kNullOrdinal);
    return cursor.null();
  }
  std::string text;
  if (cursor.peek() == JsonKind::kString) {
    if (!cursor.string(text) || text.find('\0') != std::string::npos) return false;
    put_word(buffer, text.empty() ? kEmptyOrdinal : ordinal_of(text));
    return true;
  }
  if (cursor.peek() != JsonKind::kObject || !cursor.enter_object()) return false;
  bool put = false;
  while (cursor.next_member(text)) {
    std::string_view raw;
    if (put || !cursor.raw(raw)) return false;
    if (text == "ordinal") {
      const auto ordinal = json_integer(raw);
      if (!ordinal || *ordinal < 0 || *ordinal > UINT32_MAX) return false;
      put_word(buffer, static_cast<uint32_t>(*ordinal));
    } else if (text == "value" && argument.type == ArgType::kAny) {
      put_word(buffer, ordinal_of(raw));
    } else {
      return false;
    }
    put = true;
  }
  return put;
}

uint32_t EventParser::ordinal_of(std::string_view text) {
  auto ordinal = ordinals_.meant(text);
  if (!ordinal) {
    if (ordinals_.size() == kMaxJsonStrings) {
      over_limit_ = true;
      return kNullOrdinal;
    }
    ordinal = static_cast<uint32_t>(ordinals_.size());
    added_.push_back(std::make_unique<std::string>(text));
    ordinals_.add(*added_.back());
    appended_ = true;
  }
  ordinals_.took(*ordinal);
  return *ordinal;
}

void EventParser::learn(const EventType& type, uint64_t offset, Bytes words) {
  if (words.size() != type.argument_bytes) return;
  const auto word = [&](size_t i) { return load_le<uint32_t>(words.data() + 4 * i); };
  const auto text = [&](size_t i) {
    return word(i) < ordinals_.size() ? ordinals_[word(i)] : std::string_view();
  };
  Definition definition;
  definition.wire_id = word(0) & 0xFFFF;
  definition.event_class = static_cast<uint16_t>(word(1));
  definition.flags = word(2);
  definition.name = text(3);
  definition.signature = text(4);
  types_.define(definition, offset, findings_);
}

}  // namespace collect::wtf

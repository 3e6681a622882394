#include "formats/dial9/json_lines.h"

#include <charconv>
#include <map>

#include "formats/core/text/printable.h"
#include "formats/core/text/utf8_text.h"

namespace collect::dial9 {
namespace {

constexpr size_t kOutputBytes = size_t{64} << 10;

void append_number(uint64_t number, std::string& out) {
  char text[20];
  const auto end = std::to_chars(text, text + sizeof text, number).ptr;
  out.append(text, end);
}

void append_quoted_number(uint64_t number, std::string& out) {
  out += '"';
  append_number(number, out);
  out += '"';
}

void append_hex(uint8_t byte, std::string& out) {
  constexpr char kDigits[] = "0123456789abcdef";
  out += kDigits[byte >> 4];
  out += kDigits[byte & 0x0f];
}

std::string shown(std::string_view text) {
  std::string good;
  append_utf8(text, good);
  return good;
}

void append_stack(StackView stack, std::string& out) {
  out += '[';
  for (size_t i = 0; i < stack.size(); ++i) {
    if (i != 0) out += ',';
    append_quoted_number(stack[i], out);
  }
  out += ']';
}

// An object, so equal keys collapse to the last value. This is for display: the events have all.
void append_string_map(StringMapView map, std::string& out) {
  std::map<std::string, std::string> sorted;
  for (StringMapView::Pair pair; map.next(pair);) sorted[shown(pair.key)] = shown(pair.value);
  out += '{';
  for (bool first = true; const auto& [key, value] : sorted) {
    if (!first) out += ',';
    first = false;
    append_minimal_json_string(out, key);
    out += ':';
    append_minimal_json_string(out, value);
  }
  out += '}';
}

void append_dynamic(const Value& value, std::string& out);

// A value of one of the types that need no pool.
void append_value(const Value& value, std::string& out) {
  switch (value.type()) {
    case FieldType::kI64:
      out += '"';
      out += std::to_string(value.i64());
      out += '"';
      break;
    case FieldType::kF64:
      out += "\"f:";
      for (int shift = 56; shift >= 0; shift -= 8)
        append_hex(static_cast<uint8_t>(value.u64() >> shift), out);
      out += '"';
      break;
    case FieldType::kBool:
      out += value.boolean() ? "true" : "false";
      break;
    case FieldType::kString:
      append_minimal_json_string(out, value.text());
      break;
    case FieldType::kBytes:
      out += '"';
      for (const uint8_t byte : value.bytes()) append_hex(byte, out);
      out += '"';
      break;
    case FieldType::kStackFrames:
      append_stack(value.stack(), out);
      break;
    case FieldType::kStringMap:
      append_string_map(value.string_map(), out);
      break;
    case FieldType::kDynamicList:
    case FieldType::kDynamicMap:
      append_dynamic(value, out);
      break;
    default:
      append_quoted_number(value.u64(), out);
      break;
  }
}

// [type, value]; the three integers of fixed width show as Varint. No deeper than the decoder lets
// through.
void append_element(const Value& value, std::string& out) {
  const bool integer = value.type() == FieldType::kU8 || value.type() == FieldType::kU16 ||
                       value.type() == FieldType::kU32;
  out += '[';
  append_number(static_cast<uint8_t>(integer ? FieldType::kVarint : value.type()), out);
  out += ',';
  append_value(value, out);
  out += ']';
}

void append_dynamic(const Value& value, std::string& out) {
  const bool is_map = value.type() == FieldType::kDynamicMap;
  DynamicView view = value.dynamic();
  out += '[';
  Value element;
  for (uint64_t i = 0; view.next(element); ++i) {
    if (i != 0) out += ',';
    if (is_map && i % 2 == 0) out += '[';
    append_element(element, out);
    if (is_map && i % 2 == 1) out += ']';
  }
  out += ']';
}

void append_unresolved(std::string_view pool, uint32_t id, std::string& out) {
  out += "\"<unresolved ";
  out += pool;
  out += '#';
  append_number(id, out);
  out += ">\"";
}

void append_field(const Event& event, size_t field, std::string& out) {
  const Value& value = event[field];
  if (!value.present()) {
    out += "null";
  } else if (value.type() == FieldType::kPooledString) {
    const auto text = event.pools().string(value.pool_id());
    text ? append_minimal_json_string(out, *text) : append_unresolved("pool", value.pool_id(), out);
  } else if (value.type() == FieldType::kPooledStackFrames) {
    const auto stack = event.pools().stack(value.pool_id());
    stack ? append_stack(*stack, out) : append_unresolved("stack", value.pool_id(), out);
  } else {
    append_value(value, out);
  }
}

void append_end(FrameRange range, std::string& out) {
  out += "\"end\":";
  append_number(range.end, out);
}

}  // namespace

// Headers inside the stream print nothing.
void JsonLines::on_header(uint64_t) {
  if (begun_) return;
  begun_ = true;
  out_ += "{\"k\":\"header\",\"version\":1}";
  end_line();
}

void JsonLines::on_schema(FrameRange range, const KnownSchema& schema) {
  out_ += '{';
  append_end(range, out_);
  out_ += ",\"fields\":[";
  for (size_t field = 0; field < schema.fields(); ++field) {
    out_ += field == 0 ? "[" : ",[";
    append_minimal_json_string(out_, schema.field_name(field));
    out_ += ',';
    append_number(schema.type_bytes()[field], out_);
    out_ += ']';
  }
  out_ += "],\"k\":\"schema\",\"name\":";
  append_minimal_json_string(out_, schema.name());
  out_ += schema.has_timestamp() ? ",\"ts\":true}" : ",\"ts\":false}";
  end_line();
}

void JsonLines::on_event(const Event& event) {
  out_ += '{';
  append_end(event.range(), out_);
  out_ += ",\"id\":";
  append_number(event.schema().type_id(), out_);
  out_ += ",\"k\":\"event\",\"name\":";
  append_minimal_json_string(out_, event.schema().name());
  out_ += ",\"ts\":";
  if (event.has_timestamp()) {
    append_quoted_number(event.timestamp_ns(), out_);
  } else {
    out_ += "null";
  }
  out_ += ",\"v\":[";
  for (size_t field = 0; field < event.size(); ++field) {
    if (field != 0) out_ += ',';
    append_field(event, field, out_);
  }
  out_ += "]}";
  end_line();
}

void JsonLines::on_strings(FrameRange range, StringPoolView strings) {
  out_ += "{\"e\":[";
  StringPoolView::Entry entry;
  for (bool first = true; strings.next(entry); first = false) {
    out_ += first ? "[" : ",[";
    append_number(entry.id, out_);
    out_ += ',';
    append_minimal_json_string(out_, entry.text);
    out_ += ']';
  }
  out_ += "],";
  append_end(range, out_);
  out_ += ",\"k\":\"strings\"}";
  end_line();
}

void JsonLines::on_stacks(FrameRange range, StackPoolView stacks) {
  out_ += "{\"e\":[";
  StackPoolView::Entry entry;
  for (bool first = true; stacks.next(entry); first = false) {
    out_ += first ? "[" : ",[";
    append_number(entry.id, out_);
    out_ += ',';
    append_stack(entry.stack, out_);
    out_ += ']';
  }
  out_ += "],";
  append_end(range, out_);
  out_ += ",\"k\":\"stacks\"}";
  end_line();
}

void JsonLines::on_annotations(FrameRange range, const AnnotationsView& notes) {
  out_ += "{\"e\":[";
  bool first = true;
  notes.for_each([&](uint16_t field, std::string_view key, std::string_view value) {
    out_ += first ? "[" : ",[";
    first = false;
    append_number(field, out_);
    out_ += ',';
    append_minimal_json_string(out_, key);
    out_ += ',';
    append_minimal_json_string(out_, value);
    out_ += ']';
  });
  out_ += "],";
  append_end(range, out_);
  out_ += ",\"id\":";
  append_number(notes.type_id, out_);
  out_ += ",\"k\":\"annotations\"}";
  end_line();
}

Status JsonLines::finish(const std::optional<Problem>& problem) {
  if (problem) {
    out_ += "{\"k\":\"error\",\"msg\":";
    append_minimal_json_string(out_, problem->sentence);
    out_ += ",\"pos\":";
    append_number(problem->frame_offset, out_);
    out_ += "}\n";
  } else {
    out_ += "{\"k\":\"end\"}\n";
  }
  if (status_.ok())
    status_ = sink_.write({reinterpret_cast<const uint8_t*>(out_.data()), out_.size()});
  out_.clear();
  return status_;
}

void JsonLines::end_line() {
  out_ += '\n';
  if (out_.size() < kOutputBytes) return;
  if (status_.ok())
    status_ = sink_.write({reinterpret_cast<const uint8_t*>(out_.data()), out_.size()});
  out_.clear();
}

Status dump_json_lines(Bytes stream, ByteSink& sink) {
  Decoder decoder;
  JsonLines lines(sink);
  const Decoded decoded = decoder.decode(stream, lines);
  if (decoded.state == DecodeState::kStopped) return lines.status();
  return lines.finish(decoder.finish(stream.subspan(decoded.bytes)));
}

}  // namespace collect::dial9

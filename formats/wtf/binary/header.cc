#include "formats/wtf/binary/header.h"

#include <fmt/core.h>

#include <cmath>

#include "formats/core/text/json_cursor.h"
#include "formats/wtf/text.h"

namespace collect::wtf {
namespace {

// The next value as text; other kinds are passed over and leave `out` as it was.
void text_member(JsonCursor& cursor, std::string& out) {
  if (cursor.peek() == JsonKind::kString) {
    cursor.string(out);
  } else {
    cursor.skip();
  }
}

void text_array(JsonCursor& cursor, std::vector<std::string>& out) {
  out.clear();
  cursor.enter_array();
  while (cursor.next_element()) {
    std::string text;
    text_member(cursor, text);
    out.push_back(std::move(text));
  }
}

void read_user_agent(JsonCursor& cursor, UserAgent& agent) {
  std::string key;
  cursor.enter_object();
  while (cursor.next_member(key)) {
    std::string* const member = key == "value"             ? &agent.value
                                : key == "type"            ? &agent.type
                                : key == "platform"        ? &agent.platform
                                : key == "platformVersion" ? &agent.platform_version
                                : key == "device"          ? &agent.device
                                                           : nullptr;
    if (member != nullptr) {
      text_member(cursor, *member);
    } else {
      cursor.skip();
    }
  }
}

void read_icon(JsonCursor& cursor, std::string& uri) {
  std::string key;
  cursor.enter_object();
  while (cursor.next_member(key)) {
    if (key == "uri") {
      text_member(cursor, uri);
    } else {
      cursor.skip();
    }
  }
}

// Returns the contextType.
std::string read_context(JsonCursor& cursor, ContextInfo& context) {
  std::string key, type;
  cursor.enter_object();
  while (cursor.next_member(key)) {
    const JsonKind kind = cursor.peek();
    if (key == "contextType") {
      text_member(cursor, type);
    } else if (key == "uri") {
      text_member(cursor, context.uri);
    } else if (key == "title") {
      text_member(cursor, context.title);
    } else if (key == "taskId") {
      text_member(cursor, context.task_id);
    } else if (key == "icon" && kind == JsonKind::kObject) {
      read_icon(cursor, context.icon_uri);
    } else if (key == "args" && kind == JsonKind::kArray) {
      text_array(cursor, context.arguments);
    } else if (key == "userAgent" && kind == JsonKind::kObject) {
      read_user_agent(cursor, context.user_agent);
    } else {
      cursor.skip();
    }
  }
  return type;
}

void wrong(Findings& findings, uint64_t offset, std::string sentence) {
  findings.add(Severity::kError, Rule::kHeaderJson, offset, std::move(sentence));
}

void print_member(std::string& out, const char* key, std::string_view value) {
  append_json_string(out, key);
  out += ':';
  append_json_string(out, value);
}

void print_strings(std::string& out, const std::vector<std::string>& strings) {
  out += '[';
  for (const std::string& text : strings) {
    if (out.back() != '[') out += ',';
    append_json_string(out, text);
  }
  out += ']';
}

void print_context(std::string& out, const ContextInfo& context) {
  out += "{\"contextType\":\"script\",";
  print_member(out, "uri", context.uri);
  out += ',';
  print_member(out, "title", context.title);
  out += ",\"icon\":";
  if (context.icon_uri.empty()) {
    out += "null";
  } else {
    out += '{';
    print_member(out, "uri", context.icon_uri);
    out += '}';
  }
  out += ',';
  print_member(out, "taskId", context.task_id);
  out += ",\"args\":";
  print_strings(out, context.arguments);
  out += ",\"userAgent\":{";
  const UserAgent& agent = context.user_agent;
  print_member(out, "value", agent.value);
  out += ',';
  print_member(out, "type", agent.type);
  out += ',';
  print_member(out, "platform", agent.platform);
  out += ',';
  print_member(out, "platformVersion", agent.platform_version);
  out += ',';
  print_member(out, "device", agent.device);
  out += "}}";
}

}  // namespace

std::string print_header(const FileHeader& header) {
  std::string out = "{\"type\":\"file_header\",\"flags\":";
  print_strings(out, header.flags);
  out += ",\"timebase\":";
  append_number(out, std::isfinite(header.timebase_ms) ? header.timebase_ms : 0.0);
  if (header.context) {
    out += ",\"contextInfo\":";
    print_context(out, *header.context);
  }
  out += ",\"metadata\":";
  out += header.metadata.empty() ? "{}" : header.metadata;
  out += '}';
  return out;
}

std::optional<FileHeader> parse_header(std::string_view json, uint64_t offset, Findings& findings) {
  if (json.size() > kMaxHeaderJsonBytes) {
    wrong(findings, offset, fmt::format("a header of {} bytes", json.size()));
    return std::nullopt;
  }
  FileHeader header;
  header.flags.clear();
  header.context.reset();
  bool has_timebase = false;
  std::string key, context_type;
  JsonCursor cursor(json, offset);
  cursor.enter_object();
  while (cursor.next_member(key)) {
    const JsonKind kind = cursor.peek();
    std::string_view raw;
    if (key == "timebase" && kind == JsonKind::kNumber) {
      const auto timebase = cursor.number(raw) ? json_double(raw) : std::nullopt;
      has_timebase = timebase.has_value();
      header.timebase_ms = timebase.value_or(0);
    } else if (key == "flags") {
      if (kind == JsonKind::kArray) {
        text_array(cursor, header.flags);
      } else {
        if (kind != JsonKind::kNull)
          wrong(findings, cursor.offset(), "the header's flags are no array");
        cursor.skip();
      }
    } else if (key == "contextInfo" && kind == JsonKind::kObject) {
      header.context.emplace();
      context_type = read_context(cursor, *header.context);
    } else if (key == "metadata") {
      if (cursor.raw(raw)) header.metadata = raw;
    } else {
      cursor.skip();
    }
  }
  if (!cursor.at_end()) {
    wrong(findings, cursor.offset(), std::string("the header is not JSON: ") + cursor.error());
    return std::nullopt;
  }
  if (!has_timebase) wrong(findings, offset, "the header has no timebase");
  if (header.context && context_type != "script") {
    wrong(findings, offset,
          fmt::format("the header's contextType is '{}', not 'script'", context_type));
  }
  return header;
}

std::optional<ContextInfo> parse_context(std::string_view json, uint64_t offset,
                                         Findings& findings) {
  ContextInfo context;
  JsonCursor cursor(json, offset);
  read_context(cursor, context);
  if (cursor.at_end()) return context;
  wrong(findings, cursor.offset(), std::string("the contextInfo is not JSON: ") + cursor.error());
  return std::nullopt;
}

}  // namespace collect::wtf

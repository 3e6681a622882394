#include "formats/wtf/binary/event_types.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "formats/wtf/text.h"

namespace collect::wtf {
namespace {

constexpr std::string_view kArgTypeNames[] = {"bool",   "int8",   "uint8",   "int16", "uint16",
                                              "int32",  "uint32", "float32", "char",  "wchar",
                                              "flowId", "time32", "ascii",   "utf8",  "any"};

struct Alias {
  std::string_view alias;
  ArgType type;
};
constexpr Alias kAliases[] = {
    {"byte", ArgType::kInt8},     {"octet", ArgType::kUint8},
    {"short", ArgType::kInt16},   {"unsigned short", ArgType::kUint16},
    {"long", ArgType::kInt32},    {"unsigned long", ArgType::kUint32},
    {"float", ArgType::kFloat32}, {"DOMString", ArgType::kUtf8},
};

constexpr uint32_t kInternalBuiltin = kFlagInternal | kFlagBuiltin;
constexpr Builtin kBuiltins[] = {
    {Role::kDefine, 0, kInternalBuiltin, "wtf.event#define",
     "uint16 wireId, uint16 eventClass, uint32 flags, ascii name, ascii args"},
    {Role::kZoneCreate, 0, kInternalBuiltin, "wtf.zone#create",
     "uint16 zoneId, ascii name, ascii type, ascii location"},
    {Role::kZoneSet, 0, kInternalBuiltin, "wtf.zone#set", "uint16 zoneId"},
    {Role::kZoneDelete, 0, kInternalBuiltin, "wtf.zone#delete", "uint16 zoneId"},
    {Role::kScopeEnter, 1, kFlagBuiltin, "wtf.scope#enter", "ascii name"},
    {Role::kScopeEnterTracing, 1, kInternalBuiltin | kFlagSystemTime, "wtf.scope#enterTracing", ""},
    {Role::kScopeLeave, 0, kInternalBuiltin, "wtf.scope#leave", ""},
    {Role::kScopeAppendData, 0, kInternalBuiltin | kFlagAppendScopeData, "wtf.scope#appendData",
     "ascii name, any value"},
    {Role::kMark, 0, kInternalBuiltin, "wtf.trace#mark", "ascii name, any value"},
    {Role::kTimeStamp, 0, kFlagBuiltin, "wtf.trace#timeStamp", "ascii name, any value"},
    {Role::kDiscontinuity, 0, kFlagBuiltin, "wtf.trace#discontinuity", ""},
    {Role::kRangeBegin, 0, kInternalBuiltin, "wtf.timeRange#begin",
     "uint32 id, ascii name, any value"},
    {Role::kRangeEnd, 0, kInternalBuiltin, "wtf.timeRange#end", "uint32 id"},
    {Role::kFlowBranch, 0, kInternalBuiltin, "wtf.flow#branch",
     "flowId id, flowId parentId, ascii name, any value"},
    {Role::kFlowExtend, 0, kInternalBuiltin, "wtf.flow#extend", "flowId id, ascii name, any value"},
    {Role::kFlowTerminate, 0, kInternalBuiltin, "wtf.flow#terminate", "flowId id, any value"},
    {Role::kFlowAppendData, 0, kInternalBuiltin | kFlagAppendFlowData, "wtf.flow#appendData",
     "flowId id, ascii name, any value"},
    {Role::kFrameStart, 0, kFlagInternal, "wtf.timing#frameStart", "uint32 number"},
    {Role::kFrameEnd, 0, kFlagInternal, "wtf.timing#frameEnd", "uint32 number"},
};

constexpr std::string_view kLineEnds[] = {"\n", "\r", "\u2028", "\u2029"};

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_word(char c) {
  return is_letter(c) || is_digit(c) || c == '_';
}
bool is_space(char c) {
  return c == ' ' || (c >= '\t' && c <= '\r');
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

std::optional<ArgType> find_type(std::string_view name) {
  for (size_t i = 0; i < std::size(kArgTypeNames); ++i) {
    if (kArgTypeNames[i] == name) return static_cast<ArgType>(i);
  }
  for (const Alias& alias : kAliases) {
    if (alias.alias == name) return alias.type;
  }
  return std::nullopt;
}

Error bad_piece(std::string_view piece, const char* why) {
  return {Code::kDamaged, fmt::format("argument '{}': {}", safe_text(piece.substr(0, 80)), why)};
}

// One argument: everything up to the last space is the type, the rest the name.
Result<Argument> parse_argument(std::string_view piece, bool& odd) {
  const size_t space = piece.find_last_of(" \t");
  if (space == std::string_view::npos) return bad_piece(piece, "has no type or no name");
  Argument argument;
  std::string_view type = trimmed(piece.substr(0, space));
  if (type.size() > 2 && type.substr(type.size() - 2) == "[]") {
    argument.array = true;
    type = trimmed(type.substr(0, type.size() - 2));
  } else if (type.substr(0, 9) == "sequence<" && type.back() == '>') {
    argument.array = true;
    type = trimmed(type.substr(9, type.size() - 10));
  }
  const auto known = find_type(type);
  if (!known) return bad_piece(piece, "its type is not one of the format's");
  if (argument.array && !may_be_array(*known)) return bad_piece(piece, "no array has this type");
  argument.type = *known;

  const std::string_view name = piece.substr(space + 1);
  const size_t good =
      static_cast<size_t>(std::find_if_not(name.begin(), name.end(), is_word) - name.begin());
  if (good == 0) return bad_piece(piece, "has no name");
  if (is_digit(name[0])) return bad_piece(piece, "its name begins with a digit");
  odd = odd || good != name.size();
  argument.name = name.substr(0, good);
  return argument;
}

bool have_unique_names(const std::vector<Argument>& arguments) {
  std::vector<std::string_view> names;
  for (const Argument& argument : arguments) names.push_back(argument.name);
  std::sort(names.begin(), names.end());
  return std::adjacent_find(names.begin(), names.end()) == names.end();
}

// Whether `arguments` has the types of the builtin; names may differ.
bool has_types_of(const std::vector<Argument>& arguments, const Builtin& known) {
  const auto expected = parse_signature(known.signature);
  return std::equal(arguments.begin(), arguments.end(), expected->begin(), expected->end(),
                    [](const Argument& a, const Argument& b) {
                      const bool both_text =
                          (a.type == ArgType::kAscii || a.type == ArgType::kUtf8) &&
                          b.type == ArgType::kAscii;
                      return a.array == b.array && (a.type == b.type || both_text);
                    });
}

bool needs_builtin_flag(Role role) {
  return role == Role::kDefine || role == Role::kZoneCreate || role == Role::kZoneSet ||
         role == Role::kZoneDelete;
}

}  // namespace

std::string_view arg_type_name(ArgType type) {
  return kArgTypeNames[static_cast<size_t>(type)];
}

void EventType::finish() {
  unique_names = have_unique_names(arguments);
  fixed_size = true;
  argument_bytes = arguments.size() * 4;
  for (const Argument& argument : arguments) fixed_size = fixed_size && !argument.array;
  role = Role::kNone;
  for (const Builtin& known : kBuiltins) {
    if (known.name != name) continue;
    const bool flagged = (flags & kFlagBuiltin) != 0 || !needs_builtin_flag(known.role);
    // Leaving a scope takes nothing from the arguments: viewers go by the name alone.
    const bool by_name = known.role == Role::kScopeLeave;
    if (flagged && (by_name || has_types_of(arguments, known))) role = known.role;
  }
}

Result<std::vector<Argument>> parse_signature(std::string_view text, bool* odd) {
  std::vector<Argument> arguments;
  if (text.empty()) return arguments;
  if (text.size() > kMaxSignatureBytes) {
    return Error{Code::kLimit, fmt::format("an argument list of {} bytes", text.size())};
  }
  bool any_odd = false;
  size_t begin = 0;
  while (true) {
    const size_t comma = std::min(text.find(',', begin), text.size());
    auto argument = parse_argument(trimmed(text.substr(begin, comma - begin)), any_odd);
    if (!argument) return argument.error();
    if (arguments.size() == kMaxArguments) {
      return Error{Code::kLimit, fmt::format("more than {} arguments of one event", kMaxArguments)};
    }
    arguments.push_back(std::move(argument).value());
    if (comma == text.size()) break;
    begin = comma + 1;
  }
  if (odd != nullptr) {
    *odd = any_odd || !have_unique_names(arguments);
  }
  return arguments;
}

std::string print_signature(std::span<const Argument> arguments) {
  std::string text;
  for (const Argument& argument : arguments) {
    if (!text.empty()) text += ", ";
    text += arg_type_name(argument.type);
    text += argument.array ? "[] " : " ";
    text += argument.name;
  }
  return text;
}

std::span<const Builtin> builtins() {
  return kBuiltins;
}

const Builtin& builtin(Role role) {
  for (const Builtin& known : kBuiltins) {
    if (known.role == role) return known;
  }
  COLLECT_CHECK(false);
  return kBuiltins[0];
}

bool is_argument_name(std::string_view name) {
  return !name.empty() && !is_digit(name[0]) && std::all_of(name.begin(), name.end(), is_word);
}

std::string safe_argument_name(std::string_view name) {
  std::string safe;
  for (const char c : name) safe += is_word(c) ? c : '_';
  if (safe.empty()) return "argument";
  if (is_digit(safe[0])) safe.insert(safe.begin(), '_');
  return safe;
}

bool is_event_name(std::string_view name) {
  return !name.empty() && is_safe_text(name) && !has_line_end(name);
}

std::string safe_event_name(std::string_view name) {
  std::string safe = safe_text(name);
  for (const std::string_view line_end : kLineEnds) {
    for (size_t at = 0; (at = safe.find(line_end, at)) != std::string::npos;) {
      safe.erase(at + 1, line_end.size() - 1);
      safe[at] = ' ';
    }
  }
  return safe.empty() ? "unnamed" : safe;
}

bool has_line_end(std::string_view name) {
  return std::any_of(std::begin(kLineEnds), std::end(kLineEnds), [&](std::string_view line_end) {
    return name.find(line_end) != std::string_view::npos;
  });
}

bool is_scope_name(std::string_view name) {
  constexpr std::string_view kOthers = "_.#:$[]\"'-";
  return !name.empty() && std::all_of(name.begin(), name.end(), [&](char c) {
    return is_letter(c) || is_digit(c) || kOthers.find(c) != std::string_view::npos;
  });
}

std::string safe_scope_name(std::string_view name) {
  std::string safe;
  for (const char c : name) {
    if (is_scope_name(std::string_view(&c, 1))) {
      safe += c;
    } else if ((static_cast<unsigned char>(c) & 0xC0) != 0x80) {  // once for each UTF-8 character
      safe += '_';
    }
  }
  return safe.empty() ? "unnamed" : safe;
}

bool is_safe_text(std::string_view bytes) {
  return bytes.find('\0') == std::string_view::npos && is_utf8(bytes);
}

std::string safe_text(std::string_view bytes) {
  std::string safe;
  while (!bytes.empty()) {
    const Utf8Step step = utf8_step(bytes);
    if (step.is_valid && bytes[0] != '\0') {
      safe.append(bytes.substr(0, step.bytes));
      bytes.remove_prefix(step.bytes);
    } else {
      safe += "\xEF\xBF\xBD";
      bytes.remove_prefix(1);
    }
  }
  return safe;
}

std::string thread_zone_name(std::string_view process, uint64_t pid, std::string_view thread,
                             uint64_t tid) {
  return fmt::format("{} ({}) / {} ({})", safe_text(process), pid, safe_text(thread), tid);
}

}  // namespace collect::wtf

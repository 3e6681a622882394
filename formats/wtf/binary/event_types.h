// Event types: what a file defines before it uses it. Argument lists, the builtin events, and the
// rules that make names safe for the published viewer (FORMAT.md "Event types", "Names").
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/core/result.h"
#include "formats/wtf/layout.h"

namespace collect::wtf {

enum class ArgType : uint8_t {
  kBool,
  kInt8,
  kUint8,
  kInt16,
  kUint16,
  kInt32,
  kUint32,
  kFloat32,
  kChar,    // one byte, shown as the character with this code
  kWchar,   // one UTF-16 unit
  kFlowId,  // uint32
  kTime32,  // uint32 microseconds, shown in milliseconds
  kAscii,   // ordinal into the chunk's string table, UTF-8
  kUtf8,    // the same
  kAny,     // the same; the text is JSON
};

std::string_view arg_type_name(ArgType type);  // "uint16"

constexpr bool is_string(ArgType type) {
  return type >= ArgType::kAscii;
}
// Types that may be in an array: int8 to float32, char, wchar.
constexpr bool may_be_array(ArgType type) {
  return type >= ArgType::kInt8 && type <= ArgType::kWchar;
}
// Bytes of an array element.
constexpr size_t element_bytes(ArgType type) {
  switch (type) {
    case ArgType::kInt8:
    case ArgType::kUint8:
    case ArgType::kChar:
    case ArgType::kBool:
      return 1;
    case ArgType::kInt16:
    case ArgType::kUint16:
    case ArgType::kWchar:
      return 2;
    default:
      return 4;
  }
}

struct Argument {
  ArgType type = ArgType::kUint32;
  bool array = false;
  std::string name;

  friend bool operator==(const Argument&, const Argument&) = default;
};

// What the name of an event makes a reader do.
enum class Role : uint8_t {
  kNone,
  kDefine,
  kZoneCreate,
  kZoneSet,
  kZoneDelete,
  kScopeEnter,
  kScopeEnterTracing,
  kScopeLeave,
  kScopeAppendData,
  kMark,
  kTimeStamp,
  kDiscontinuity,
  kRangeBegin,
  kRangeEnd,
  kFlowBranch,
  kFlowExtend,
  kFlowTerminate,
  kFlowAppendData,
  kFrameStart,
  kFrameEnd,
};

struct EventType {
  uint32_t wire_id = 0;
  uint16_t event_class = kClassInstance;  // as the file has it
  uint32_t flags = 0;
  std::string name;
  std::string signature;  // as the file has it; empty for none
  std::vector<Argument> arguments;

  // Derived by finish().
  Role role = Role::kNone;
  bool unique_names = true;   // no two arguments share theirs
  bool fixed_size = true;     // no arrays: every event of this type has argument_bytes
  size_t argument_bytes = 0;  // in format 10; with arrays, the least
  uint32_t index = 0;         // dense number within its TypeTable

  bool is_scope() const { return event_class == kClassScope; }
  void finish();
};

// "uint32 n, sequence<float> fs" and the published aliases. kDamaged, with the piece in the
// message, for what the published viewer refuses too: unknown types, 64-bit and double among them,
// a missing name, a name that begins with a digit; kLimit past kMaxArguments. `odd` (may be null)
// is set when it can be read but an argument name is cut at an odd character or repeated.
Result<std::vector<Argument>> parse_signature(std::string_view text, bool* odd = nullptr);
// The canonical spelling: "uint32 n, float32[] fs".
std::string print_signature(std::span<const Argument> arguments);

struct Builtin {
  Role role;
  uint16_t event_class;
  uint32_t flags;
  std::string_view name;
  std::string_view signature;
};

// All events that the published library defines, wtf.event#define first.
std::span<const Builtin> builtins();
const Builtin& builtin(Role role);  // not kNone

// --- Names ---
// [A-Za-z_][A-Za-z0-9_]*, and unique within its list, which is the caller's to see to.
bool is_argument_name(std::string_view name);
std::string safe_argument_name(std::string_view name);

// Names in definitions are free text, but for line ends (LF, CR, U+2028, U+2029): the viewer puts
// the name into a line of code that it compiles, and refuses a file when the rest is no code.
bool has_line_end(std::string_view name);
bool is_event_name(std::string_view name);           // and not empty, and is_safe_text()
std::string safe_event_name(std::string_view name);  // line ends become spaces

// Names in scope#enter and timeStamp events are read as signatures by the viewer: only letters,
// digits and _.#:$[]"'- survive.
bool is_scope_name(std::string_view name);
std::string safe_scope_name(std::string_view name);

// Any bytes as text that a string table can hold: valid UTF-8 without NUL, every offending byte
// replaced by U+FFFD.
std::string safe_text(std::string_view bytes);
bool is_safe_text(std::string_view bytes);

// "process (pid) / thread (tid)": zones with equal name, type and location merge in the viewer, so
// the numbers belong into the name.
std::string thread_zone_name(std::string_view process, uint64_t pid, std::string_view thread,
                             uint64_t tid);

}  // namespace collect::wtf

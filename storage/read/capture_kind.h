// Which format a capture has: decided by its bytes, not by its name.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "formats/core/bytes.h"
#include "formats/core/result.h"

namespace collect::read {

// Those from kPerfetto on are traces of other programs: they are read into a session, and written
// by storage/export from one.
enum class CaptureKind : uint8_t {
  kAtf,
  kRtc,
  kWtf,
  kWtfJson,
  kDial9,
  kPerfetto,
  kChrome,
  kSpeedscope,
  kFolded,
};
constexpr bool is_timeline(CaptureKind kind) {
  return kind >= CaptureKind::kPerfetto;
}
std::string_view capture_kind_name(
    CaptureKind kind);  // "atf", "wtf-json": as `convert --to` takes it

std::string_view capture_title(CaptureKind kind);  // "Chrome trace", in a sentence
inline constexpr std::string_view kNotACapture =
    "not a capture: neither ATF, RTC, WTF, dial9, Perfetto, Chrome JSON, speedscope nor folded "
    "stacks";

// Nothing: none of these. Never kAtf, whose files belong to a session (session_files.h).
std::optional<CaptureKind> capture_kind_of(Bytes file);

// Why a file cannot be used by a command that reads captures: it is empty, something else, or a
// trace of another program, which is converted first.
Error not_a_capture(const std::string& path, Bytes file);

}  // namespace collect::read

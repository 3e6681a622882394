// Which format a capture has: decided by its bytes, not by its name.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "formats/core/bytes.h"
#include "formats/core/result.h"

namespace collect::read {

enum class CaptureKind : uint8_t { kAtf, kRtc, kWtf, kWtfJson, kDial9 };
std::string_view capture_kind_name(
    CaptureKind kind);  // "atf", "wtf-json": as `convert --to` takes it

// Nothing: none of these. Never kAtf, whose files belong to a session (session_files.h).
std::optional<CaptureKind> capture_kind_of(Bytes file);

// Why a file of no known format cannot be used: it is empty, or something else.
Error not_a_capture(const std::string& path, Bytes file);

}  // namespace collect::read

// The JSON of a file's header part, as a value.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/wtf/finding.h"

namespace collect::wtf {

inline constexpr std::string_view kFlagHighResolutionTimes = "has_high_resolution_times";
inline constexpr std::string_view kFlagTimesAsCount = "times_as_count";

struct UserAgent {
  std::string value;
  std::string type = "unknown";
  std::string platform = "other";
  std::string platform_version;
  std::string device = "server";
};

// Always of contextType "script": the published viewer refuses every other.
struct ContextInfo {
  std::string uri;
  std::string title;
  std::string icon_uri;  // empty: none
  std::string task_id;
  std::vector<std::string> arguments;
  UserAgent user_agent;
};

struct FileHeader {
  std::vector<std::string> flags{std::string(kFlagHighResolutionTimes)};
  double timebase_ms = 0;  // since the Unix epoch, nominally; fractions are allowed
  std::optional<ContextInfo> context = ContextInfo{};
  std::string metadata;  // JSON text; empty: an empty object
};

// Compact JSON, context and all. Texts have to be UTF-8 and `metadata` JSON.
std::string print_header(const FileHeader& header);

// What the text says, as far as it can be read; everything wrong ends in `findings` with `offset`.
// Absent when it is no JSON object.
std::optional<FileHeader> parse_header(std::string_view json, uint64_t offset, Findings& findings);
// The contextInfo object alone, as legacy files hold it.
std::optional<ContextInfo> parse_context(std::string_view json, uint64_t offset,
                                         Findings& findings);

}  // namespace collect::wtf

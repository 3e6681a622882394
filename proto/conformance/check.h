// A rule of WIRE.md that a peer can be held to, and what came of it.
#pragma once

#include <fmt/core.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace collect::conformance {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// How long a peer is looked at to say that something does not come.
inline constexpr milliseconds kQuietBound{300};
// From the first connection of an agent to the end of its recording.
inline constexpr milliseconds kSessionBound{60'000};

struct Rule {
  std::string_view name;
  std::string_view section;  // of WIRE.md
  std::string_view text;
};

enum class Outcome : uint8_t { kOk, kFailed, kSkipped };

struct Verdict {
  Outcome outcome = Outcome::kOk;
  std::string text;  // what was expected and what came, or why it was skipped

  static Verdict ok() { return {}; }
  static Verdict failed(const std::string& expected, const std::string& came) {
    return {Outcome::kFailed, fmt::format("expected {}; {}", expected, came)};
  }
  static Verdict skipped(const std::string& why) { return {Outcome::kSkipped, why}; }
};

struct Settings {
  milliseconds timeout{10'000};   // for each thing that has to come
  std::string token;              // empty: none
  std::vector<std::string> only;  // names; empty: every check
};

using Report = std::function<void(const Rule&, const Verdict&)>;

}  // namespace collect::conformance

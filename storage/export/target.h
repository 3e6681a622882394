// What `convert --to` takes: the kinds of captures, and the formats of viewers and query engines,
// which are made of a session. A further format of viewers is a value here, its name in kViewNames,
// and a case of export_view(); the command line, its messages and the tests of all formats go by
// these.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "storage/read/capture_kind.h"

namespace collect::exports {

// read::CaptureKind's values first, then those of viewers; some of these are read, too.
enum class Target : uint8_t {
  kAtf,
  kRtc,
  kWtf,
  kWtfJson,
  kDial9,
  kPerfetto,
  kChrome,
  kSpeedscope,
  kFolded,
  kPprof,
  kHtml,
  kParquet,
};
inline constexpr Target kFirstView = Target::kPerfetto;
static_assert(static_cast<int>(read::CaptureKind::kDial9) + 1 == static_cast<int>(kFirstView));
static_assert(static_cast<int>(read::CaptureKind::kFolded) == static_cast<int>(Target::kFolded));

inline constexpr auto kViewNames = std::to_array<std::string_view>(
    {"perfetto", "chrome", "speedscope", "folded", "pprof", "html", "parquet"});
inline constexpr size_t kTargets = static_cast<size_t>(kFirstView) + kViewNames.size();
static_assert(static_cast<size_t>(Target::kParquet) + 1 == kTargets, "each has its name");

constexpr bool is_view(Target target) {
  return target >= kFirstView;
}
std::string_view name_of(Target target);  // as --to takes it

// "perfetto, chrome, … or parquet".
std::string view_words();

// Calls `visit(target)` for each, in their order; for those of viewers alone.
template <class Visit>
void for_each_target(const Visit& visit) {
  for (size_t i = 0; i < kTargets; ++i) visit(static_cast<Target>(i));
}
template <class Visit>
void for_each_view(const Visit& visit) {
  for (auto i = static_cast<size_t>(kFirstView); i < kTargets; ++i) visit(static_cast<Target>(i));
}

}  // namespace collect::exports

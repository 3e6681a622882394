#include "storage/read/capture_kind.h"

#include <fmt/core.h>

#include <algorithm>

#include "formats/chrome/reader.h"
#include "formats/dial9/read/decoder.h"
#include "formats/folded/reader.h"
#include "formats/perfetto/reader.h"
#include "formats/rtc/marker.h"
#include "formats/speedscope/reader.h"
#include "formats/wtf/layout.h"

namespace collect::read {

std::string_view capture_kind_name(CaptureKind kind) {
  static constexpr std::string_view kNames[] = {
      "atf", "rtc", "wtf", "wtf-json", "dial9", "perfetto", "chrome", "speedscope", "folded"};
  return kNames[static_cast<size_t>(kind)];
}

std::string_view capture_title(CaptureKind kind) {
  static constexpr std::string_view kTitles[] = {
      "ATF",          "RTC container",   "WTF-trace",
      "WTF-trace",    "dial9 stream",    "Perfetto trace",
      "Chrome trace", "speedscope file", "folded stacks"};
  return kTitles[static_cast<size_t>(kind)];
}

std::optional<CaptureKind> capture_kind_of(Bytes file) {
  if (rtc::looks_like_rtc(file)) return CaptureKind::kRtc;
  if (wtf::looks_like_wtf(file.first(std::min(file.size(), wtf::kSniffBytes)))) {
    return wtf::file_kind(file) == wtf::FileKind::kJson ? CaptureKind::kWtfJson : CaptureKind::kWtf;
  }
  if (dial9::looks_like_dial9(file)) return CaptureKind::kDial9;
  if (chrome::looks_like_chrome(file)) return CaptureKind::kChrome;
  if (speedscope::looks_like_speedscope(file)) return CaptureKind::kSpeedscope;
  if (perfetto::looks_like_perfetto(file)) return CaptureKind::kPerfetto;
  if (folded::looks_like_folded(file)) return CaptureKind::kFolded;
  return std::nullopt;
}

Error not_a_capture(const std::string& path, Bytes file) {
  if (file.empty()) return {Code::kUnsupported, path + ": empty"};
  if (const auto kind = capture_kind_of(file); kind && is_timeline(*kind)) {
    return {Code::kUnsupported,
            fmt::format("{}: {}: collectctl convert --to atf makes a session of it", path,
                        capture_title(*kind))};
  }
  return {Code::kUnsupported, fmt::format("{}: {}", path, kNotACapture)};
}

}  // namespace collect::read

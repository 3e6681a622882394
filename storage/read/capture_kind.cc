#include "storage/read/capture_kind.h"

#include <algorithm>

#include "formats/dial9/read/decoder.h"
#include "formats/rtc/marker.h"
#include "formats/wtf/layout.h"

namespace collect::read {

std::string_view capture_kind_name(CaptureKind kind) {
  static constexpr std::string_view kNames[] = {"atf", "rtc", "wtf", "wtf-json", "dial9"};
  return kNames[static_cast<size_t>(kind)];
}

std::optional<CaptureKind> capture_kind_of(Bytes file) {
  if (rtc::looks_like_rtc(file)) return CaptureKind::kRtc;
  if (wtf::looks_like_wtf(file.first(std::min(file.size(), wtf::kSniffBytes)))) {
    return wtf::file_kind(file) == wtf::FileKind::kJson ? CaptureKind::kWtfJson : CaptureKind::kWtf;
  }
  if (dial9::looks_like_dial9(file)) return CaptureKind::kDial9;
  return std::nullopt;
}

Error not_a_capture(const std::string& path, Bytes file) {
  if (file.empty()) return {Code::kUnsupported, path + ": empty"};
  return {Code::kUnsupported, path + ": not a capture: neither ATF, RTC, WTF nor dial9"};
}

}  // namespace collect::read

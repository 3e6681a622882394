#include "formats/rtc/finding.h"

namespace collect::rtc {

std::string_view rule_name(Rule rule) {
  switch (rule) {
    case Rule::kHead:
      return "head";
    case Rule::kTail:
      return "tail";
    case Rule::kFrame:
      return "frame";
    case Rule::kMoreFlag:
      return "more-flag";
    case Rule::kUnknownStream:
      return "unknown-stream";
    case Rule::kMarkerPayload:
      return "marker-payload";
    case Rule::kMarkerGrid:
      return "marker-grid";
    case Rule::kMarkerForged:
      return "marker-forged";
    case Rule::kMarkerOverrun:
      return "marker-overrun";
    case Rule::kMinorOverrun:
      return "minor-overrun";
    case Rule::kTornFrame:
      return "torn-frame";
    case Rule::kMinorMissing:
      return "minor-missing";
    case Rule::kMinorGrid:
      return "minor-grid";
    case Rule::kIndexSyntax:
      return "index-syntax";
    case Rule::kIndexOrder:
      return "index-order";
    case Rule::kIndexTarget:
      return "index-target";
    case Rule::kIndexSizes:
      return "index-sizes";
    case Rule::kMeta:
      return "meta";
    case Rule::kMetaEntry:
      return "meta-entry";
    case Rule::kMetaMissing:
      return "meta-missing";
    case Rule::kUnitsMissing:
      return "units-missing";
    case Rule::kSession:
      return "session";
    case Rule::kPlatform:
      return "platform";
    case Rule::kCrc:
      return "crc";
    case Rule::kCrcMissing:
      return "crc-missing";
    case Rule::kAfterCrc:
      return "after-crc";
    case Rule::kResync:
      return "resync";
    case Rule::kObjectDropped:
      return "object-dropped";
    case Rule::kObjectLimit:
      return "object-limit";
    case Rule::kClockValue:
      return "clock-value";
    case Rule::kClockUnknown:
      return "clock-unknown";
    case Rule::kClockBackwards:
      return "clock-backwards";
  }
  return "unknown";
}

}  // namespace collect::rtc

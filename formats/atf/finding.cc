#include "formats/atf/finding.h"

namespace collect::atf {

std::string_view check_name(Check check) {
  switch (check) {
    case Check::kHeader:
      return "header";
    case Check::kFooterCount:
      return "footer-count";
    case Check::kHeaderFooter:
      return "header-footer";
    case Check::kChecksum:
      return "checksum";
    case Check::kAfterFooter:
      return "after-footer";
    case Check::kThreadId:
      return "thread-id";
    case Check::kKind:
      return "kind";
    case Check::kTimeOrder:
      return "time-order";
    case Check::kTimeRange:
      return "time-range";
    case Check::kLinkOrder:
      return "link-order";
    case Check::kLinkNoFile:
      return "link-no-file";
    case Check::kDetailHeader:
      return "detail-header";
    case Check::kDetailThreadId:
      return "detail-thread-id";
    case Check::kLinkBack:
      return "link-back";
    case Check::kLinkPast:
      return "link-past";
    case Check::kLinkTime:
      return "link-time";
    case Check::kLinkCount:
      return "link-count";
    case Check::kDetailCounts:
      return "detail-counts";
    case Check::kDetailSeqRange:
      return "detail-seq-range";
    case Check::kDetailFlag:
      return "detail-flag";
    case Check::kDetailWalk:
      return "detail-walk";
    case Check::kPayload:
      return "payload";
    case Check::kPayloadFunction:
      return "payload-function";
    case Check::kRecordType:
      return "record-type";
    case Check::kReserved:
      return "reserved";
    case Check::kPlatform:
      return "platform";
  }
  return "unknown";
}

}  // namespace collect::atf

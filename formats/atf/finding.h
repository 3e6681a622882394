// What a reader of ATF can find wrong, with the lane and the rule that was broken.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "formats/core/findings.h"
#include "formats/core/page.h"

namespace collect::atf {

// Which rule of FORMAT.md "What a reader checks" was broken.
enum class Check : uint8_t {
  kHeader,           // refused: no header, or one that cannot be read
  kFooterCount,      // footer against the bytes of the section
  kHeaderFooter,     // header against footer
  kChecksum,         //
  kAfterFooter,      // bytes behind the footer
  kThreadId,         // record against header (version 1)
  kKind,             // event kind unknown
  kTimeOrder,        // time steps back
  kTimeRange,        // footer's first or last time against the events
  kLinkOrder,        // forward links are not 0, 1, 2, ...
  kLinkNoFile,       // forward links, and no detail file
  kDetailHeader,     // detail file refused
  kDetailThreadId,   // detail header against index header
  kLinkBack,         // detail points at an event that does not point back
  kLinkPast,         // detail points past the index
  kLinkTime,         // linked records carry different times
  kLinkCount,        // number of records against number of links
  kDetailCounts,     // detail header, footer and records disagree
  kDetailSeqRange,   // index_seq range of the detail header
  kDetailFlag,       // has_detail flag against the file's presence
  kDetailWalk,       // the record chain breaks off before the end
  kPayload,          // a function record whose payload has neither known form
  kPayloadFunction,  // payload against event: function id
  kRecordType,       // detail type against event kind
  kReserved,         // reserved bytes are not zero
  kPlatform,         // arch, os or clock outside the enumerations
};

// "footer-count" and so on, for programs.
std::string_view check_name(Check check);

struct Finding {
  Severity severity = Severity::kError;
  Lane lane = Lane::kIndex;
  Check check = Check::kHeader;
  uint64_t offset = 0;   // in the lane's file
  std::string sentence;  // without path and offset
};

class Findings : public FindingList<Finding> {
 public:
  using FindingList::add;
  using FindingList::add_lazily;

  void add(Severity severity, Lane lane, Check check, uint64_t offset, std::string sentence) {
    add({severity, lane, check, offset, std::move(sentence)});
  }
  template <class MakeSentence>
  void add_lazily(Severity severity, Lane lane, Check check, uint64_t offset,
                  MakeSentence make_sentence) {
    add_lazily(severity, [&] { return Finding{severity, lane, check, offset, make_sentence()}; });
  }
};

}  // namespace collect::atf

// What a reader of RTC can find wrong, with the rule that was broken.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "formats/core/findings.h"

namespace collect::rtc {

// Which rule of FORMAT.md "What a reader checks" was broken.
enum class Rule : uint8_t {
  kHead,            // bytes in front of the first credible Marker
  kTail,            // an unfinished frame at the end
  kFrame,           // what is here is no frame
  kMoreFlag,        // "more" on a frame that nothing can follow
  kUnknownStream,   // a frame of a stream that nothing describes
  kMarkerPayload,   // a Marker frame without the magic
  kMarkerGrid,      // a Marker off the grid
  kMarkerForged,    // looks like a Marker and is none
  kMarkerOverrun,   // a frame that reaches over the Marker on the grid
  kMinorOverrun,    // a frame that reaches over the place of a minor index
  kTornFrame,       // a frame of a fixed length in two parts, put together
  kMinorMissing,    // no index where the grid wants one
  kMinorGrid,       // an index off the grid
  kIndexSyntax,     // entries malformed
  kIndexOrder,      // ids not ascending
  kIndexTarget,     // an entry that points at something else
  kIndexSizes,      // Unit or unit stated as no power of two, or changed
  kMeta,            // no valid JSON array
  kMetaEntry,       // one stream's description, or a key of it
  kMetaMissing,     // data before any Meta
  kUnitsMissing,    // the count jumps
  kSession,         // another recording begins
  kPlatform,        // platform frame not understood
  kCrc,             // mismatch
  kCrcMissing,      // a full Unit without
  kAfterCrc,        // frames behind it
  kResync,          // bytes skipped to the next place where reading can begin
  kObjectDropped,   // an object whose end never came
  kObjectLimit,     // an object beyond the reader's limits
  kClockValue,      // a clock's payload is no value
  kClockUnknown,    // refers to a clock that is not there
  kClockBackwards,  // a clock runs backwards
};

// "marker-grid" and so on, for programs.
std::string_view rule_name(Rule rule);

struct Finding {
  Severity severity = Severity::kError;
  Rule rule = Rule::kFrame;
  uint64_t offset = 0;   // in the file
  std::string sentence;  // without path and offset
};

class Findings : public FindingList<Finding> {
 public:
  using FindingList::add;
  using FindingList::add_lazily;

  void add(Severity severity, Rule rule, uint64_t offset, std::string sentence) {
    add({severity, rule, offset, std::move(sentence)});
  }
  template <class MakeSentence>
  void add_lazily(Severity severity, Rule rule, uint64_t offset, MakeSentence make_sentence) {
    add_lazily(severity, [&] { return Finding{severity, rule, offset, make_sentence()}; });
  }
};

}  // namespace collect::rtc

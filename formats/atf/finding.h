// What a reader found wrong, in words, with the place. Skipping quietly is a bug: everything that a
// reader leaves out or does not believe ends here, and a hostile file cannot make the list grow
// without bound.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace collect::atf {

enum class Severity : uint8_t {
  kNote,     // unusual, nothing lost; does not change the grade
  kWarning,  // worth knowing; does not change the grade
  kError,    // the file contradicts itself: grade "damaged"
};

enum class Lane : uint8_t { kIndex, kDetail };

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

// Keeps the first kMaxListed findings and counts all of them.
class Findings {
 public:
  static constexpr size_t kMaxListed = 1000;

  void add(Finding finding) {
    count(finding.severity);
    if (list_.size() < kMaxListed) list_.push_back(std::move(finding));
  }
  void add(Severity severity, Lane lane, Check check, uint64_t offset, std::string sentence) {
    add({severity, lane, check, offset, std::move(sentence)});
  }
  // For findings that every record may cause: the sentence is built only while the list has room.
  template <class MakeSentence>
  void add_lazily(Severity severity, Lane lane, Check check, uint64_t offset,
                  MakeSentence make_sentence) {
    if (list_.size() < kMaxListed) {
      add({severity, lane, check, offset, make_sentence()});
    } else {
      count(severity);
    }
  }

  const std::vector<Finding>& list() const { return list_; }
  uint64_t errors() const { return counts_[static_cast<size_t>(Severity::kError)]; }
  uint64_t warnings() const { return counts_[static_cast<size_t>(Severity::kWarning)]; }
  uint64_t notes() const { return counts_[static_cast<size_t>(Severity::kNote)]; }
  uint64_t unlisted() const { return errors() + warnings() + notes() - list_.size(); }

 private:
  void count(Severity severity) { ++counts_[static_cast<size_t>(severity)]; }

  std::vector<Finding> list_;
  uint64_t counts_[3] = {};
};

}  // namespace collect::atf

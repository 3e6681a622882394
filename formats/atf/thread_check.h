// The check of one thread in ranges of whole records, so that several cores share a big file:
//
//     ThreadCheck check(n, index, detail);
//     while (auto range = check.next()) check.add(check.look(*range));
//     report = check.finish();
//
// Ranges of any size give the same report, to the byte. Memory: that of the report, and what look()
// returned and no one added yet (at most kMaxListed findings and the functions of the range).
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "formats/atf/check.h"
#include "formats/atf/detail_check.h"
#include "formats/atf/event_check.h"

namespace collect::atf {

struct EventRange {
  uint64_t first = 0;
  uint64_t end = 0;
};
using CheckRange = std::variant<EventRange, RecordRange>;
using RangeTally = std::variant<EventTally, DetailTally>;

// next() is called by one thread at a time, and so are add() and finish(); look() by any. All of
// them but finish(), which comes last, may run at the same time: next() and look() read what the
// constructor made, and next() alone moves on in it.
class ThreadCheck {
 public:
  // Some hundred microseconds of work.
  static constexpr uint64_t kRangeBytes = uint64_t{4} << 20;

  // Without `detail` there is no detail.atf; without `index` that is all there is.
  // `bring_index` as for IndexReader::open().
  ThreadCheck(uint32_t n, std::optional<Bytes> index, std::optional<Bytes> detail,
              uint64_t range_bytes = kRangeBytes, const BringBytes* bring_index = nullptr);
  ThreadCheck(const ThreadCheck&) = delete;
  ThreadCheck& operator=(const ThreadCheck&) = delete;

  std::optional<CheckRange> next();
  RangeTally look(const CheckRange& range) const;
  void add(RangeTally&& tally);  // in the order in which next() gave the ranges
  // Quick, unless a checksum is wrong: then the section is read again with the other polynomial.
  ThreadReport finish();

 private:
  void open_detail(Bytes detail);
  void check_platform();
  void conclude_events();
  void summarize_events();
  void check_detail_flag();
  void add(Severity severity, Check check, uint64_t offset, std::string sentence) {
    report_.findings.add(severity, Lane::kIndex, check, offset, std::move(sentence));
  }

  // Constant after construction.
  std::optional<IndexReader> index_;
  std::optional<DetailReader> detail_;
  const uint64_t range_bytes_;
  // State of next().
  uint64_t next_event_ = 0;
  std::optional<RecordRanges> records_;
  // State of add() and finish().
  EventTally events_;
  DetailTally details_;
  Findings detail_findings_;  // of opening the detail file
  ThreadReport report_;
  // Set by add(), read by look(): more functions need not be collected.
  std::atomic<bool> functions_are_full_ = false;
};

}  // namespace collect::atf

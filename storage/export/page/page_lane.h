// One thread on a page's time line: activity, losses, stalls, and bars of its calls.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "formats/calls/lod/call_bars.h"
#include "formats/html/writer.h"
#include "storage/export/exported_session.h"
#include "storage/export/page/page_export.h"
#include "storage/export/page/page_names.h"
#include "storage/read/lod_files.h"

namespace collect::exports {

// What a thread did when: calls and ends in equal parts of the page's time, and losses. As a sink,
// or from the leaves of index.lod.
class Activity : public calls::CallSink {
 public:
  Activity(const ExportedSession& session, const html::Page& page);

  void on_call_begin(const calls::Call& call) {
    if (session_.line_ns(call.begin.ns) >= first_ns_) count(call.begin.ns, 1);
  }
  void on_call_end(const calls::EndedCall& call) {
    const bool is_event =
        call.reason == calls::EndReason::kReturned || call.reason == calls::EndReason::kUnwound;
    if (is_event) count(call.end.ns, 1);
  }
  void on_gap(const calls::Gap& gap, const calls::Moment& last);
  // `before_ns` of a gap without times: of the event before it.
  void add(const calls::Gap& gap, uint64_t before_ns);
  Status add(const calls::LodReader& lod, uint64_t window_last_ns);

  std::vector<uint32_t> take_parts() { return std::move(parts_); }
  std::vector<html::Interval> take_gaps() { return std::move(gaps_); }

 private:
  uint64_t part_of(uint64_t device_ns) const;
  void count(uint64_t device_ns, uint32_t events) { parts_[part_of(device_ns)] += events; }

  const ExportedSession& session_;
  const uint64_t first_ns_;
  const uint64_t part_ns_;
  std::vector<uint32_t> parts_;
  std::vector<html::Interval> gaps_;
};

// The number of a detail record as a bar has it.
uint64_t shown_record(uint64_t detail_seq);

// At most `most` bars: those of the smallest depths. Returns how many calls have none.
uint64_t put_bars(std::vector<calls::CallBar> drawn, size_t most, const ExportedSession& session,
                  const FunctionNames& functions, PageNames& names, std::vector<html::Bar>& bars);

// The longest of them, in order of time. Returns how many are left out.
uint64_t keep_longest(std::vector<html::Interval>& intervals);

}  // namespace collect::exports

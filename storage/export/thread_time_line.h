// The calls of one thread, as a sink of calls::ThreadCalls, into a format with a time line: cut at
// losses, with detail records and stalls in their places, of the wanted functions alone.
//
// At a loss every call ends, and those that are known to be open behind it begin again, with a
// note.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "formats/atf/reader.h"
#include "formats/calls/call.h"
#include "storage/export/event_rate.h"
#include "storage/export/exported_session.h"
#include "storage/export/viewers/time_line_target.h"

namespace collect::exports {

// What the exporter counts, of all threads together.
struct ExportCounts {
  uint64_t calls = 0;  // in the file, begun or begun again
  uint64_t lost_events = 0;
  uint64_t lone_ends = 0;
  uint64_t moved_times = 0;  // that stepped back

  // Beyond it the viewers open the file in minutes, or not at all.
  static constexpr uint64_t kManyCalls = 20'000'000;
  bool are_too_many() const { return calls > kManyCalls; }
};

class ThreadTimeLine : public calls::CallSink {
 public:
  // All outlive it. `thread` has an index.
  ThreadTimeLine(ExportedSession& session, const atf::SessionThread& thread,
                 const ExportedThread& who, const FunctionNames& names, const calls::Window& window,
                 TimeLineTarget& target, EventRate& rate, ExportCounts& counts);

  void on_call_begin(const calls::Call& call);
  void on_call_end(const calls::EndedCall& call);
  void on_lone_end(uint32_t slot, calls::EndReason reason, const calls::Moment& moment);
  void on_gap(const calls::Gap& gap, const calls::Moment& last);
  // After ThreadCalls::finish().
  void finish();

  const std::vector<calls::Gap>& gaps() const { return gaps_; }
  std::vector<calls::Stall> stalls() const { return session_.stalls_of(who_.n); }

 private:
  struct Open {
    uint32_t slot = 0;
    bool is_wanted = false;
    bool is_drawn = false;
  };
  struct Loss {
    uint64_t first_ns = 0;  // of the device's clock
    uint64_t last_ns = 0;   // 0: not known
    uint64_t events = 0;
    uint32_t reasons = 0;
  };

  uint64_t ascending(uint64_t device_ns);
  void arrive(uint64_t device_ns);
  void begin_thread(uint64_t device_ns);
  void draw_stalls(uint64_t until_ns);
  void settle(uint64_t device_ns, bool is_in_doubt);
  bool wants(uint32_t slot);
  const EventNotes* notes_of(uint64_t detail_seq, bool is_end);
  void drop_pages(uint64_t seq);

  ExportedSession& session_;
  const ExportedThread& who_;
  const FunctionNames& names_;
  const calls::Window window_;
  TimeLineTarget& target_;
  EventRate& rate_;
  ExportCounts& counts_;
  std::vector<uint32_t> reasons_;  // of gaps_
  std::vector<calls::Gap> gaps_;
  std::vector<storage::Stall> within_;  // in order of time
  size_t next_within_ = 0;
  size_t next_gap_ = 0;
  std::vector<Open> open_;
  std::vector<int8_t> wanted_;  // by slot: -1 no, 1 yes, 0 not asked yet
  std::optional<Loss> loss_;    // until it is known what is open behind it
  std::optional<atf::DetailCursor> details_;
  EventNotes notes_;
  std::string note_text_;
  uint64_t dropped_seq_ = 0;  // pages of the events before are dropped
  uint64_t last_ns_ = 0;      // of the device's clock, drawn
  bool has_begun_ = false;
};

}  // namespace collect::exports

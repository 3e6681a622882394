// Events of a thread written down in a test, and what a sink was given of them, as lines of text.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "formats/calls/read_thread.h"

namespace collect::calls::testing {

inline constexpr auto kCall = atf::EventKind::kCall;
inline constexpr auto kReturn = atf::EventKind::kReturn;
inline constexpr auto kException = atf::EventKind::kException;

// As atf::IndexEvent, with the fields that the pairing reads.
struct Event {
  uint64_t timestamp_ns;
  atf::EventKind kind;
  uint64_t function_id;
  uint64_t detail_seq = atf::kNoDetail;
};

// As atf::IndexReader.
class Events {
 public:
  explicit Events(std::vector<Event> events) : events_(std::move(events)) {}

  uint64_t size() const { return events_.size(); }
  Event event(uint64_t seq) const { return events_[seq]; }
  uint64_t time_of(uint64_t seq) const { return events_[seq].timestamp_ns; }

  struct Span {
    const Events& events;
    uint64_t first;
    uint64_t count;
    template <class F>
    void for_each(F&& f) const {
      for (uint64_t seq = first; seq < first + count; ++seq) f(seq, events.event(seq));
    }
  };
  Span events(uint64_t first, uint64_t count) const { return {*this, first, count}; }

 private:
  std::vector<Event> events_;
};

// Functions are letters: "+a 10" is a begin, "-a 10..40 total 30 self 20 returned" an end.
class GivenCalls : public CallSink {
 public:
  explicit GivenCalls(const FunctionSlots& slots) : slots_(slots) {}

  void on_call_begin(const Call& call) {
    open_.push_back(call.slot);
    is_in_order_ = is_in_order_ && call.depth + 1 == open_.size();
    lines.push_back("+" + name(call.slot) + " " + std::to_string(call.begin.ns) +
                    (call.is_caller_in_doubt ? " caller in doubt" : ""));
  }
  void on_call_end(const EndedCall& call) {
    is_in_order_ = is_in_order_ && call.depth + 1 == open_.size() && open_.back() == call.slot;
    if (!open_.empty()) open_.pop_back();
    lines.push_back("-" + name(call.slot) + " " + std::to_string(call.begin.ns) + ".." +
                    std::to_string(call.end.ns) + " total " + std::to_string(call.total_ns) +
                    " self " + std::to_string(call.self_ns) + " " + to_text(call.reason) +
                    (call.spans_gap ? " over a gap" : ""));
  }
  void on_lone_end(uint32_t slot, EndReason reason, const Moment& moment) {
    lines.push_back("?" + name(slot) + " " + std::to_string(moment.ns) + " " + to_text(reason));
  }
  void on_gap(const Gap& gap, const Moment& last) {
    lines.push_back("gap " + std::to_string(gap.lost) +
                    (last.seq == kNoEvent ? "" : " behind " + std::to_string(last.ns)));
  }

  std::vector<std::string> ends() const {
    std::vector<std::string> ends;
    std::copy_if(lines.begin(), lines.end(), std::back_inserter(ends),
                 [](const std::string& line) { return line.front() == '-'; });
    return ends;
  }
  // Every end was of the newest call, and none is open.
  bool is_balanced() const { return is_in_order_ && open_.empty(); }

  std::vector<std::string> lines;

 private:
  std::string name(uint32_t slot) const {
    return std::string(1, static_cast<char>(slots_.function_of(slot)));
  }
  const FunctionSlots& slots_;
  std::vector<uint32_t> open_;
  bool is_in_order_ = true;
};

struct Read {
  std::vector<std::string> lines;
  std::vector<std::string> ends;
  ThreadCounts counts;
  bool is_balanced = false;
};

inline Read read(const std::vector<Event>& events, const std::vector<Gap>& gaps = {},
                 const std::vector<Stall>& stalls = {}, Window window = {}) {
  FunctionSlots slots;
  GivenCalls given(slots);
  ThreadCalls<GivenCalls> calls(slots, given, stalls, window);
  read_thread(Events(events), gaps, calls);
  return {given.lines, given.ends(), calls.counts(), given.is_balanced()};
}

}  // namespace collect::calls::testing

// One event as a line: JSON for programs, indented text for people. dump drives it. The printers
// are not thread-safe; several on the same NameTable are.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "daemon/ctl/dump/function_texts.h"
#include "daemon/ctl/terminal/json.h"
#include "daemon/ctl/terminal/text_out.h"
#include "formats/atf/reader.h"
#include "formats/calls/function_slots.h"
#include "formats/calls/open_calls.h"
#include "storage/read/session_manifest.h"
#include "storage/select/time_line.h"

namespace collect::ctl {

// What a printer knows of a thread.
struct PrintedThread {
  uint32_t n = 0;
  uint32_t tid = 0;
  std::string name;
  bool has_depth = false;  // its events carry a call depth: ATF version 1
};

// {"version":1,"thread":0,"tid":4711,"seq":12,"ts_ns":…,"kind":"call","function_id":"0x…",
//  "name":"…"}; of ATF version 1 then "call_depth":…; with a record "detail_seq":…, and where it is
// wanted "detail":{…}.
// On a time line: {"version":1,"session":"<path>", …,"time_ns":…, the time since the epoch, and
// "uncertainty_ns":… where the clock was compared.
class JsonEvents {
 public:
  // A clock that is not null puts the events on a time line, where `time_ns` is their place.
  JsonEvents(const read::NameTable& names, const std::vector<PrintedThread>& threads,
             const select::DeviceClock* clock, const std::string& session);

  void print(TextBuffer& out, size_t thread, uint64_t seq, const atf::IndexEvent& event,
             uint64_t time_ns, const atf::DetailRecord* detail);
  // {"version":1,"thread":0,"tid":4711,"ts_ns":…,"kind":"stall","stall":"page_wait","last_ns":…,
  //  "stalled_ns":…,"joined":1}; a "lock" has "lock":"0x…","owner_tid":… too, where it is known; a
  //  "sample" "function_id":"0x…","name":"…".
  void print(TextBuffer& out, size_t thread, const storage::Stall& stall, uint64_t time_ns);

 private:
  struct Text {
    std::string function;  // `0x…","name":"…"`
    size_t bytes() const { return function.size(); }
  };
  void put_times(TextBuffer& out, uint64_t ts_ns, uint64_t time_ns);

  const read::NameTable& names_;
  const select::DeviceClock* const clock_;
  std::vector<std::string> prefixes_;  // by position: up to the thread's id
  std::vector<bool> has_depth_;        // by position
  FunctionTexts<Text> functions_;
};

// Where an event is among the calls of its thread.
struct CallLocation {
  uint32_t depth = 0;  // to print at
  bool has_duration = false;
  uint64_t duration_ns = 0;  // of the call that the event closed
};

// The calls of a session's threads. Every event is given to move(), printed or not, in the order of
// its thread.
class CallPlaces {
 public:
  explicit CallPlaces(size_t threads) : open_(threads) {}

  CallLocation move(size_t thread, const atf::IndexEvent& event);
  uint32_t depth(size_t thread) const {
    return static_cast<uint32_t>(std::min(open_[thread].depth(), calls::OpenCalls::kMaxDepth));
  }

 private:
  calls::FunctionSlots slots_;
  std::vector<calls::OpenCalls> open_;  // by position
};

// Time since the origin, duration at a return, and the function at its depth:
//          1.500            |   parse() {
//          2.750      1.250 |   } parse
class TextEvents {
 public:
  struct Margin {
    bool thread = false;  // lines of several threads alternate
    size_t session = 0;   // not 0: lines of several sessions do, and this is the number shown
  };
  TextEvents(const read::NameTable& names, std::vector<PrintedThread> threads, uint64_t origin_ns,
             Margin margin);

  void begin_thread(TextBuffer& out, size_t thread, uint64_t events);
  void print(TextBuffer& out, size_t thread, const atf::IndexEvent& event, uint64_t time_ns,
             const CallLocation& place, const atf::DetailRecord* detail);
  // At its begin, with the stalled time in the column of durations.
  void print(TextBuffer& out, size_t thread, const storage::Stall& stall, uint64_t time_ns,
             uint32_t depth);

 private:
  struct Text {
    std::string call;  // `parse() {`
    std::string name;  // `parse`
    size_t bytes() const { return call.size() + name.size(); }
  };
  void print_margin(TextBuffer& out, size_t thread, std::optional<int64_t> since_ns,
                    std::optional<uint64_t> duration_ns, uint32_t depth);

  const read::NameTable& names_;
  std::vector<PrintedThread> threads_;
  uint64_t origin_ns_;
  const Margin margin_;
  FunctionTexts<Text> functions_;
};

// A detail record by itself: what `dump` of a lone detail.atf prints.
void print_detail_json(TextBuffer& out, uint64_t seq, const atf::DetailRecord& record);
void print_detail_text(TextBuffer& out, uint64_t seq, const atf::DetailRecord& record);

}  // namespace collect::ctl

// One event as a line: JSON for programs, indented text for people. dump drives it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "daemon/ctl/call_stack.h"
#include "daemon/ctl/names.h"
#include "daemon/ctl/text_out.h"
#include "daemon/ctl/time_line.h"
#include "formats/atf/reader.h"

namespace collect::ctl {

// What a printer knows of a thread.
struct PrintedThread {
  uint32_t n = 0;
  uint32_t tid = 0;
  std::string name;
  bool has_depth = false;  // its events carry a call depth: ATF version 1
};

// {"thread":0,"tid":4711,"seq":12,"ts_ns":…,"kind":"call","function_id":"0x…","name":"…",
//  "detail_seq":null}; of ATF version 1 with "call_depth":… before that; with a record:
// …,"detail":{…}}.
// On a time line: {"session":"<path>", …,"time_ns":…,"uncertainty_ns":…, with the time since the
// epoch.
class JsonEvents {
 public:
  // A clock that is not null puts the events on a time line, where `time_ns` is their place.
  JsonEvents(TextOut& out, const NameTable& names, const std::vector<PrintedThread>& threads,
             const DeviceClock* clock, const std::string& session);

  void print(size_t thread, uint64_t seq, const atf::IndexEvent& event, uint64_t time_ns,
             const std::optional<atf::DetailRecord>& detail);
  // {"thread":0,"tid":4711,"seq":null,"ts_ns":…,"kind":"stall","stall":"page_wait","last_ns":…,
  //  "stalled_ns":…,"joined":1}
  void print(size_t thread, const storage::Stall& stall, uint64_t time_ns);

 private:
  void put_times(uint64_t ts_ns, uint64_t time_ns);

  TextOut& out_;
  const NameTable& names_;
  const DeviceClock* const clock_;
  std::vector<std::string> prefixes_;  // by position: up to and with `"seq":`
  std::vector<bool> has_depth_;        // by position
};

// Time since the origin, duration at a return, and the function at its depth:
//          1.500            |   parse() {
//          2.750      1.250 |   } parse
// Events that are not printed still have to be given to pass(): they move the depth.
class TextEvents {
 public:
  struct Margin {
    bool thread = false;  // lines of several threads alternate
    size_t session = 0;   // not 0: lines of several sessions do, and this is the number shown
  };
  TextEvents(TextOut& out, const NameTable& names, std::vector<PrintedThread> threads,
             uint64_t origin_ns, Margin margin);

  void begin_thread(size_t thread, uint64_t events);
  void print(size_t thread, const atf::IndexEvent& event, uint64_t time_ns,
             const std::optional<atf::DetailRecord>& detail);
  void pass(size_t thread, const atf::IndexEvent& event);
  // At its begin, with the stalled time in the column of durations.
  void print(size_t thread, const storage::Stall& stall, uint64_t time_ns);

 private:
  struct Moved {
    size_t depth = 0;                     // to print at
    std::optional<uint64_t> duration_ns;  // of the call that the event closed
  };
  Moved move(size_t thread, const atf::IndexEvent& event);
  void print_margin(size_t thread, std::optional<int64_t> since_ns,
                    std::optional<uint64_t> duration_ns, size_t depth);

  TextOut& out_;
  const NameTable& names_;
  std::vector<PrintedThread> threads_;
  uint64_t origin_ns_;
  const Margin margin_;
  FunctionSlots slots_;
  std::vector<CallStack> stacks_;  // by position
};

// A detail record by itself: what `dump` of a lone detail.atf prints.
void print_detail_json(TextOut& out, uint64_t seq, const atf::DetailRecord& record);
void print_detail_text(TextOut& out, uint64_t seq, const atf::DetailRecord& record);

}  // namespace collect::ctl

// The calls of a session's threads as the scopes of a WTF-trace: zones, types, and what a return
// closes. The caller gives each thread's events in the order of their times.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "formats/calls/function_slots.h"
#include "formats/calls/open_calls.h"
#include "storage/convert/wtf/wtf_files.h"
#include "storage/read/session_manifest.h"

namespace collect::convert {

class WtfScopes {
 public:
  // `names` and `log` outlive it.
  WtfScopes(const storage::Manifest& session, const read::NameTable& names, std::string output,
            ConvertLog& log)
      : identity_(session.identity), names_(names), log_(log), files_(session, std::move(output)) {}

  // Before begin(); they are numbered from 0. `n` is that of thread_N.
  void add_thread(uint32_t n, uint32_t thread_id, const std::string& name);

  // The first file, for events from `ns` on.
  Status begin(uint64_t ns);
  bool is_open() const { return files_.is_open(); }
  bool takes(uint64_t ns) { return files_.writer().takes(ns); }
  uint64_t epoch_ns() const { return files_.epoch_ns(); }
  // The first ends here. `types_full`: its type numbers have run out, else its time has.
  Status next_file(uint64_t ns, bool types_full);

  uint32_t slot_of(uint64_t function_id) { return slots_.slot_of(function_id); }
  // Makes the type that call() wants. kLimit: this file has no more; try the next.
  Status define(uint32_t slot);

  // The thread that the next events are of. False: a file has no zone for it.
  Result<bool> select(uint32_t thread);
  Status call(uint64_t ns, uint32_t slot);
  Status give_back(uint64_t ns, uint32_t slot);  // a return
  Status exception(uint64_t ns, uint32_t slot);  // it ends the call
  Status mark(uint64_t ns, std::string_view text, std::string_view json_value = "null");
  uint64_t last_ns(uint32_t thread) const { return threads_[thread].last_ns; }

  // Closes what is open, ends the last file and reports to the log.
  Status finish();

 private:
  struct Thread {
    uint32_t n = 0;
    uint32_t thread_id = 0;
    std::string name;
    uint16_t zone = 0;  // 0: none was left
    calls::OpenCalls open;
    std::vector<bool> visible;  // of each open call: whether it is open in this file
    uint64_t last_ns = 0;
  };

  Status create_zones();
  Result<uint32_t> define_function(uint32_t slot);
  Status close_calls(Thread& thread, uint64_t ns);
  // What the end of a call closes in this file, and beside it.
  struct Ends {
    bool matches = false;    // a call of this function was open
    bool is_hidden = false;  // too deep to be followed
    bool own = false;        // that call is open in this file
    uint32_t unwound = 0;    // calls within it that are
  };
  Ends end_call(uint64_t ns, uint32_t slot);
  void keep_open_types(wtf::WriterState& state);
  void hide_calls(Thread& thread, uint64_t ns);
  std::string text_of(uint32_t slot) const;

  const storage::SessionIdentity identity_;
  const read::NameTable& names_;
  ConvertLog& log_;
  WtfFiles files_;
  std::vector<Thread> threads_;
  Thread* thread_ = nullptr;  // that is selected

  // Types of our own events, the same in every file.
  uint32_t exception_type_ = 0, return_type_ = 0, unwind_type_ = 0;
  calls::FunctionSlots slots_;
  std::vector<uint32_t> type_of_slot_;  // 0: not defined in this file
  uint32_t newest_type_ = 0;
  std::unordered_set<uint64_t> odd_functions_;  // counted already

  uint64_t too_deep_ = 0, lone_returns_ = 0, unwound_ = 0, exceptions_ = 0;
};

}  // namespace collect::convert

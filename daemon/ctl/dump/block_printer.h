// Prints blocks of events. Each worker has its own: several may print blocks of the same sessions
// at once.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "daemon/ctl/dump/dump_blocks.h"

namespace collect::ctl {

// How far a block is printed.
struct PrintedBlock {
  size_t events = 0;  // looked at
  size_t stalls = 0;
  size_t records = 0;
  uint64_t printed = 0;   // events
  bool is_whole = false;  // with the stalls behind its last event
};

class BlockPrinter {
 public:
  // `origins_ns`: the zero of each session's text. `filters` guards the sessions' filters, which
  // all printers share.
  BlockPrinter(const DumpOptions& options,
               const std::vector<std::unique_ptr<DumpedSession>>& sessions,
               const std::vector<uint64_t>& origins_ns, std::mutex& filters);

  // Continues with the block. Stops behind `max_events` printed ones, and before an event that
  // would make `out` much larger than `max_bytes`.
  void print(const DumpBlock& block, PrintedBlock& done, TextBuffer& out, uint64_t max_events,
             size_t max_bytes);

  void begin_thread(const DumpBlock& block, TextBuffer& out);  // of text

 private:
  struct Session {
    Session(const DumpOptions& options, DumpedSession& dumped, size_t number, uint64_t origin_ns);

    DumpedSession& dumped;
    JsonEvents json;
    TextEvents text;
  };
  // What the shared filter said of functions.
  struct Decision {
    uint64_t function_id = 0;
    size_t session = SIZE_MAX;
    bool is_wanted = false;
  };
  static constexpr int kDecisionBits = 12;

  bool wants(size_t session, uint64_t function_id);
  void print_stalls(const DumpBlock& block, PrintedBlock& done, TextBuffer& out);

  const DumpOptions& options_;
  std::mutex& filters_;
  std::vector<std::unique_ptr<Session>> sessions_;
  std::vector<Decision> decisions_;
};

}  // namespace collect::ctl

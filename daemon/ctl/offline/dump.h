// `collectctl dump PATH…`: the events, as indented text or as JSON lines. Streams: memory does not
// grow with the files.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <limits>
#include <string>
#include <vector>

#include "daemon/ctl/offline/time_words.h"

namespace collect::ctl {

struct DumpOptions {
  std::vector<std::string> paths;  // session, thread or file; or a directory above sessions
  bool json = false;
  bool merged = false;  // time order across threads, and sessions, instead of one by one
  bool detail = false;  // with registers and stack bytes, where there are any
  std::vector<std::string> threads;  // storage/model/thread_pattern.h; empty: all
  WindowWords when;  // numbers are of the device clock; of merged sessions: since the epoch
  std::vector<std::string> functions;  // symbolize/function_pattern.h; empty: all
  uint64_t limit = std::numeric_limits<uint64_t>::max();  // events printed
  bool progress = false;                                  // `err` is a terminal, and `out` is none
};

// 0: all that was asked for was printed, or the reader of `out` went away; 1: some threads could
// not be read, or a thread or function that was asked for is not there; 2: the path itself cannot
// be read, or an option makes no sense.
int dump(const DumpOptions& options, std::ostream& out, std::ostream& err);

}  // namespace collect::ctl

// Options of `inspect`, `verify` and `dump`, which a capture of each format answers.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "storage/select/time_words.h"

namespace collect::ctl {

struct InspectOptions {
  std::string path;       // session, thread or file; or a directory above sessions
  bool json = false;      // one document
  bool color = false;     // `out` is a terminal
  bool progress = false;  // `err` is a terminal
};

struct VerifyOptions {
  std::string path;     // session, thread or file; or a directory above sessions
  bool json = false;    // one document
  bool strict = false;  // warnings and notes count as findings too
  // A session or file that is not complete passes, if what is there holds.
  bool allow_incomplete = false;
  bool color = false;
  bool progress = false;
};

struct DumpOptions {
  std::vector<std::string> paths;  // session, thread or file; or a directory above sessions
  bool json = false;
  bool merged = false;  // time order across threads, and sessions, instead of one by one
  bool detail = false;  // with registers and stack bytes, where there are any
  std::vector<std::string> threads;  // storage/model/thread_pattern.h; empty: all
  select::WindowWords when;  // numbers are of the device clock; of merged sessions: since the epoch
  std::vector<std::string> functions;  // formats/core/text/function_pattern.h; empty: all
  uint64_t limit = std::numeric_limits<uint64_t>::max();  // events printed
  bool progress = false;                                  // `err` is a terminal, and `out` is none
};

}  // namespace collect::ctl

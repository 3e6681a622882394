// What the readers of other programs' traces (formats/chrome/reader.h and others) find in a file:
// processes, tracks, the calls on them, and markers. A reader calls; storage/convert/timeline keeps
// what it says and puts it in order. A track is what is drawn as one row of nested calls: a thread,
// mostly.
//
// Times are nanoseconds on one clock for the whole file, in any order. Numbers of processes, tracks
// and functions are given by the sink.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "formats/core/result.h"

namespace collect {

class TimelineSink {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;

  TimelineSink() = default;
  TimelineSink(const TimelineSink&) = delete;
  TimelineSink& operator=(const TimelineSink&) = delete;
  virtual ~TimelineSink() = default;

  // kNone: there are too many. All that takes a number takes kNone, too, and counts it.
  virtual uint32_t add_process(uint32_t pid) = 0;  // 0: not known
  virtual uint32_t add_track() = 0;
  virtual void name_process(uint32_t process, std::string_view name) = 0;
  virtual void name_track(uint32_t track, std::string_view name) = 0;
  // `tid` 0: not known.
  virtual void place_track(uint32_t track, uint32_t process, uint32_t tid) = 0;
  // The number of the function of this name, and of this source where it is known.
  virtual uint32_t function(std::string_view name, std::string_view file = {},
                            uint32_t line = 0) = 0;

  // A call begins; the last one that began and has no end ends; a call with both.
  virtual Status begin(uint32_t track, int64_t ns, uint32_t function) = 0;
  virtual Status end(uint32_t track, int64_t ns) = 0;
  virtual Status call(uint32_t track, int64_t ns, uint64_t duration_ns, uint32_t function) = 0;
  virtual Status marker(int64_t ns, std::string_view text) = 0;

  // What the file has and a session has no place for, by kind; what the file lacks; and what else
  // its reader should know (storage/convert/convert_log.h).
  virtual void leave_out(std::string_view kind, uint64_t count = 1) = 0;
  virtual void missing(std::string sentence) = 0;
  virtual void remark(std::string sentence) = 0;
  virtual void progress(uint64_t offset) = 0;
};

}  // namespace collect

// A stream of another format out of containers again, into a Session: byte for byte where
// everything is there. Where something is missing, the stream continues at the next place that is
// alone, another sub-stream's header, so that the file is whole frames in any case.
//
// Part of one CaptureReplay, used on its thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "formats/dial9/read/stream_decoder.h"
#include "storage/session/session.h"

namespace collect::storage {

class PassthroughReplay {
 public:
  explicit PassthroughReplay(PassthroughKind kind) : kind_(kind) {}

  // What comes next is somewhere in the stream: the next expect() says where.
  void begin_anywhere() { placed_ = false; }
  // A manifest says that so many bytes had been stored when it was written.
  void expect(uint64_t bytes);
  // The container is damaged here: objects may be missing.
  void doubt() { interrupted_ = true; }
  // The next object. Absent: it, or what holds of it, is stored, or was before; else a sentence
  // about what is not. An error is the target's.
  Result<std::optional<std::string>> take(Session& writer, Bytes object);
  // What the last manifest said of the stream. The sentence is about what is missing in all.
  Result<std::optional<std::string>> finish(Session& writer, const PassthroughStream& last);

 private:
  bool goes_on(Bytes bytes);
  std::optional<size_t> begins_anew(Bytes bytes);

  const PassthroughKind kind_;
  uint64_t next_ = 0;         // place in the stream of the next object
  bool placed_ = true;        // it is known which place that is
  uint64_t done_ = 0;         // up to here it is stored, or known to be missing
  uint64_t stored_ = 0;       // bytes
  bool interrupted_ = false;  // what comes next may not belong to what is stored
  std::optional<dial9::StreamDecoder> decoder_;
};

}  // namespace collect::storage

// Reads RTC containers over bytes that the caller maps and keeps alive: whole ones, ones cut at
// either end, with holes, with several recordings one behind another. FORMAT.md "Reading".
//
// next() goes through the objects in the order of the file; seek_*() moves by Unit, by position or
// by time without reading what is between. The two mix freely. A reader belongs to one thread at
// a time; several readers may share the bytes.
//
// Memory: the current session's streams, and 16 bytes per fragment of objects that are still open
// (capped by ReaderOptions). No number from the file sizes an allocation.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/core/bytes.h"
#include "formats/core/result.h"
#include "formats/rtc/finding.h"
#include "formats/rtc/layout.h"
#include "formats/rtc/meta/stream_info.h"
#include "formats/rtc/meta/value.h"

namespace collect::rtc {

// What a Unit's Crc says about it.
enum class CrcState : uint8_t { kNone, kIeee, kPublished, kMismatch, kUnchecked };
// "none", "ieee", "writer", "mismatch", "unchecked".
std::string_view to_text(CrcState state);

struct UnitInfo {
  uint64_t offset = 0;            // of its Marker
  std::optional<uint64_t> count;  // as its Index says; starts at 0 with each recording
  std::optional<uint64_t> unit_bytes, minor_bytes;  // as its Index says
  CrcState crc = CrcState::kNone;
};

// What happens on the way besides objects. Called from within next() and, for the bytes it passes,
// from no seek.
class ReaderObserver {
 public:
  virtual ~ReaderObserver() = default;
  // A Unit ended: by the next Marker, by the end of the file or by a resync.
  virtual void unit_ended(const UnitInfo&) {}
  // Bytes [from, to) could not be read; reading continues at `to`.
  virtual void skipped(uint64_t /*from*/, uint64_t /*to*/) {}
  // An object's end never came.
  virtual void object_dropped(const StreamInfo&, uint64_t /*offset*/) {}
};

struct ReaderOptions {
  bool verify_crc = true;
  std::optional<SpecialFrames> special;  // absent: seen from each platform frame
  // Published writers tear frames of a fixed length where an index or the Crc comes, which their
  // header cannot express. Off, such frames are believed, as other readers do: what follows is
  // garbage for a while. On, the two parts are put together, and every other frame that reaches
  // over the place of an index is damage.
  bool repair_torn_frames = false;
  // Whether index entries must point at frames that were read, not only at bytes that look so.
  // Costs one bit for each byte of two Units.
  bool exact_index_targets = false;
  uint64_t max_object_bytes = uint64_t{1} << 32;
  // For all unfinished objects together; 4 Mi of 1024 bytes are 4 GiB.
  size_t max_open_fragments = size_t{4} << 20;
  ReaderObserver* observer = nullptr;  // outlives the reader
};

// One frame, with its payload as it is in the file.
struct Frame {
  uint64_t offset = 0;
  uint64_t id = 0;
  bool more = false;
  Bytes payload;
  const StreamInfo* stream = nullptr;  // null for those below kFirstStreamId
  uint64_t object_offset = 0;          // of the first frame of its object; of streams only
};

// One object of a stream. Everything in it holds until the reader is called again.
class Object {
 public:
  uint64_t offset = 0;                 // of its first frame
  const StreamInfo* stream = nullptr;  // never null once next() returned it
  // The time of the stream's clock when its first frame came; for a clock its own new value. Absent
  // without a clock or before the clock's first value.
  std::optional<int64_t> time_ns;
  uint32_t frames = 0;
  uint64_t size = 0;  // bytes of payload
  // The first of its stream since reading began in the middle or bytes were skipped: what is here
  // may be only its end.
  bool possibly_incomplete = false;
  // The clock has not ticked since bytes were skipped.
  bool time_uncertain = false;

  // The whole payload; gathered into the reader's own buffer when it is in several frames.
  Bytes payload() const;
  // The payload without copying, in order; empty fragments are left out.
  std::span<const Bytes> fragments() const { return fragments_; }

 private:
  friend class Reader;
  std::span<const Bytes> fragments_;
  std::vector<uint8_t>* gathered_ = nullptr;
};

struct Annotation {
  int64_t time_ns = 0;
  // What it is about; null: a time rather than a stream.
  const StreamInfo* about = nullptr;
  // Since the epoch; otherwise on the clock of `about`, whose zero is unknown.
  bool since_epoch = true;
  Format format;
  Bytes body;
};

class Reader {
 public:
  // kDamaged when nothing in the bytes is credible as the start of a Unit, kTruncated when they are
  // too short for one.
  static Result<Reader> open(Bytes file, const ReaderOptions& options = {});
  Reader(Reader&&) noexcept;
  Reader& operator=(Reader&&) noexcept;
  ~Reader();

  // The next complete object of an application's stream; false at the end of the file.
  bool next(Object& object);
  // The next frame of any kind; objects count as read by it.
  bool next_frame(Frame& frame);

  // -- where we are; of the Unit and recording that was entered last
  uint64_t offset() const;  // of the frame that comes next
  const Geometry& geometry() const;
  SpecialFrames special() const;
  Endian endian() const;
  const UnitInfo& unit() const;
  // Null for an id that is not known here. Pointers hold until the next call that moves.
  const StreamInfo* stream(uint64_t id) const;
  std::vector<const StreamInfo*> streams() const;
  // Changes whenever streams() does.
  uint64_t streams_version() const;
  // Current value of a clock; absent before its first.
  std::optional<int64_t> clock_ns(std::string_view name) const;
  // Whether its times count from the epoch: a timespec, a number with an offset, or a delta on one.
  bool clock_has_epoch(std::string_view name) const;

  // -- whole file
  uint64_t head_bytes() const;  // in front of the first credible Marker
  uint64_t tail_bytes() const;  // behind the last whole frame; known once next() returned false
  uint64_t frames() const;      // passed by next() so far
  // Units that the grid has room for; the Unit at position k need not be readable.
  uint64_t unit_count() const;

  // -- moving. Each returns the offset where reading continues. Streams are those of the Unit gone
  // to, clocks and unfinished objects are forgotten. kNotFound when there is no readable Unit from
  // there on.
  //
  // To the k-th Unit from the first credible Marker.
  Result<uint64_t> seek_unit(uint64_t k);
  // To the last index at or before this position of the file.
  Result<uint64_t> seek_offset(uint64_t offset);
  // To the first object with a time not before `time_ns`, by binary search over the Units and then
  // over the minor units. `clock` is the one to search by; empty: the first clock that has an
  // epoch, else the first. The clock must not run backwards across the file. kNotFound also without
  // a clock.
  Result<uint64_t> seek_time(int64_t time_ns, std::string_view clock = {});

  // -- meaning
  Result<Value> value(const Object& object) const;
  Result<Annotation> annotation(const Object& object) const;

  const Findings& findings() const;

 private:
  class Impl;
  explicit Reader(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace collect::rtc

// Writes one RTC container front to back into a ByteSink. FORMAT.md "Writing".
//
// Many writers may live in one process; each belongs to one thread at a time, and none shares
// state. Memory: a buffer of kWriteBufferBytes, the streams' descriptions, one value per clock.
// Nothing is ever patched, so the sink may be a pipe.
//
// An error of the sink ends the writer: every later call returns it. An error about the caller's
// own arguments changes nothing.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "formats/core/byte_sink.h"
#include "formats/core/bytes.h"
#include "formats/core/result.h"
#include "formats/rtc/layout.h"
#include "formats/rtc/meta/stream_info.h"
#include "formats/rtc/read/unit_room.h"

namespace collect::rtc {

inline constexpr size_t kWriteBufferBytes = size_t{128} << 10;

struct WriterOptions {
  Geometry geometry;
  SpecialFrames special = SpecialFrames::kFixed;
  Checksum checksum = Checksum::kIeee;
  // Every clock's current value as the first data behind each Index and index, so that a search by
  // time needs to scan nothing and any cut-off tail has a time. A delta whose base has ticked since
  // is left out until its own next value.
  bool repeat_clocks = true;
  // For platform and Crc, and for what the application writes without saying its order.
  Endian endian = Endian::kLittle;
  // For copies: bytes that are no value of a clock are written too; the clock then shows nothing.
  bool keep_bad_clock_values = false;
};

class Writer {
 public:
  // `sink` outlives the writer. kInvalidArgument when the sizes are not to be had. Nothing is
  // written before the first write(), flush() or finish(), so that streams opened until then are
  // in the first Meta.
  static Result<Writer> create(ByteSink& sink, const WriterOptions& options = {});

  Writer(Writer&&) = default;
  Writer& operator=(Writer&&) = delete;
  // A writer that was not finished leaves a file without its last Crc; what it still buffered is
  // lost.
  ~Writer() = default;

  // Takes a description (its `id` is ignored) and returns the id. The clock, delta and stream that
  // it names exist already. kAlreadyExists for a name in use, kNotFound for a name that is not
  // there, kInvalidArgument for a length over 1024, a clock that is no number, and the like, kLimit
  // when Index, Meta and clocks would no longer leave room for data in a Unit or unit of this size.
  Result<uint64_t> open_stream(StreamInfo info);

  // No further Meta and Index lists it; its id is not used again. kInvalidArgument while an object
  // of it is unfinished or another open stream refers to it.
  Status close_stream(uint64_t id);

  // One object, of any size; it is split into frames as needed, also across units and Units. With
  // `more` the next write() to this stream continues the object. A stream with a length takes whole
  // multiples of it, one frame each, which are never split. A clock's value is written at once and
  // holds from here on.
  Status write(uint64_t id, Bytes object, bool more = false);

  // Hands everything to the sink that write() has taken. A file that ends here is read completely.
  Status flush();

  // Closes the last Unit with its Crc and hands all to the sink; a file without any data still
  // names its streams. Only once; afterwards only the const functions may be called.
  Status finish();

  // Bytes of the file so far, those still buffered included.
  uint64_t position() const { return flushed_ + fill_; }
  // Position that finish() would leave if it came now, at most; for rolling by size.
  uint64_t position_after_finish() const;
  uint64_t units() const { return started_ ? count_ + 1 : 0; }
  // Null for an id that is not open.
  const StreamInfo* stream(uint64_t id) const;
  const WriterOptions& options() const { return options_; }

 private:
  struct Stream {
    bool open = false;
    bool unfinished = false;  // the last write said "more"
    StreamInfo info;
    std::string json;
    uint64_t seen = 0;      // position of its first frame in the last unit that had any; 0 never
    int fixed_length = -1;  // or the length
    // For a clock: its last value, kept to be written again. Versions show whether the clock that
    // it is a delta on still shows what it showed then; 0 before the first value.
    std::array<uint8_t, kMaxClockBytes> value{};
    size_t value_bytes = 0;
    uint64_t version = 0;
    uint64_t base_id = 0;  // of a delta
    uint64_t base_version = 0;
  };

  Writer(ByteSink& sink, const WriterOptions& options);

  Stream* find(uint64_t id);
  Stream* find_named(const std::string& name);
  Status check_references(const StreamInfo& info);
  bool may_repeat(const Stream& clock);

  // Division into Units and units.
  Status start();
  Status open_unit();
  Status open_minor_unit();
  Status close_unit();
  Status next_section();
  Status write_index(std::vector<uint8_t>& entries, uint64_t id);
  Status write_meta();
  Status write_platform();
  Status repeat_clocks();
  Status announce(const Stream& stream);

  // Frames.
  Status write_splittable(uint64_t id, Bytes object, bool more, uint64_t* seen);
  Status write_whole(uint64_t id, Bytes payload, bool more, bool with_length, uint64_t* seen);
  Status write_clock(Stream& stream, Bytes value);
  Status write_bad_clock_value(Stream& stream, Bytes bytes);
  bool put_at_once(Stream& stream, Bytes object, bool more);
  Status put_full_frames(const uint8_t* head, size_t head_bytes, const uint8_t* from, size_t count);
  Status put(Bytes bytes);
  Status pad(uint64_t count);
  Status drain();
  void add_to_crc();
  uint64_t section_room() const { return section_end_ - position(); }

  ByteSink* sink_;
  WriterOptions options_;
  UnitRoom room_;
  std::unique_ptr<uint8_t[]> buffer_;  // of kWriteBufferBytes, none touched before it is used
  std::optional<Error> failure_;

  size_t fill_ = 0;          // bytes in buffer_
  size_t crc_from_ = 0;      // the first of them that crc_ lacks
  uint64_t flushed_ = 0;     // bytes that the sink has taken
  uint32_t crc_ = 0;         // from the Marker's end
  bool started_ = false;     // the first Marker is written
  bool finished_ = false;    //
  bool in_head_ = false;     // between a Marker and the end of its Meta
  uint64_t count_ = 0;       // of the Unit we are in
  uint64_t index_at_ = 0;    // of the Unit's Index; 0 none yet
  uint64_t section_at_ = 0;  // start of the minor unit we are in
  uint64_t section_end_ = 0;
  uint64_t unit_end_ = 0;  // where the Crc begins

  std::vector<Stream> streams_;                      // by id - kFirstStreamId
  std::unordered_map<std::string, uint64_t> named_;  // ids of the open ones that have a name
  uint64_t next_id_ = kFirstStreamId;
  uint64_t next_version_ = 1;
  bool meta_changed_ = true;
  uint64_t last_changed_meta_ = 0;  // position; 0 none yet
  uint64_t platform_seen_ = 0;
  uint64_t crc_seen_ = 0;
  std::vector<uint64_t> clocks_;  // ids of open clocks; a delta comes behind its base
};

}  // namespace collect::rtc

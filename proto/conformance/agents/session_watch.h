// Looks at everything that an agent sends on its data channel: the order of frames, numbers, times
// and counts. Of records it keeps checksums alone, and of so many, to know them again.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "proto/conformance/agents/faults.h"
#include "proto/conformance/frame_link.h"

namespace collect::conformance {

inline constexpr size_t kKnownRecords = 65'536;  // of a lane, from the first on

class SessionWatch {
 public:
  struct Lane {
    uint64_t next = 0;  // number of the record that is expected
    uint64_t lost_total = 0;
    uint64_t last_ns = 0;
    bool has_jumped = false;      // records were overwritten
    std::vector<uint32_t> known;  // checksums of the first records
    bool may_overlap = false;     // the next page: it may begin before the position of Resume
  };
  struct Stream {
    uint32_t recording = 0;
    Lane lanes[2];
    bool is_open = false;  // StreamOpen came on this connection
    bool is_closed = false;
  };

  explicit SessionWatch(Faults& faults) : faults_(faults) {}

  // A new data connection begins: streams have to be opened again, and numbers continue at these
  // positions, or before them.
  void begin(const wire::Hello& hello, uint64_t features);
  void on_frame(const ReceivedFrame& frame);

  uint64_t frames() const { return frames_; }
  uint64_t pages() const { return pages_; }
  uint64_t encoded_pages() const { return encoded_pages_; }
  uint64_t records() const { return records_; }
  uint32_t recording() const { return recording_; }
  bool has_ended() const { return has_ended_; }  // RecordingEnd came
  const std::map<uint32_t, Stream>& streams() const { return streams_; }
  // The Ack for everything that came, of any number of streams.
  wire::Ack ack() const;
  // What has come beyond these positions counts as not sent: it has to come again.
  void forget_beyond(const wire::Ack& kept);

 private:
  void on_start(const ReceivedFrame& frame);
  void on_modules(const ReceivedFrame& frame);
  void on_stream_open(const ReceivedFrame& frame);
  void on_page(const ReceivedFrame& frame);
  void on_records(const PageHeader& page, Bytes records, Lane& lane);
  void look_at_repeat(const PageHeader& page, uint64_t number, Bytes record, Lane& lane);
  void look_at_number(const PageHeader& page, Lane& lane);
  void look_at_times(const PageHeader& page, const std::vector<uint64_t>& times, Lane& lane);
  void on_stream_close(const ReceivedFrame& frame);
  void on_stalls(const ReceivedFrame& frame);
  void on_end(const ReceivedFrame& frame);
  template <class Message>
  std::optional<Message> message(const ReceivedFrame& frame);

  Faults& faults_;
  uint32_t atf_version_ = 0;
  uint64_t features_ = 0;
  uint64_t frames_ = 0;
  uint64_t pages_ = 0;
  uint64_t encoded_pages_ = 0;
  uint64_t records_ = 0;
  uint32_t recording_ = 0;  // 0: none was announced on this connection
  bool has_ended_ = false;
  uint64_t stalls_next_ = 0;
  std::set<uint32_t> modules_;
  std::map<uint32_t, Stream> streams_;
};

}  // namespace collect::conformance

// The data channel while the link is up: explanations, then pages, straight from the rings with one
// gathering write; never blocks. Drain thread only; static storage. Page bytes are copied only to
// be encoded, where the link is slow, and where they come from the spool.
//
// Order: index lanes of all streams in turn, then detail lanes. A batch is small enough that the
// control channel is looked at between two of them.
#pragma once

#include <cstdint>

#include "agent/drain/link/codec_choice.h"
#include "agent/drain/link/frames.h"
#include "agent/drain/link/spool.h"
#include "agent/drain/link/stream_table.h"
#include "agent/drain/ship/metadata_sender.h"
#include "agent/drain/ship/stall_log.h"
#include "agent/ring/recorder.h"
#include "agent/transport/socket.h"
#include "proto/wire/frame_encoder.h"
#include "proto/wire/page_codec.h"

namespace collect::agent {

inline constexpr uint32_t kMaxBatchPages = 64;
inline constexpr uint32_t kMaxBatchBytes = 512 * 1024;
// How old a record may get in a page that is still being filled: what a crash can cost.
inline constexpr uint64_t kFlushMs = 20;
// Fewer bytes of records go raw: there is nothing to win.
inline constexpr uint32_t kMinEncodedBytes = 512;
static_assert(kPageBytes <= wire::kMaxEncodedPage);
inline constexpr uint32_t kSpoolPagesPerRound = 16;
// Percent of the rings that may be used before pages go to the spool. Without a link they all go
// there sooner or later; with one, the less the better.
inline constexpr uint32_t kSpoolAboveWhileUp = 50;
inline constexpr uint32_t kSpoolAboveWhileDown = 25;

enum class PumpStatus : uint8_t {
  kMoved,    // bytes went; there may be more
  kNothing,  // nothing to send now
  kBlocked,  // the socket takes no more: poll for it
  kBroken,   // the link is gone
};

class Shipper {
 public:
  StreamTable& streams() { return streams_; }
  const StreamTable& streams() const { return streams_; }
  MetadataSender& metadata_sender() { return metadata_sender_; }
  StallLog& stalls() { return stalls_; }

  // Both channels are welcomed. Sends everything again that explains the data, and rewinds.
  // `features`: wire::Feature bits that were agreed on.
  void begin_link(bool resumed, uint64_t features);
  void begin_recording(bool unasked);
  // The recording was stopped: after the last page and the last StreamClose, RecordingEnd is sent,
  // and again on later links, until forget_recording().
  void end_recording(uint64_t end_ns, const char* reason,
                     const collect_wire_ProcessEnd* process_end);
  // Releases every stream. A frame that was sent in part can't be finished then: see mid_frame().
  void forget_recording();
  // When the recording that is ending ended.
  uint64_t end_ns() const { return end_.end_ns; }
  // Streams that ended later are not closed yet: more may be to be said of them. `lost`: switches.
  void note_switches(uint64_t known_until_ns, uint64_t lost) {
    closable_until_ns_ = known_until_ns;
    switches_lost_ = lost;
  }
  bool mid_frame() const { return batch_begun_; }

  // At most one write to `data`; `buffer` holds the frames that go before the pages.
  PumpStatus pump(Socket& data, SendBuffer& buffer, uint64_t now_ms);
  bool wants_to_write() const { return blocked_; }

  // Moves the oldest pages of rings that fill up to the spool, also while the link is up: it may be
  // slower than the program. True: a round was not enough.
  bool spool_pages(bool link_is_up, uint64_t now_ms);

  // Bytes of the pages sent on this link, before and after encoding.
  uint64_t link_raw_bytes() const { return link_raw_bytes_; }
  uint64_t link_sent_bytes() const { return link_sent_bytes_; }

  // True once after a page was found at least half full: the program is busy.
  bool take_filled_page() {
    const bool filled = filled_page_;
    filled_page_ = false;
    return filled;
  }

  // Ships pages in the making too, up to what was recorded so far, until it is stored.
  void request_flush();
  // Once, when the last request has been fulfilled.
  bool take_flush_done();

 private:
  struct BatchPage {
    StreamSlot* slot;
    Lane lane;
    uint64_t end_seq;
    uint64_t lost_total;
  };

  bool fill(SendBuffer& buffer, uint64_t now_ms);
  void fill_lane(Lane lane, uint64_t now_ms);
  // Calls `take` for one slot after the other, until `is_full()` or a whole round gave nothing.
  template <class IsFull, class Take>
  void take_turns(Lane lane, IsFull is_full, Take take);
  bool take_page(StreamSlot& slot, Lane lane, bool flush, uint64_t now_ms);
  // All but the codec and the checksum.
  void add_span(StreamSlot& slot, Page& page);
  void add_page(StreamSlot& slot, const PageHeader& page, Bytes sent);
  // The page's bytes encoded, in `out`, or raw where that gains nothing; and so in `page`. Columns
  // are allowed; which others are, the features say.
  Bytes encode(Page& page, MutableBytes out, uint64_t features);
  MutableBytes batch_room() {
    return MutableBytes(encoded_ + encoded_bytes_, sizeof encoded_ - encoded_bytes_);
  }

  // The spool.
  bool take_spooled(StreamSlot& slot, Lane lane);
  // The page from `next_seq` on as it is sent on this link; its bytes are in the batch's room.
  // False: it is lost.
  bool read_spooled(SpoolRef ref, uint64_t next_seq, PageHeader& page, Bytes& sent);
  bool spool_page(StreamSlot& slot, Lane lane, uint64_t now_ms);
  // What the batch has in the rings, from now on in memory of its own: they may give it away.
  void leave_rings();
  bool batch_is_full() const;
  // The loss after the last record of a stream that ended, if no page has reported it yet.
  bool add_trailing_loss(StreamSlot& slot);
  void finish_streams(SendBuffer& buffer);
  bool push_stream_close(StreamSlot& slot, SendBuffer& buffer);
  void push_recording_end(SendBuffer& buffer);
  void batch_was_sent();
  void drop_batch();
  void check_flush();
  IoResult write_out(Socket& data, SendBuffer& buffer);

  StreamTable streams_;
  MetadataSender metadata_sender_;
  StallLog stalls_;

  // The batch on its way: pages of it, and their parts still to be sent.
  bool blocked_ = false;
  bool batch_begun_ = false;  // some of it was sent: nothing can go before it any more
  bool filled_page_ = false;
  uint32_t batch_number_ = 1;
  uint32_t page_count_ = 0;
  uint32_t batch_bytes_ = 0;       // before encoding
  uint32_t batch_sent_bytes_ = 0;  // as sent
  uint32_t encoded_bytes_ = 0;     // of encoded_
  uint32_t ring_bytes_ = 0;  // that are sent straight from the rings: encoded_ has room for them
  uint32_t part_count_ = 0;
  uint32_t part_begin_ = 0;
  BatchPage pages_[kMaxBatchPages];
  uint8_t prefixes_[kMaxBatchPages][wire::kPagePrefixBytes];
  // The first place is kept for the frames that go before.
  iovec parts_[1 + 2 * kMaxBatchPages];

  CodecChoice codec_;
  uint64_t features_ = 0;  // of this link
  wire::ColumnEncoder column_encoder_;
  wire::TupleEncoder tuple_encoder_;
  uint8_t encoded_[kMaxBatchBytes];  // this batch's encoded pages, and those from the spool
  uint64_t link_raw_bytes_ = 0;
  uint64_t link_sent_bytes_ = 0;

  uint8_t spooled_page_[kPageBytes];  // as it is in the spool
  uint8_t decoder_memory_[kPageBytes];

  uint32_t turn_[2] = {0, 0};  // per lane: the slot that is first in the next round
  bool flush_wanted_ = false;
  bool flush_done_ = false;

  uint64_t closable_until_ns_ = UINT64_MAX;
  uint64_t switches_lost_ = 0;
  bool ending_ = false;
  bool end_pushed_ = false;  // on this link
  collect_wire_RecordingEnd end_;
};

template <class IsFull, class Take>
void Shipper::take_turns(Lane lane, IsFull is_full, Take take) {
  uint32_t& turn = turn_[static_cast<uint32_t>(lane)];
  const uint32_t count = streams_.size();
  for (uint32_t without = 0; without < count && !is_full();) {
    if (turn >= count) turn = 0;
    StreamSlot& slot = streams_.at(turn++);
    ++without;
    if (slot.stream != nullptr && take(slot)) without = 0;
  }
}

}  // namespace collect::agent

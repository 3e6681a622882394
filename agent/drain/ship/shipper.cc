#include "agent/drain/ship/shipper.h"

#include <string.h>

#include "agent/crc32c.h"
#include "agent/drain/link/status.h"
#include "agent/platform/monotonic_clock.h"
#include "agent/text.h"
#include "formats/atf/layout.h"
#include "formats/core/bytes.h"
#include "proto/wire/page_codec.h"

namespace collect::agent {
namespace {

constexpr size_t kDetailTimestamp = offsetof(atf::DetailHeaderV2, timestamp_ns);

// Leaves the first `count` records out of a raw page.
Bytes cut_front(PageHeader& page, Bytes raw, uint32_t count) {
  const bool is_index = page.lane == Lane::kIndex;
  for (uint32_t i = 0; i < count; ++i) {
    raw = raw.subspan(is_index ? atf::kEventBytes : load_le<uint32_t>(raw.data()));
  }
  page.first_seq += count;
  page.record_count -= count;
  page.raw_bytes = static_cast<uint32_t>(raw.size());
  page.first_ns = load_le<uint64_t>(raw.data() + (is_index ? 0 : kDetailTimestamp));
  // That loss came before what was left out.
  page.lost_reasons = 0;
  page.lost_first_ns = page.lost_last_ns = 0;
  return raw;
}

}  // namespace

void Shipper::begin_link(bool resumed, uint64_t features) {
  features_ = features;
  codec_.begin_link(wire::is_agreed(Codec::kColumns, features));
  link_raw_bytes_ = link_sent_bytes_ = 0;
  blocked_ = false;
  drop_batch();
  end_pushed_ = false;
  streams_.refresh();
  streams_.begin_link(resumed);
  stalls_.begin_link(streams_);
  metadata_sender_.begin_link();
}

void Shipper::begin_recording(bool unasked) {
  ending_ = end_pushed_ = false;
  metadata_sender_.begin_recording(unasked);
  stalls_.begin_recording();
}

void Shipper::end_recording(uint64_t end_ns, const char* reason,
                            const collect_wire_ProcessEnd* process_end) {
  ending_ = true;
  end_pushed_ = false;
  end_ = collect_wire_RecordingEnd_init_zero;
  end_.recording = current_recording();
  end_.end_ns = end_ns;
  copy_utf8(end_.reason, sizeof end_.reason, reason, sizeof end_.reason);
  end_.has_process_end = process_end != nullptr;
  if (process_end != nullptr) end_.process_end = *process_end;
}

void Shipper::forget_recording() {
  ending_ = end_pushed_ = false;
  drop_batch();
  streams_.release_all();
  if (flush_wanted_) {
    flush_wanted_ = false;
    flush_done_ = true;
  }
}

bool Shipper::batch_is_full() const {
  return page_count_ == kMaxBatchPages || batch_bytes_ + kPageBytes > kMaxBatchBytes ||
         encoded_bytes_ + ring_bytes_ + kPageBytes > kMaxBatchBytes;
}

// What is to be sent of the page: its records, or what they were encoded to.
Bytes Shipper::encode(Page& page, MutableBytes out, uint64_t features) {
  if (page.bytes.size() < kMinEncodedBytes) return page.bytes;
  const uint64_t begin_ns = monotonic_ns();
  size_t size = 0;
  Codec codec = Codec::kTuples;
  if (page.lane == Lane::kIndex && wire::is_agreed(Codec::kTuples, features)) {
    size = tuple_encoder_.encode(page.record_count, page.bytes, out);
  }
  if (size == 0) {
    codec = Codec::kColumns;
    size = column_encoder_.encode(page.lane, page.record_count, page.bytes, out);
  }
  codec_.encoded(page.bytes.size(), monotonic_ns() - begin_ns);
  if (size == 0) return page.bytes;
  page.codec = codec;
  return out.first(size);
}

void Shipper::add_span(StreamSlot& slot, Page& page) {
  page.stream_id = slot.stream_id;
  const Bytes sent = codec_.encodes() ? encode(page, batch_room(), features_) : page.bytes;
  (page.codec != Codec::kRaw ? encoded_bytes_ : ring_bytes_) += static_cast<uint32_t>(sent.size());
  page.bytes_crc32c = crc32c(sent, 0);
  add_page(slot, page, sent);
  if (page.raw_bytes >= kPageBytes / 2) filled_page_ = true;
}

void Shipper::add_page(StreamSlot& slot, const PageHeader& page, Bytes sent) {
  const auto sent_bytes = static_cast<uint32_t>(sent.size());
  uint8_t* const prefix = prefixes_[page_count_];
  wire::encode_page_prefix(page, sent_bytes, crc32c, prefix);
  parts_[1 + part_count_++] = {prefix, wire::kPagePrefixBytes};
  if (sent_bytes != 0) {
    parts_[1 + part_count_++] = {const_cast<uint8_t*>(sent.data()), sent_bytes};
  }
  const uint64_t end_seq = page.first_seq + page.record_count;
  pages_[page_count_++] = {&slot, page.lane, end_seq, page.lost_total};
  slot.taken[static_cast<uint32_t>(page.lane)] = end_seq;
  batch_bytes_ += page.raw_bytes;
  batch_sent_bytes_ += sent_bytes;
  slot.batch = batch_number_;
  slot.lost_sent[static_cast<uint32_t>(page.lane)] = page.lost_total;
}

bool Shipper::take_page(StreamSlot& slot, Lane lane, bool flush, uint64_t now_ms) {
  if (take_spooled(slot, lane)) return true;
  Page span;
  const bool taken = next_span(*slot.stream, lane, kPageBytes, flush, span);
  // Asked for everything: what it did not give is young.
  if (flush) slot.flushed_ms[static_cast<uint32_t>(lane)] = now_ms;
  if (!taken) return false;
  add_span(slot, span);
  mark_sent(*slot.stream, lane, span);
  return true;
}

// One page of each stream in turn.
void Shipper::fill_lane(Lane lane, uint64_t now_ms) {
  const auto lane_number = static_cast<uint32_t>(lane);
  take_turns(
      lane, [this] { return batch_is_full(); },
      [&](StreamSlot& slot) {
        if (!slot.opened || slot.close_sent) return false;
        const bool flush = flush_wanted_ || stream_ended(*slot.stream) ||
                           now_ms - slot.flushed_ms[lane_number] >= kFlushMs;
        return take_page(slot, lane, flush, now_ms);
      });
}

bool Shipper::add_trailing_loss(StreamSlot& slot) {
  bool added = false;
  for (const Lane lane : {Lane::kIndex, Lane::kDetail}) {
    Page span;
    if (!trailing_loss(*slot.stream, lane, slot.lost_sent[static_cast<uint32_t>(lane)], span)) {
      continue;
    }
    if (page_count_ == kMaxBatchPages) return true;
    add_span(slot, span);
    added = true;
  }
  return added;
}

bool Shipper::push_stream_close(StreamSlot& slot, SendBuffer& buffer) {
  stalls_.gather(slot);
  if (!stalls_.has_room_for_threads() || !stalls_.send(buffer)) return false;
  StreamInfo info;
  stream_info(*slot.stream, info);
  const StreamCounts counts = stream_counts(*slot.stream);
  collect_wire_StreamClose close = collect_wire_StreamClose_init_zero;
  close.stream_id = slot.stream_id;
  copy_utf8(close.thread_name, sizeof close.thread_name, info.name, sizeof info.name);
  close.end_ns = stream_end_ns(*slot.stream);
  close.index_count = counts.index_count;
  close.index_lost = counts.index_lost;
  close.detail_count = counts.detail_count;
  close.detail_lost = counts.detail_lost;
  close.calls_left_out = counts.calls_left_out;
  slot.close_sent =
      buffer.push(wire::FrameType::kStreamClose, collect_wire_StreamClose_fields, &close);
  return slot.close_sent;
}

// Closes streams that ended and have nothing left to send. A stream with pages in this batch waits
// for the next: what is in `buffer` goes before the batch.
void Shipper::finish_streams(SendBuffer& buffer) {
  bool all_closed = true;
  for (uint32_t i = 0; i < streams_.size(); ++i) {
    StreamSlot& slot = streams_.at(i);
    if (slot.stream == nullptr || slot.close_sent) continue;
    const bool can_close = slot.opened && slot.batch != batch_number_ && !batch_is_full() &&
                           stream_ended(*slot.stream) &&
                           stream_end_ns(*slot.stream) <= closable_until_ns_;
    // An ended stream is emptied out of the order of lanes: its memory can be freed then.
    if (!can_close || take_page(slot, Lane::kIndex, true, 0) ||
        take_page(slot, Lane::kDetail, true, 0) || add_trailing_loss(slot) ||
        !push_stream_close(slot, buffer)) {
      all_closed = false;
    }
  }
  if (all_closed && ending_ && page_count_ == 0 && stalls_.send(buffer)) push_recording_end(buffer);
}

void Shipper::push_recording_end(SendBuffer& buffer) {
  if (end_pushed_) return;
  end_.lost_without_stream = recorder_stats().lost_without_stream;
  end_.switches_lost = switches_lost_;
  end_pushed_ =
      buffer.push(wire::FrameType::kRecordingEnd, collect_wire_RecordingEnd_fields, &end_);
}

// Makes the next batch; false when there is nothing to send.
bool Shipper::fill(SendBuffer& buffer, uint64_t now_ms) {
  if (current_recording() == 0 || (!is_recording() && !ending_)) return !buffer.is_empty();
  ++batch_number_;
  drop_batch();
  streams_.refresh();
  if (!metadata_sender_.send(streams_, buffer)) return true;  // the rest when there is room again
  if (metadata_sender_.keeps_recording(streams_)) return !buffer.is_empty();
  fill_lane(Lane::kIndex, now_ms);
  fill_lane(Lane::kDetail, now_ms);
  // Records are taken first and stalls after: one that is before a record of this batch is known
  // by now, and goes before it.
  stalls_.gather(streams_);
  (void)stalls_.send(buffer);  // write_out looks whether that was all
  finish_streams(buffer);
  check_flush();
  return page_count_ != 0 || !buffer.is_empty();
}

// What is left of the buffer and then of the batch, in one call.
IoResult Shipper::write_out(Socket& data, SendBuffer& buffer) {
  uint32_t begin = 1 + part_begin_;
  uint32_t count = part_count_ - part_begin_;
  const iovec before = buffer.unsent();
  if (before.iov_len != 0) {
    parts_[--begin] = before;
    // What explains these pages may not all be in the buffer yet: then it goes alone.
    count = metadata_sender_.modules_changed() || stalls_.has_unsent() ? 1 : count + 1;
  }
  const IoResult result = data.send(parts_ + begin, count);
  if (result.status != IoStatus::kDone) return result;
  size_t left = result.bytes;
  const size_t of_buffer = left < before.iov_len ? left : before.iov_len;
  if (of_buffer != 0) buffer.sent(of_buffer);
  left -= of_buffer;
  if (left != 0) batch_begun_ = true;
  while (part_begin_ < part_count_ && left >= parts_[1 + part_begin_].iov_len) {
    left -= parts_[1 + part_begin_++].iov_len;
  }
  if (left != 0) {
    iovec& part = parts_[1 + part_begin_];
    part.iov_base = static_cast<uint8_t*>(part.iov_base) + left;
    part.iov_len -= left;
  }
  return result;
}

void Shipper::batch_was_sent() {
  for (uint32_t i = 0; i < page_count_; ++i) {
    pages_[i].slot->handed[static_cast<uint32_t>(pages_[i].lane)] = pages_[i].end_seq;
  }
  link_raw_bytes_ += batch_bytes_;
  link_sent_bytes_ += batch_sent_bytes_;
  drop_batch();
}

void Shipper::drop_batch() {
  page_count_ = batch_bytes_ = part_count_ = part_begin_ = 0;
  batch_sent_bytes_ = encoded_bytes_ = ring_bytes_ = 0;
  batch_begun_ = false;
}

PumpStatus Shipper::pump(Socket& data, SendBuffer& buffer, uint64_t now_ms) {
  const bool under_way = part_begin_ < part_count_;
  blocked_ = false;
  if (!under_way && buffer.is_empty() && !fill(buffer, now_ms)) {
    codec_.idle();
    return PumpStatus::kNothing;
  }
  // Records are taken first and modules counted after: a module that a record of this batch refers
  // to is known by now, and goes before it.
  if (!batch_begun_ && part_count_ != 0) {
    (void)metadata_sender_.report_modules(buffer);
    (void)stalls_.send(buffer);
  }
  const IoResult result = write_out(data, buffer);
  if (result.status == IoStatus::kAgain) {
    blocked_ = true;
    codec_.blocked(monotonic_ns());
    return PumpStatus::kBlocked;
  }
  if (result.status != IoStatus::kDone) return PumpStatus::kBroken;
  const bool whole = part_begin_ == part_count_ && buffer.is_empty();
  codec_.sent(result.bytes);
  if (whole) batch_was_sent();
  return PumpStatus::kMoved;
}

void Shipper::request_flush() {
  streams_.refresh();
  for (uint32_t i = 0; i < streams_.size(); ++i) {
    StreamSlot& slot = streams_.at(i);
    if (slot.stream == nullptr) continue;
    const StreamCounts counts = stream_counts(*slot.stream);
    slot.flush_target[0] = counts.index_count;
    slot.flush_target[1] = counts.detail_count;
  }
  flush_wanted_ = true;
  flush_done_ = false;
}

// Done when the collector has stored everything that was there at the request.
void Shipper::check_flush() {
  if (!flush_wanted_) return;
  for (uint32_t i = 0; i < streams_.size(); ++i) {
    const StreamSlot& slot = streams_.at(i);
    if (slot.stream == nullptr) continue;
    if (slot.stored[0] < slot.flush_target[0] || slot.stored[1] < slot.flush_target[1]) return;
  }
  flush_wanted_ = false;
  flush_done_ = true;
}

bool Shipper::take_flush_done() {
  const bool done = flush_done_;
  flush_done_ = false;
  return done;
}

// ---- the spool: in from the rings, and out to the collector

bool Shipper::spool_pages(bool link_is_up, uint64_t now_ms) {
  Spool& spool = streams_.spool();
  if (!spool.is_open() || current_recording() == 0) return false;
  const auto fills_up = [&] {
    return spool.takes(now_ms) &&
           buffer_used_beyond(link_is_up ? kSpoolAboveWhileUp : kSpoolAboveWhileDown);
  };
  if (!fills_up()) return false;
  streams_.refresh();
  leave_rings();
  uint32_t left = kSpoolPagesPerRound;
  for (const Lane lane : {Lane::kIndex, Lane::kDetail}) {
    take_turns(
        lane, [&] { return left == 0 || !fills_up(); },
        [&](StreamSlot& slot) {
          const bool taken = spool_page(slot, lane, now_ms);
          if (taken) --left;
          return taken;
        });
  }
  return left == 0;
}

void Shipper::leave_rings() {
  const auto* const prefixes = reinterpret_cast<const uint8_t*>(&prefixes_);
  for (uint32_t i = part_begin_; i < part_count_ && ring_bytes_ != 0; ++i) {
    iovec& part = parts_[1 + i];
    const auto* const from = static_cast<const uint8_t*>(part.iov_base);
    const bool is_prefix = from >= prefixes && from < prefixes + sizeof prefixes_;
    const bool is_encoded = from >= encoded_ && from < encoded_ + sizeof encoded_;
    if (is_prefix || is_encoded) continue;
    uint8_t* const to = batch_room().data();
    memcpy(to, from, part.iov_len);
    part.iov_base = to;
    encoded_bytes_ += static_cast<uint32_t>(part.iov_len);
  }
  ring_bytes_ = 0;
}

// The oldest of what is held, sent or not, so that a lane's records in the spool always come before
// those in its ring. What was sent on this link is sent again on the next one alone, if at all.
bool Shipper::spool_page(StreamSlot& slot, Lane lane, uint64_t now_ms) {
  SpoolChain& chain = slot.spooled[static_cast<uint32_t>(lane)];
  Page page;
  const bool flush = stream_ended(*slot.stream);
  if (!oldest_span(*slot.stream, lane, chain.end_seq, flush, page)) return false;
  page.stream_id = slot.stream_id;
  // Every collector takes columns, or they are decoded for it.
  const Bytes sent = encode(page, spooled_page_, wire::kFeatureColumns);
  page.bytes_crc32c = crc32c(sent, 0);
  if (!streams_.spool().append(chain, page, sent, now_ms)) return false;
  const bool was_sent = chain.end_seq <= slot.taken[static_cast<uint32_t>(lane)];
  if (chain.send == 0 && !was_sent) chain.send = chain.last;
  set_aside(*slot.stream, lane, chain.end_seq);
  if (page.raw_bytes >= kPageBytes / 2) filled_page_ = true;
  return true;
}

bool Shipper::take_spooled(StreamSlot& slot, Lane lane) {
  SpoolChain& chain = slot.spooled[static_cast<uint32_t>(lane)];
  const uint64_t next_seq = slot.handed[static_cast<uint32_t>(lane)];
  while (chain.send != 0) {
    const SpoolRef ref = chain.send;
    chain.send = streams_.spool().next(ref);
    PageHeader page{};
    Bytes sent;
    if (read_spooled(ref, next_seq, page, sent)) {
      encoded_bytes_ = static_cast<uint32_t>(sent.data() + sent.size() - encoded_);
      add_page(slot, page, sent);
      return true;
    }
    log_line("the spool did not give a page back as it was written: its records are lost");
  }
  return false;
}

bool Shipper::read_spooled(SpoolRef ref, uint64_t next_seq, PageHeader& page, Bytes& sent) {
  const Spool& spool = streams_.spool();
  page = spool.page(ref);
  const bool is_cut = next_seq > page.first_seq;
  const bool is_raw = page.codec == Codec::kRaw;
  const bool is_decoded = !is_raw && (is_cut || !wire::is_agreed(page.codec, features_));
  uint8_t* const out = batch_room().data();
  uint8_t* const read = is_decoded ? spooled_page_ : out;
  sent = Bytes(read, spool.sent_bytes(ref));
  if (!spool.read(ref, read) || crc32c(sent, 0) != page.bytes_crc32c) return false;
  if (is_decoded) {
    const MutableBytes raw(out, page.raw_bytes);
    if (wire::decode_columns(page.lane, page.record_count, sent, decoder_memory_, raw) !=
        wire::PageCodecError::kNone) {
      return false;
    }
    page.codec = Codec::kRaw;
    sent = raw;
  }
  if (is_cut) sent = cut_front(page, sent, static_cast<uint32_t>(next_seq - page.first_seq));
  if (is_cut || is_decoded) page.bytes_crc32c = crc32c(sent, 0);
  return true;
}

}  // namespace collect::agent

// What the shipper has in the spool: in from the rings, and out to the collector.
#include <string.h>

#include "agent/crc32c.h"
#include "agent/drain/shipper.h"
#include "agent/drain/status.h"
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
  for (uint32_t i = part_begin_; i < part_count_ && ring_bytes_ != 0; ++i) {
    iovec& part = parts_[1 + i];
    const auto* const from = static_cast<const uint8_t*>(part.iov_base);
    const bool is_prefix = from >= prefixes_[0] && from < prefixes_[0] + sizeof prefixes_;
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
  // Whatever collector comes takes columns, or they are decoded for it.
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

#include "storage/thread/record_scan.h"

#include <algorithm>
#include <bit>

namespace collect::storage {
namespace {

using atf::kDetailHeaderBytes;
using atf::kEventBytes;

// kind() gives 1, 2 or 3 for an event that holds: the kind, and what must be zero above it.
struct V1Index {
  static uint64_t kind(const uint8_t* at, uint32_t thread_id) {
    return std::rotr(load_le<uint64_t>(at + offsetof(atf::IndexEventV1, thread_id)) ^ thread_id,
                     32);
  }
  static uint64_t link(const uint8_t* at) {
    const uint32_t seq = load_le<uint32_t>(at + offsetof(atf::IndexEventV1, detail_seq));
    return seq == atf::kNoDetailV1 ? atf::kNoDetail : seq;
  }
};

struct V2Index {
  static uint64_t kind(const uint8_t* at, uint32_t) {  // with the seven reserved bytes
    return load_le<uint64_t>(at + offsetof(atf::IndexEventV2, event_kind));
  }
  static uint64_t link(const uint8_t* at) {
    return load_le<uint64_t>(at + offsetof(atf::IndexEventV2, detail_seq));
  }
};

// Without branches but for the link, which is the same for long stretches; stops at the first event
// that does not hold by going over its block again.
template <class Format>
void scan_events(uint32_t thread_id, bool with_links, Bytes bytes, uint64_t max_records,
                 LaneSummary& summary) {
  constexpr size_t kBlock = 64;
  const uint64_t count = std::min<uint64_t>(bytes.size() / kEventBytes, max_records);
  LaneSummary next = summary;
  uint64_t done = 0;
  while (done < count) {
    const LaneSummary before = next;
    const uint64_t block = std::min<uint64_t>(kBlock, count - done);
    const uint8_t* at = bytes.data() + done * kEventBytes;
    uint64_t last_ns = next.last_ns;
    // Sums of bits instead of comparisons: the top bit of `backwards` is set when a time ran
    // backwards (or is 292 years ahead), that of `below` when a kind was 0, and `kinds` has bits
    // above the second when one was more than 3.
    uint64_t backwards = 0;
    uint64_t kinds = 0;
    uint64_t below = 0;
    bool bad = false;
    for (uint64_t i = 0; i < block; ++i, at += kEventBytes) {
      const uint64_t time = load_le<uint64_t>(at);
      backwards |= (time - last_ns) | time;
      last_ns = time;
      const uint64_t kind = Format::kind(at, thread_id);
      kinds |= kind;
      below |= kind - 1;
      const uint64_t link = with_links ? Format::link(at) : atf::kNoDetail;
      if (link != atf::kNoDetail) {
        bad |= link < next.next_link || link >= kMaxRecordNumber;
        if (next.links++ == 0) next.first_link = link;
        next.next_link = link + 1;
        next.link_hash = extend_link_hash(next.link_hash, next.records + i);
      }
    }
    bad |= ((backwards | below) >> 63) != 0 || kinds > 3;
    if (bad) {
      next = before;
      if (block == 1) break;
      // The block holds up to some event: find it one by one. At most 64 steps, once per call.
      uint64_t good = 0;
      while (good < block) {
        LaneSummary one = next;
        scan_events<Format>(thread_id, with_links,
                            bytes.subspan((done + good) * kEventBytes, kEventBytes), 1, one);
        if (one.records == next.records) break;
        next = one;
        ++good;
      }
      done += good;
      break;
    }
    if (next.records == 0) next.first_ns = load_le<uint64_t>(bytes.data());
    next.last_ns = last_ns;
    next.records += block;
    next.bytes += block * kEventBytes;
    done += block;
  }
  summary = next;
}

}  // namespace

void scan_index(const RecordFormat& format, Bytes bytes, uint64_t max_records,
                LaneSummary& summary) {
  const bool with_links = !format.without_links;
  if (format.version == atf::Version::kV1) {
    scan_events<V1Index>(format.thread_id, with_links, bytes, max_records, summary);
  } else {
    scan_events<V2Index>(format.thread_id, with_links, bytes, max_records, summary);
  }
}

void scan_detail(const RecordFormat& format, Bytes bytes, uint64_t max_records,
                 LaneSummary& summary) {
  const bool v1 = format.version == atf::Version::kV1;
  while (max_records-- > 0 && bytes.size() >= kDetailHeaderBytes) {
    const uint8_t* at = bytes.data();
    const uint32_t length = load_le<uint32_t>(at);
    if (length < kDetailHeaderBytes || length > bytes.size()) return;
    const uint16_t type = load_le<uint16_t>(at + offsetof(atf::DetailHeaderV2, event_type));
    if (type != static_cast<uint16_t>(atf::DetailType::kFunctionCall) &&
        type != static_cast<uint16_t>(atf::DetailType::kFunctionReturn)) {
      return;
    }
    uint64_t index_seq = load_le<uint64_t>(at + offsetof(atf::DetailHeaderV2, index_seq));
    if (v1) {
      if (static_cast<uint32_t>(index_seq >> 32) != format.thread_id) return;
      index_seq = static_cast<uint32_t>(index_seq);
    }
    const uint64_t time = load_le<uint64_t>(at + offsetof(atf::DetailHeaderV2, timestamp_ns));
    if (index_seq < summary.next_link || index_seq >= kMaxRecordNumber || time < summary.last_ns) {
      return;
    }
    if (summary.records == 0) {
      summary.first_link = index_seq;
      summary.first_ns = time;
    }
    if (summary.links != kLinksNotKnown) ++summary.links;
    summary.last_ns = time;
    summary.next_link = index_seq + 1;
    summary.link_hash = extend_link_hash(summary.link_hash, index_seq);
    ++summary.records;
    summary.bytes += length;
    bytes = bytes.subspan(length);
  }
}

bool holds_alone(const RecordFormat& format, Lane lane, Bytes bytes) {
  if (bytes.size() < (lane == Lane::kIndex ? kEventBytes : kDetailHeaderBytes)) return false;
  if (lane == Lane::kDetail) {
    LaneSummary one;
    scan_detail(format, bytes, 1, one);
    return one.records == 1 && one.last_ns >> 63 == 0;
  }
  const uint8_t* at = bytes.data();
  const uint64_t kind = format.version == atf::Version::kV1 ? V1Index::kind(at, format.thread_id)
                                                            : V2Index::kind(at, 0);
  return kind >= 1 && kind <= 3 && load_le<uint64_t>(at) >> 63 == 0;
}

size_t detail_bytes(Bytes bytes, uint64_t records) {
  size_t at = 0;
  while (records-- > 0 && bytes.size() - at >= kDetailHeaderBytes) {
    const uint32_t length = load_le<uint32_t>(bytes.data() + at);
    if (length < kDetailHeaderBytes || length > bytes.size() - at) break;
    at += length;
  }
  return at;
}

}  // namespace collect::storage

// A traced thread for tests: events with the agent's numbers, pages of them, and what the files of
// a sealed session must hold, worked out from the specification's structs and not by the code under
// test.
#pragma once

#include <deque>
#include <set>
#include <vector>

#include "formats/atf/layout.h"
#include "formats/core/crc32.h"
#include "storage/model/session_types.h"

namespace collect::storage::test {

class FakeStream {
 public:
  FakeStream(atf::Version version, uint32_t stream_id, uint32_t thread_id)
      : version_(version), stream_id_(stream_id), thread_id_(thread_id) {}

  enum class Detail { kNone, kLinked, kPreRoll };

  // One event; with a detail record, the documented payload and so many bytes of stack in it, when
  // asked for. kPreRoll leaves the event without its forward link.
  void add(Detail detail = Detail::kNone, uint16_t stack_bytes = 16) {
    const uint64_t seq = events_;
    const uint64_t link = detail == Detail::kLinked ? details_.size() : atf::kNoDetail;
    time_ns_ += 7 + seq % 3;
    append_event(seq, link);
    if (detail == Detail::kNone) return;
    std::vector<uint8_t> record(atf::kDetailHeaderBytes + atf::kFunctionPayloadBytes + stack_bytes,
                                uint8_t(seq));
    put_detail_header(record, seq);
    uint8_t* payload = record.data() + atf::kDetailHeaderBytes;
    store_le(payload, function_id(seq));
    store_le(payload + 96, stack_bytes);
    store_le(payload + 98, uint16_t(0));
    detail_of_.push_back(seq);
    details_.push_back(std::move(record));
  }
  void add_many(size_t count, Detail detail = Detail::kNone) {
    for (size_t i = 0; i < count; ++i) add(detail, uint16_t(i % 50));
  }

  uint64_t events() const { return events_; }
  uint64_t details() const { return details_.size(); }
  uint32_t stream_id() const { return stream_id_; }
  uint32_t thread_id() const { return thread_id_; }
  uint64_t time_ns() const { return time_ns_; }
  std::vector<uint8_t>& index_bytes() { return index_; }
  const std::vector<uint8_t>& index_bytes() const { return index_; }
  const std::vector<uint8_t>& detail(uint64_t number) const { return details_[number]; }
  uint64_t event_of_detail(uint64_t number) const { return detail_of_[number]; }

  StreamInfo info() const { return {stream_id_, thread_id_, "thread", 1000}; }

  // Records [first, first + count) as a page. The bytes stay valid while this object is not
  // changed.
  Page index_page(uint64_t first, uint64_t count) {
    Page page = empty_page(Lane::kIndex, first, count);
    page.bytes = Bytes(index_).subspan(first * atf::kEventBytes, count * atf::kEventBytes);
    page.bytes_crc32c = crc32c(page.bytes);
    return page;
  }
  Page detail_page(uint64_t first, uint64_t count, bool pre_roll = false) {
    Page page = empty_page(Lane::kDetail, first, count);
    page.flags = pre_roll ? kPagePreRoll : 0;
    detail_pages_.emplace_back();
    std::vector<uint8_t>& bytes = detail_pages_.back();
    for (uint64_t i = first; i < first + count; ++i) {
      bytes.insert(bytes.end(), details_[i].begin(), details_[i].end());
    }
    page.bytes = bytes;
    page.bytes_crc32c = crc32c(page.bytes);
    return page;
  }
  StreamEnd end(uint64_t index_lost = 0, uint64_t detail_lost = 0) const {
    return {stream_id_, "thread", time_ns_, events_, index_lost, details_.size(), detail_lost};
  }

  // The event sections of a sealed session that got all index records but `lost_events` and all
  // detail records but `lost_details` (both by number).
  struct Sections {
    std::vector<uint8_t> index;
    std::vector<uint8_t> detail;
    uint64_t events = 0;
    uint64_t details = 0;
    uint64_t unlinked = 0;  // came whole, but their events did not
  };
  Sections expected(const std::set<uint64_t>& lost_events,
                    const std::set<uint64_t>& lost_details) const {
    Sections out;
    std::vector<uint64_t> position(events_, atf::kNoDetail);
    for (uint64_t seq = 0; seq < events_; ++seq) {
      if (lost_events.contains(seq)) continue;
      position[seq] = out.events++;
      const uint8_t* event = index_.data() + seq * atf::kEventBytes;
      out.index.insert(out.index.end(), event, event + atf::kEventBytes);
      store_link(out.index.data() + out.index.size() - atf::kEventBytes, atf::kNoDetail);
    }
    for (uint64_t i = 0; i < details_.size(); ++i) {
      if (lost_details.contains(i)) continue;
      const uint64_t at = position[detail_of_[i]];
      if (at == atf::kNoDetail) {
        ++out.unlinked;
        continue;
      }
      std::vector<uint8_t> record = details_[i];
      if (version_ == atf::Version::kV1) {
        store_le(record.data() + 8, uint32_t(at));
      } else {
        store_le(record.data() + 8, at);
      }
      store_link(out.index.data() + at * atf::kEventBytes, out.details++);
      out.detail.insert(out.detail.end(), record.begin(), record.end());
    }
    return out;
  }

 private:
  Page empty_page(Lane lane, uint64_t first, uint64_t count) const {
    Page page;
    page.stream_id = stream_id_;
    page.lane = lane;
    page.first_seq = first;
    page.record_count = uint32_t(count);
    return page;
  }

  static uint64_t function_id(uint64_t seq) { return 0x1000 + 16 * (seq / 2 % 5); }

  void append_event(uint64_t seq, uint64_t link) {
    const uint8_t kind = seq % 2 == 0 ? 1 : 2;
    uint8_t event[atf::kEventBytes] = {};
    store_le(event, time_ns_);
    store_le(event + 8, function_id(seq));
    if (version_ == atf::Version::kV1) {
      store_le(event + 16, thread_id_);
      store_le(event + 20, uint32_t(kind));
      store_le(event + 24, uint32_t(seq % 2));
    } else {
      event[24] = kind;
    }
    store_link(event, link);
    index_.insert(index_.end(), event, event + sizeof event);
    ++events_;
  }
  void store_link(uint8_t* event, uint64_t link) const {
    if (version_ == atf::Version::kV1) {
      store_le(event + 28, uint32_t(link));
    } else {
      store_le(event + 16, link);
    }
  }
  void put_detail_header(std::vector<uint8_t>& record, uint64_t seq) const {
    store_le(record.data(), uint32_t(record.size()));
    store_le(record.data() + 4, uint16_t(seq % 2 == 0 ? 3 : 4));
    store_le(record.data() + 6, uint16_t(0));
    if (version_ == atf::Version::kV1) {
      store_le(record.data() + 8, uint32_t(seq));
      store_le(record.data() + 12, thread_id_);
    } else {
      store_le(record.data() + 8, seq);
    }
    store_le(record.data() + 16, time_ns_);
  }

  const atf::Version version_;
  const uint32_t stream_id_;
  const uint32_t thread_id_;
  uint64_t events_ = 0;
  uint64_t time_ns_ = 1000;
  std::vector<uint8_t> index_;
  std::vector<std::vector<uint8_t>> details_;
  std::vector<uint64_t> detail_of_;  // number of the event of each detail record
  std::deque<std::vector<uint8_t>> detail_pages_;
};

}  // namespace collect::storage::test

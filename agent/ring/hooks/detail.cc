#include "agent/ring/hooks/detail.h"

#include <string.h>

#include "agent/ring/hooks/lane_pages.h"
#include "agent/shared_memory.h"
#include "formats/core/bytes.h"

namespace collect::agent {
namespace {

struct alignas(kSharedPage) ArmedPages {
  std::atomic<uint32_t> total{0};
};
constinit ArmedPages armed_pages;

constexpr uint64_t kMemoryPage = 4096;  // the smallest that any platform of ours has

// Bytes of stack that are surely mapped: from the stack pointer to the end of its memory page.
uint32_t readable_stack(uint64_t stack_pointer) {
  if (stack_pointer == 0) return 0;
  const uint64_t left = kMemoryPage - stack_pointer % kMemoryPage;
  return static_cast<uint32_t>(left < atf::kMaxStackBytes ? left : atf::kMaxStackBytes);
}

using StackWord [[gnu::may_alias, gnu::aligned(1)]] = uint64_t;

// Not memcpy: with a sanitizer it would object to reading another function's frame. Volatile, or
// the compiler would make a memcpy of it.
__attribute__((no_sanitize("address", "thread"))) void copy_stack(uint8_t* to, uint64_t from,
                                                                  uint32_t bytes) {
  const auto* words = reinterpret_cast<const volatile StackWord*>(from);
  const uint32_t whole = bytes / uint32_t{sizeof(StackWord)};
  for (uint32_t i = 0; i < whole; ++i) reinterpret_cast<StackWord*>(to)[i] = words[i];
  const auto* source = reinterpret_cast<const volatile uint8_t*>(from);
  for (uint32_t i = whole * uint32_t{sizeof(StackWord)}; i < bytes; ++i) to[i] = source[i];
}

// Field by field into the page: a struct that is put together first would be read back before its
// parts have reached the memory that it is copied from, which costs as much as all the rest.
uint32_t encode(uint8_t* out, const Stream& stream, const DetailRecord& record,
                uint32_t stack_bytes, bool version_1) {
  const auto put = [&out](auto value) {
    store_le(out, value);
    out += sizeof value;
  };
  const HookFrame& frame = record.frame;
  const auto total =
      static_cast<uint32_t>(atf::kDetailHeaderBytes + atf::kFunctionPayloadBytes) + stack_bytes;
  const auto type = record.kind == atf::EventKind::kCall ? atf::DetailType::kFunctionCall
                                                         : atf::DetailType::kFunctionReturn;
  // atf::DetailHeaderV1 or V2, then atf::FunctionPayload.
  put(total);
  put(static_cast<uint16_t>(type));
  put(static_cast<uint16_t>(frame.valid));
  if (version_1) {
    put(static_cast<uint32_t>(record.index_seq));
    put(stream.thread_id);
  } else {
    put(record.index_seq);
  }
  put(record.ns);
  put(record.function_id);
  for (uint32_t n = 0; n < 8; ++n) {
    put((frame.valid & atf::kDetailX0Valid << n) != 0 ? frame.registers[n] : uint64_t{0});
  }
  put(frame.call_site);
  put(frame.frame_pointer);
  put(frame.stack_pointer);
  put(static_cast<uint16_t>(stack_bytes));
  put(uint16_t{0});
  copy_stack(out, frame.stack_pointer, stack_bytes);
  return total;
}

bool has_room(PageRef page, uint32_t bytes) {
  return page != 0 &&
         kPageBytes - page_info(page).committed.load(std::memory_order_relaxed) >= bytes;
}

void append(Stream& stream, PageRef page, const DetailRecord& record, uint32_t stack_bytes,
            bool version_1) {
  PageInfo& info = page_info(page);
  const uint32_t at = info.committed.load(std::memory_order_relaxed);
  const uint32_t total = encode(page_bytes(page) + at, stream, record, stack_bytes, version_1);
  info.records.store(info.records.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  info.newest_ns = record.ns;
  info.committed.store(at + total, std::memory_order_release);  // pairs with next_span's acquire
}

bool write_on(Stream& stream, const DetailRecord& record, uint32_t stack_bytes, bool version_1,
              uint64_t* seq, uint32_t* reasons) {
  LaneState& lane = stream.lane(Lane::kDetail);
  if (lane.open_page.load(std::memory_order_relaxed) != OpenPage::kKept) {
    keep_open_page(stream, Lane::kDetail);
  }
  const auto bytes = static_cast<uint32_t>(atf::kMaxDetailBytes);
  // A page of pre-roll is not continued: its flag holds for all of its records.
  const bool continues = has_room(lane.open, bytes) &&
                         (page_info(lane.open).flags & kPagePreRoll) == 0 &&
                         lane.lost_reasons.load(std::memory_order_relaxed) == 0;
  if (!continues) {
    if (lane.open != 0) {
      const PageInfo& old = page_info(lane.open);
      lane.next_seq = old.first_seq + records_of(old, Lane::kDetail);
    }
    *reasons = kLostRingFull;
    const bool may = full_policy() == FullPolicy::kOverwrite || detail_may_grow();
    const PageRef page = may ? take_page(lane, Lane::kDetail, reasons) : 0;
    if (page == 0) return false;
    if (lane.open != 0) count_closed_page(page_info(lane.open));
    PageInfo& info = page_info(page);
    info.first_seq = lane.next_seq;
    note_losses(lane, info);
    link_page(lane, page);
  }
  const PageInfo& info = page_info(lane.open);
  *seq = info.first_seq + info.records.load(std::memory_order_relaxed);
  append(stream, lane.open, record, stack_bytes, version_1);
  return true;
}

void free_armed_page(PageRef page) {
  pool_give(page);
  armed_pages.total.fetch_sub(1, std::memory_order_relaxed);
}

// A page for the armed chain: a free one while armed pages stay under their share, else the
// thread's own oldest.
PageRef take_armed_page(Stream& stream) {
  const uint64_t share = pool_bytes() / kPageBytes / kArmedDivisor;
  PageRef page = 0;
  uint32_t reasons = 0;
  if (armed_pages.total.load(std::memory_order_relaxed) < share && detail_may_grow()) {
    page = pool_take(&reasons);
    if (page != 0) armed_pages.total.fetch_add(1, std::memory_order_relaxed);
  }
  if (page != 0 || stream.armed_first == stream.armed_open) return page;
  const PageRef oldest = stream.armed_first;
  stream.armed_first = page_info(oldest).next.load(std::memory_order_relaxed);
  pool_give(oldest);
  page = pool_take(&reasons);
  if (page == 0) armed_pages.total.fetch_sub(1, std::memory_order_relaxed);
  return page;
}

void write_armed(Stream& stream, const DetailRecord& record, uint32_t stack_bytes, bool version_1) {
  if (!has_room(stream.armed_open, static_cast<uint32_t>(atf::kMaxDetailBytes))) {
    const PageRef page = take_armed_page(stream);
    if (page == 0) return;  // nothing was promised: pre-roll is what the ring still holds
    if (stream.armed_open == 0) {
      stream.armed_first = page;
    } else {
      page_info(stream.armed_open).next.store(page, std::memory_order_relaxed);
    }
    stream.armed_open = page;
  }
  append(stream, stream.armed_open, record, stack_bytes, version_1);
}

// Where records at or after `cut_ns` begin; counts what is before.
uint32_t cut_page(PageRef page, uint64_t cut_ns, uint32_t* skipped) {
  const uint8_t* bytes = page_bytes(page);
  const uint32_t committed = page_info(page).committed.load(std::memory_order_relaxed);
  uint32_t at = 0;
  *skipped = 0;
  while (at < committed &&
         load_le<uint64_t>(bytes + at + offsetof(atf::DetailHeaderV2, timestamp_ns)) < cut_ns) {
    at += load_le<uint32_t>(bytes + at);
    ++*skipped;
  }
  return at;
}

}  // namespace

bool detail_init() {
  if (!share(armed_pages)) return false;
  armed_pages.total.store(0, std::memory_order_relaxed);
  return true;
}

bool detail_may_grow() {
  return pool_bytes() - pool_used_bytes() > pool_bytes() / kDetailReserveDivisor;
}

bool write_detail(Stream& stream, const DetailRecord& record, uint64_t state, uint64_t* seq,
                  uint32_t* reasons) {
  const uint32_t stack_bytes = readable_stack(record.frame.stack_pointer);
  const bool version_1 = (state & kStateVersion1) != 0;
  if ((state & kStateDetailOn) != 0) {
    return write_on(stream, record, stack_bytes, version_1, seq, reasons);
  }
  write_armed(stream, record, stack_bytes, version_1);
  return true;
}

PreRoll ship_armed(Stream& stream, uint64_t cut_ns) {
  LaneState& lane = stream.lane(Lane::kDetail);
  PreRoll result;
  keep_open_page(stream, Lane::kDetail);
  if (lane.open != 0) {
    const PageInfo& old = page_info(lane.open);
    lane.next_seq = old.first_seq + records_of(old, Lane::kDetail);
  }
  PageRef page = stream.armed_first;
  stream.armed_first = stream.armed_open = 0;
  while (page != 0) {
    PageInfo& info = page_info(page);
    const PageRef next = info.next.load(std::memory_order_relaxed);
    uint32_t skipped = 0;
    const uint32_t begin = cut_page(page, cut_ns, &skipped);
    const uint32_t kept = info.records.load(std::memory_order_relaxed) - skipped;
    if (kept == 0) {
      free_armed_page(page);
    } else {
      armed_pages.total.fetch_sub(1, std::memory_order_relaxed);
      if (result.records == 0) {
        result.from_ns = load_le<uint64_t>(page_bytes(page) + begin +
                                           offsetof(atf::DetailHeaderV2, timestamp_ns));
      }
      info.next.store(0, std::memory_order_relaxed);
      info.begin = begin;
      info.sent = begin;
      info.records.store(kept, std::memory_order_relaxed);
      info.flags = kPagePreRoll;
      info.first_seq = lane.next_seq;
      note_losses(lane, info);
      lane.next_seq += kept;
      result.records += kept;
      link_page(lane, page);
    }
    page = next;
  }
  return result;
}

void drop_armed(Stream& stream) {
  PageRef page = stream.armed_first;
  stream.armed_first = stream.armed_open = 0;
  while (page != 0) {
    const PageRef next = page_info(page).next.load(std::memory_order_relaxed);
    free_armed_page(page);
    page = next;
  }
}

}  // namespace collect::agent

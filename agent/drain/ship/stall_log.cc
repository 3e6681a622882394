#include "agent/drain/ship/stall_log.h"

namespace collect::agent {
namespace {

// What one frame can take, so that it is only begun when it fits.
constexpr size_t kStallsBytes = collect_wire_Stalls_size + sizeof(wire::FrameHeader);
static_assert(sizeof(collect_wire_Stalls{}.stalls) / sizeof(collect_wire_Stall) ==
              wire::kMaxStallsPerFrame);

collect_wire_Stall stall_of(uint32_t stream_id, collect_wire_Stall_Kind kind, uint64_t first_ns,
                            uint64_t last_ns) {
  collect_wire_Stall stall = collect_wire_Stall_init_zero;
  stall.stream_id = stream_id;
  stall.kind = kind;
  stall.first_ns = first_ns;
  stall.last_ns = last_ns;
  return stall;
}

}  // namespace

void StallLog::begin_link(StreamTable& streams) {
  uint64_t kept = end_;
  for (uint64_t number = end_; number > first_; --number) {
    const collect_wire_Stall& stall = at(number - 1);
    if (stall.stream_id == 0 || streams.find(stall.stream_id) != nullptr) at(--kept) = stall;
  }
  first_ = sent_ = kept;
}

void StallLog::gather(const StreamSlot& slot) {
  constexpr uint32_t kMany = kStallsHeld / 32;  // the longest idle wait is some 20 short ones
  ThreadStall taken;
  uint32_t waits = 0;
  while (has_room_for_threads() && take_stall(*slot.stream, taken)) {
    if (taken.is_for_lock && ++waits == kMany) must_gather_soon_ = true;
    (void)add_of_thread(
        slot.stream_id,
        taken.is_for_lock ? collect_wire_Stall_Kind_LOCK : collect_wire_Stall_Kind_PAGE_WAIT,
        taken);
  }
}

bool StallLog::add_of_thread(uint32_t stream_id, collect_wire_Stall_Kind kind,
                             const ThreadStall& times) {
  if (!has_room_for_threads()) return false;
  collect_wire_Stall& stall = at(end_++);
  stall = stall_of(stream_id, kind, times.first_ns, times.last_ns);
  stall.place = times.place;
  stall.owner = times.owner;
  if (times.count != 1) {
    stall.count = times.count;
    stall.stalled_ns = times.stalled_ns;
  }
  return true;
}

void StallLog::gather(StreamTable& streams) {
  must_gather_soon_ = false;
  for (uint32_t i = 0; i < streams.size(); ++i) {
    if (streams.at(i).stream != nullptr) gather(streams.at(i));
  }
}

void StallLog::add(collect_wire_Stall_Kind kind, uint64_t first_ns, uint64_t last_ns) {
  if (size() < kMaxUnackedStalls) {
    at(end_++) = stall_of(0, kind, first_ns, last_ns);
    return;
  }
  for (uint64_t number = end_; number > first_; --number) {
    collect_wire_Stall& stall = at(number - 1);
    if (stall.stream_id != 0) continue;
    if (stall.count == 0) {
      stall.count = 1;
      stall.stalled_ns = stall.last_ns - stall.first_ns;
    }
    ++stall.count;
    stall.stalled_ns += last_ns - first_ns;
    stall.last_ns = last_ns;
    return;
  }
}

bool StallLog::send(SendBuffer& out) {
  while (sent_ != end_) {
    if (out.room() < kStallsBytes) return false;
    frame_.first_number = sent_;
    frame_.stalls_count = 0;
    uint64_t number = sent_;
    for (; number != end_ && frame_.stalls_count < wire::kMaxStallsPerFrame; ++number) {
      frame_.stalls[frame_.stalls_count++] = at(number);
    }
    if (!out.push(wire::FrameType::kStalls, collect_wire_Stalls_fields, &frame_)) return false;
    sent_ = number;
  }
  return true;
}

void StallLog::acknowledge(uint64_t next) {
  if (next > sent_) next = sent_;
  if (next > first_) first_ = next;
}

}  // namespace collect::agent

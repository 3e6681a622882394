#include "daemon/ingest/session/event_watch.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "formats/core/bytes.h"
#include "formats/core/result.h"

namespace collect::ingest {

EventWatch::EventWatch(atf::Version version, std::vector<WatchedEvent> wanted, OnSeen on_seen)
    : version_(version), wanted_(std::move(wanted)), on_seen_(std::move(on_seen)) {
  COLLECT_CHECK(wanted_.size() <= kMaxWatchedEvents);
  for (size_t number = 0; number < wanted_.size(); ++number) {
    for (const uint64_t id : wanted_[number].functions) {
      functions_[id] |= uint64_t{1} << number;
      maybe_.set(bit_of(id));
    }
  }
}

uint64_t EventWatch::watched(uint64_t function_id) const {
  if (!maybe_.test(bit_of(function_id))) return 0;
  const auto found = functions_.find(function_id);
  return found == functions_.end() ? 0 : found->second;
}

void EventWatch::see(const SeenEvent& seen) {
  const uint64_t bit = uint64_t{1} << seen.number;
  if ((seen_ & bit) != 0) return;
  seen_ |= bit;
  on_seen_(seen);
}

void EventWatch::look_at(const Page& page) {
  Stream& stream = streams_[page.stream_id];
  const uint64_t end_seq = page.first_seq + page.record_count;
  if (end_seq <= stream.next_seq) return;
  // Something is missing: no one knows which calls are open.
  if (page.first_seq > stream.next_seq || page.lost_reasons != 0) stream.open.clear();
  const uint64_t known = stream.next_seq - std::min(stream.next_seq, page.first_seq);
  stream.next_seq = end_seq;
  seen_ = 0;
  uint64_t at_ns = page.last_ns;
  for (uint64_t i = known; i < page.record_count; ++i) {
    const uint8_t* const event = page.bytes.data() + i * atf::kEventBytes;
    at_ns = load_le<uint64_t>(event);
    const uint64_t function_id =
        load_le<uint64_t>(event + offsetof(atf::IndexEventV2, function_id));
    const auto kind =
        version_ == atf::Version::kV1
            ? static_cast<atf::EventKind>(
                  load_le<uint32_t>(event + offsetof(atf::IndexEventV1, event_kind)))
            : static_cast<atf::EventKind>(event[offsetof(atf::IndexEventV2, event_kind)]);
    if (watched(function_id) == 0) continue;
    if (kind == atf::EventKind::kCall) {
      call(stream, function_id, at_ns);
    } else {
      end(stream, function_id, at_ns, kind == atf::EventKind::kException);
    }
  }
  // A call that hangs is not waited for.
  for (OpenCall& open : stream.open) look_at_open(open, at_ns);
}

void EventWatch::look_at(std::span<const storage::StreamStall> stalls) {
  seen_ = 0;
  for (const auto& [stream_id, stall] : stalls) {
    // Of several that were joined no one knows how long each was.
    if (stall.kind != storage::StallKind::kBlocked || stall.count != 1) continue;
    uint64_t& known_until_ns = streams_[stream_id].blocked_until_ns;
    if (stall.last_ns <= known_until_ns) continue;
    known_until_ns = stall.last_ns;
    for (size_t number = 0; number < wanted_.size(); ++number) {
      if (wanted_[number].kind == WatchedEvent::Kind::kBlocked &&
          stall.stalled_ns > wanted_[number].longer_than_ns) {
        see({number, 0, stall.last_ns, stall.stalled_ns});
      }
    }
  }
}

void EventWatch::call(Stream& stream, uint64_t function_id, uint64_t at_ns) {
  bool is_measured = false;
  const uint64_t mask = watched(function_id);
  for (size_t number = 0; number < wanted_.size(); ++number) {
    if ((mask >> number & 1) == 0) continue;
    const WatchedEvent::Kind kind = wanted_[number].kind;
    if (kind == WatchedEvent::Kind::kCall) see({number, function_id, at_ns, 0});
    is_measured |= kind == WatchedEvent::Kind::kLongCall;
  }
  if (is_measured && stream.open.size() < kMaxOpenCalls) {
    stream.open.push_back({function_id, at_ns, 0});
  }
}

void EventWatch::end(Stream& stream, uint64_t function_id, uint64_t at_ns, bool is_exception) {
  if (is_exception) {
    const uint64_t mask = watched(function_id);
    for (size_t number = 0; number < wanted_.size(); ++number) {
      const bool is_meant =
          (mask >> number & 1) != 0 && wanted_[number].kind == WatchedEvent::Kind::kException;
      if (is_meant) see({number, function_id, at_ns, 0});
    }
  }
  // What was called inside it and has no end of its own ended with it.
  const auto is_it = [function_id](const OpenCall& open) {
    return open.function_id == function_id;
  };
  const auto found = std::find_if(stream.open.rbegin(), stream.open.rend(), is_it);
  if (found == stream.open.rend()) return;
  look_at_open(*found, at_ns);
  stream.open.erase(found.base() - 1, stream.open.end());
}

void EventWatch::look_at_open(OpenCall& call, uint64_t now_ns) {
  const uint64_t mask = watched(call.function_id) & ~call.reported;
  if (mask == 0) return;
  const uint64_t took_ns = now_ns - std::min(now_ns, call.begin_ns);
  for (size_t number = 0; number < wanted_.size(); ++number) {
    const WatchedEvent& wanted = wanted_[number];
    if ((mask >> number & 1) == 0 || wanted.kind != WatchedEvent::Kind::kLongCall) continue;
    if (took_ns <= wanted.longer_than_ns) continue;
    call.reported |= uint64_t{1} << number;
    see({number, call.function_id, now_ns, took_ns});
  }
}

}  // namespace collect::ingest

// Looks for single events among those that arrive: calls of some functions, calls of them that take
// long, exceptions that end them, threads that are blocked for long. For the triggers of the
// control plane (trigger_control.h). Counters do not come with the events: counter_watch.h looks
// for those.
//
// One session's; its writer's thread.
#pragma once

#include <bitset>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "formats/atf/layout.h"
#include "formats/core/keyed_hash.h"
#include "storage/model/session_types.h"

namespace collect::ingest {

// For one session: bits of a mask. Two for each trigger: what starts it, and what ends its detail.
inline constexpr size_t kMaxWatchedEvents = 64;
// Calls of watched functions that are open in one thread; deeper ones are not measured.
inline constexpr size_t kMaxOpenCalls = 4096;

struct WatchedEvent {
  enum class Kind : uint8_t { kCall, kLongCall, kException, kCounter, kBlocked };
  Kind kind = Kind::kCall;
  uint64_t longer_than_ns = 0;        // of kLongCall, kBlocked
  std::vector<uint64_t> functions{};  // ids; none of kCounter, kBlocked
  std::string counter{};              // of kCounter: its name,
  int64_t above = 0;                  // and what its value passes
};

struct SeenEvent {
  size_t number = 0;  // of the watched events, from 0
  uint64_t function_id = 0;
  uint64_t at_ns =
      0;  // device clock: of the event; of kLongCall, when the call was known to be long
  uint64_t took_ns = 0;  // of kLongCall, so far; of kBlocked
  int64_t value = 0;     // of kCounter
};

// Called on the writer's thread, at most once for each watched event and page; of counters on the
// peer's io thread.
using OnSeen = std::function<void(const SeenEvent&)>;

class EventWatch {
 public:
  // At most kMaxWatchedEvents.
  EventWatch(atf::Version version, std::vector<WatchedEvent> wanted, OnSeen on_seen);

  // A page of an index lane, in the order of the stream; what came before is skipped.
  void look_at(const Page& page);
  // Times of threads, as they arrive.
  void look_at(std::span<const storage::StreamStall> stalls);

 private:
  struct OpenCall {
    uint64_t function_id;
    uint64_t begin_ns;
    uint64_t reported;  // watched events that this call has caused
  };
  struct Stream {
    uint64_t next_seq = 0;
    uint64_t blocked_until_ns = 0;  // what ends no later came before
    std::vector<OpenCall> open;
  };

  void call(Stream& stream, uint64_t function_id, uint64_t at_ns);
  void end(Stream& stream, uint64_t function_id, uint64_t at_ns, bool is_exception);
  void look_at_open(OpenCall& call, uint64_t now_ns);
  void see(const SeenEvent& seen);
  // Few functions are watched: most events are passed by without a look into the table.
  static size_t bit_of(uint64_t function_id) {
    return static_cast<size_t>((function_id * 0x9E3779B97F4A7C15ull) >> 52);
  }
  uint64_t watched(uint64_t function_id) const;

  const atf::Version version_;
  const std::vector<WatchedEvent> wanted_;
  const OnSeen on_seen_;
  std::bitset<4096> maybe_;
  std::unordered_map<uint64_t, uint64_t, KeyedHash> functions_;  // which watched events
  std::unordered_map<uint32_t, Stream, KeyedHash> streams_;
  uint64_t seen_ = 0;  // in this page
};

}  // namespace collect::ingest

// What a tokio service says of its workers, as calls on one thread per worker: a poll is a call of
// the task's spawn location, a park a call of "park". Everything else that such a service records
// (wakes, samples, spans, queue lengths) has no place in an ATF session and is counted.
//
// Events of one worker come in order from current recorders, but sub-streams of several overlap and
// nothing promises more, so a window of events is kept and given on in the order of time.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "formats/dial9/read/decoder.h"
#include "storage/convert/convert_log.h"
#include "storage/convert/event_tally.h"
#include "storage/convert/session_builder.h"

namespace collect::convert {

inline constexpr size_t kSortWindowEvents = size_t{1} << 18;  // 32 bytes each
inline constexpr size_t kMaxWorkers = 4096;                   // events of more are counted
// Distinct functions; polls of still other tasks are calls of "other tasks".
inline constexpr size_t kMaxWorkerFunctions = size_t{1} << 16;
inline constexpr size_t kMaxWorkerFunctionBytes = 4096;  // of one name; the rest is cut

// What an event of a type is to us, and where its fields are. Made once per schema.
struct WorkerEventType {
  enum class Kind : uint8_t { kOther, kPollStart, kPollEnd, kPark, kUnpark };

  explicit WorkerEventType(const dial9::KnownSchema& schema);

  Kind kind = Kind::kOther;
  size_t worker = 0;
  std::optional<size_t> task, spawn_location, tid;
};

class Dial9Workers {
 public:
  Dial9Workers(SessionBuilder& session, ConvertLog& log) : session_(session), log_(log) {}

  // First every event is seen, so that a thread is known by its tid before its first call.
  void see(const WorkerEventType& type, const dial9::Event& event);
  // Then every event again, after session.begin().
  Status add(const WorkerEventType& type, const dial9::Event& event);
  // The rest of the window, and what was left out.
  Status finish();

  // Smallest time seen.
  std::optional<uint64_t> first_ns() const { return first_ns_; }

 private:
  using Kind = WorkerEventType::Kind;
  struct Pending {
    uint64_t ns;
    uint64_t order;  // in the file: equal times keep it
    uint64_t function_id;
    uint32_t worker;  // position in workers_
    Kind kind;
  };
  struct Worker {
    uint64_t id = 0;
    uint32_t tid = 0;
    std::optional<uint32_t> thread;  // position in the session
    uint64_t function_id = 0;        // of what is open
    Kind open = Kind::kOther;
  };

  static bool later(const Pending& a, const Pending& b) {
    return a.ns != b.ns ? a.ns > b.ns : a.order > b.order;
  }
  std::optional<uint32_t> worker_of(uint64_t id);
  uint64_t function_of(const WorkerEventType& type, const dial9::Event& event);
  Status give_on();
  Status start(Worker& worker, const Pending& event);
  Status end(Worker& worker, const Pending& event);

  SessionBuilder& session_;
  ConvertLog& log_;
  std::vector<Worker> workers_;
  std::unordered_map<uint64_t, uint32_t> positions_;  // worker id -> position in workers_
  std::optional<uint64_t> first_ns_;
  std::vector<Pending> window_;  // a heap, the oldest event in front
  uint64_t order_ = 0;
  size_t functions_ = 0;
  std::unordered_map<std::string, uint64_t> function_ids_;
  EventTally left_out_;
  EventTally too_many_workers_;
};

}  // namespace collect::convert

#include "formats/perfetto/clock_times.h"

#include <array>

#include "formats/core/encoding/protobuf.h"
#include "formats/perfetto/reader.h"

namespace collect::perfetto {
namespace {

constexpr uint32_t kFirstAfterSequences = 128;  // clocks 64 to 127 are of a sequence
constexpr size_t kMaxSnapshotClocks = 64;

struct Snapshot {
  uint32_t clock = 0;
  uint64_t timestamp = 0;
  uint64_t unit_ns = 1;
  bool is_incremental = false;
};

bool parse_clock(Bytes message, Snapshot& snapshot) {
  ProtoFields fields(message);
  while (fields.next()) {
    switch (fields.field()) {
      case Clock::kClockId:
        snapshot.clock = static_cast<uint32_t>(fields.value());
        break;
      case Clock::kTimestamp:
        snapshot.timestamp = fields.value();
        break;
      case Clock::kIsIncremental:
        snapshot.is_incremental = fields.value() != 0;
        break;
      case Clock::kUnitMultiplierNs:
        if (fields.value() != 0) snapshot.unit_ns = fields.value();
        break;
      default:
        break;
    }
  }
  return fields.ok();
}

}  // namespace

ClockTimes::Key ClockTimes::key_of(uint32_t sequence, uint32_t clock) {
  const bool is_of_sequence = clock >= kClockOfSequence && clock < kFirstAfterSequences;
  return {is_of_sequence ? sequence : 0, clock};
}

// Sums and products wrap: what is no time then is far out of range.
bool ClockTimes::take_snapshot(uint32_t sequence, Bytes message) {
  std::array<Snapshot, kMaxSnapshotClocks> list;
  size_t count = 0;
  ProtoFields fields(message);
  while (fields.next()) {
    if (fields.field() == ClockSnapshot::kPrimaryTraceClock && clocks_.empty()) {
      primary_ = static_cast<uint32_t>(fields.value());
    }
    if (fields.field() != ClockSnapshot::kClocks || count == list.size()) continue;
    if (!parse_clock(fields.bytes(), list[count++])) return false;
  }
  std::optional<uint64_t> trace_ns;
  for (size_t i = 0; i < count && !trace_ns; ++i) {
    if (list[i].clock == primary_) trace_ns = list[i].timestamp * list[i].unit_ns;
  }
  for (size_t i = 0; i < count && !trace_ns; ++i) {
    const auto known = clocks_.find(key_of(sequence, list[i].clock));
    if (known == clocks_.end() || known->second.is_incremental) continue;
    trace_ns =
        list[i].timestamp * list[i].unit_ns - known->second.clock_ns + known->second.trace_ns;
  }
  if (!fields.ok() || !trace_ns) return false;
  for (size_t i = 0; i < count; ++i) {
    const Key key = key_of(sequence, list[i].clock);
    if (clocks_.size() >= kMaxClocks && !clocks_.contains(key)) continue;
    const uint64_t clock_ns = list[i].timestamp * list[i].unit_ns;
    clocks_[key] = {clock_ns, *trace_ns, clock_ns, list[i].unit_ns, list[i].is_incremental};
  }
  return true;
}

std::optional<int64_t> ClockTimes::time_of(uint32_t sequence, uint32_t clock, uint64_t timestamp) {
  if (clock == primary_) return static_cast<int64_t>(timestamp);
  const auto found = clocks_.find(key_of(sequence, clock));
  if (found == clocks_.end()) {
    if (clock >= kClockOfSequence || !clocks_.empty()) return std::nullopt;
    has_guessed_ = true;
    return static_cast<int64_t>(timestamp);
  }
  Known& known = found->second;
  uint64_t clock_ns = timestamp * known.unit_ns;
  if (known.is_incremental) clock_ns = known.last_ns += clock_ns;
  return static_cast<int64_t>(clock_ns - known.clock_ns + known.trace_ns);
}

}  // namespace collect::perfetto

// The manifest of a session that is being written: what it says beside the counts of the files, and
// when it must be on the disk. What is added here also goes into the open container.
//
// Owned by its Session, used on the storage thread. Session says what the functions promise.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>

#include "formats/core/keyed_hash.h"
#include "formats/core/result.h"
#include "storage/container/rtc_roller.h"
#include "storage/fs/clock.h"
#include "storage/manifest/manifest.h"
#include "storage/model/session_types.h"

namespace collect::storage {

class SessionBudget;

// The manifest in memory is on the disk after this time at the latest; longer when writing it takes
// more than a twentieth of the time.
inline constexpr uint64_t kManifestIntervalNs = 1'000'000'000;

inline constexpr uint64_t kManifestBytesPerSecond = 4u << 20;
inline constexpr uint64_t kManifestBurstBytes = 16u << 20;
// Names and directory blocks that are written with every manifest, however short it is.
inline constexpr uint64_t kManifestFixedBytes = 4096;
inline constexpr uint64_t kDataBytesPerManifestByte = 4;

// How often a session's manifest may be written again. A manifest is written whole, so what a peer
// sends to change it may be a thousand times smaller than what is written for it.
//
// The rule: manifests take kManifestBytesPerSecond, and a quarter of what the records take, beyond
// a burst of kManifestBurstBytes. A session in debt waits until it is paid.
class ManifestPace {
 public:
  // How long the next manifest waits; 0: not at all.
  uint64_t wait_ns(uint64_t now_ns) const {
    const int64_t credit = credit_at(now_ns);
    if (credit > 0) return 0;
    return (static_cast<uint64_t>(-credit) + 1) * kNsPerSecond / kManifestBytesPerSecond;
  }
  void written(uint64_t bytes, uint64_t now_ns) {
    credit_ = credit_at(now_ns) - static_cast<int64_t>(bytes + kManifestFixedBytes);
    at_ns_ = now_ns;
  }
  void data(uint64_t bytes) {
    credit_ = std::min(credit_ + static_cast<int64_t>(bytes / kDataBytesPerManifestByte), kBurst);
  }

 private:
  static constexpr uint64_t kNsPerSecond = 1'000'000'000;
  static constexpr auto kBurst = static_cast<int64_t>(kManifestBurstBytes);

  int64_t credit_at(uint64_t now_ns) const {
    const uint64_t passed_ns = now_ns > at_ns_ ? now_ns - at_ns_ : 0;
    // Beyond this the burst is full again, for any debt: a manifest has 256 MiB at most.
    if (passed_ns > 128 * kNsPerSecond) return kBurst;
    const uint64_t earned = passed_ns * (kManifestBytesPerSecond >> 10) / (kNsPerSecond >> 10);
    return std::min(credit_ + static_cast<int64_t>(earned), kBurst);
  }

  int64_t credit_ = kBurst;  // bytes, at at_ns_
  uint64_t at_ns_ = 0;
};

class LiveManifest {
 public:
  LiveManifest(RtcRoller& roller, Clock& clock) : roller_(roller), clock_(clock) {}

  Manifest manifest;  // a change is followed by change(); its modules are changed here alone
  // One that was found on the disk.
  void adopt(Manifest found);

  // ---- when it must be on the disk
  void change() { changed_ = true; }
  void change_before_ack() { changed_ = before_ack_ = true; }
  void change_before_page() { before_page_ = true; }
  bool is_due_before_page() const { return before_page_; }
  bool must_write() const;
  // As Session::manifest_wait_ns().
  uint64_t wait_ns(const SessionBudget* budget) const;
  void count_data(uint64_t bytes) { pace_.data(bytes); }
  void written(uint64_t bytes, uint64_t begun_ns);

  // ---- what it says
  Status add_modules(std::span<const ModuleInfo> modules, const std::string& session);
  Status detail_state(const DetailStateChange& change);
  Status function_filter(FunctionFilter filter);
  Status clock_sync(const ClockSync& sync);
  Status note(const std::string& what);
  void input_missing(MissingInput missing);
  void set_lost_without_stream(uint64_t count);
  void set_switches_lost(uint64_t count);
  void set_process_end(const ProcessEnd& end);
  Status marker(const Marker& marker);

  // ---- while the session is sealed
  // The window that is open, if there is one.
  void end_detail_window(uint64_t last_ns);
  // The session ends as failed, and says why once.
  void fail(const Status& status);

 private:
  RtcRoller& roller_;
  Clock& clock_;
  std::unordered_map<uint32_t, size_t, KeyedHash> by_module_;
  bool before_page_ = false;  // it must be written before the next page,
  bool before_ack_ = false;   // before the next ack,
  bool changed_ = false;      // or some time
  ManifestPace pace_;
  uint64_t written_ns_ = 0;
  uint64_t cost_ns_ = 0;
};

}  // namespace collect::storage

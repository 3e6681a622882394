// The manifest of a session that is being written: what it says beside the counts of the files, and
// when it must be on the disk. What is added here also goes into the open container.
//
// Owned by its Session, used on the storage thread. SessionWriter says what the functions promise.
#pragma once

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
#include "storage/session/manifest_pace.h"

namespace collect::storage {

class SessionBudget;

// The manifest in memory is on the disk after this time at the latest; longer when writing it takes
// more than a twentieth of the time.
inline constexpr uint64_t kManifestIntervalNs = 1'000'000'000;

class LiveManifest {
 public:
  LiveManifest(RtcRoller& roller, Clock& clock) : roller_(roller), clock_(clock) {}

  Manifest manifest;  // whoever changes it says so; its modules are changed here alone
  // One that was found on the disk.
  void adopt(Manifest found);

  // ---- when it must be on the disk
  void change() { changed_ = true; }
  void change_before_ack() { changed_ = before_ack_ = true; }
  void change_before_page() { before_page_ = true; }
  bool is_due_before_page() const { return before_page_; }
  bool must_write() const;
  // As SessionWriter::manifest_wait_ns().
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

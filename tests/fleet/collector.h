// A collector of the simulation: the daemon's ingest with all that it stores, and its uploader, on
// a disk in memory. Ingest runs on the simulation's thread; the uploader has a thread of its own,
// which works only while the simulation waits for it. The process may be killed and started again;
// its disk stays.
//
// One thread: that of the simulation.
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "daemon/ingest/ingest.h"
#include "daemon/upload/uploader.h"
#include "tests/fleet/memory_disk.h"
#include "tests/fleet/simulated_time.h"

namespace collect::fleet {

// Pauses of an uploader that end when the simulation lets them.
class HeldPauses final : public upload::Pauses {
 public:
  HeldPauses();
  ~HeldPauses() override;

  bool pause(uint64_t ns) override;  // the uploader's thread
  bool is_waiting() const { return waiting_; }
  uint64_t due_ns() const { return due_ns_; }  // while it waits
  void let_go();
  void end();  // for good: what waits is to end
  // Until a pause begins, or some real time has passed.
  void wait_for_pause();

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  const int began_;  // an eventfd: condition variables would ask the simulated clock how long
  std::atomic<bool> waiting_{false};
  std::atomic<uint64_t> due_ns_{0};
  bool let_go_ = false;  // guarded by mutex_
  bool ended_ = false;   // guarded by mutex_
};

struct CollectorSettings {
  std::string address;
  uint64_t seed = 1;
  std::chrono::milliseconds heartbeat{2'000};
  uint64_t disk_bytes = uint64_t{1} << 40;
  uint64_t descriptors = 1u << 20;  // as deploy/systemd/collectord.service has it
  upload::S3Settings store{};
};

// The most that was in use at once, of what one user may have (DAEMON.md "Budgets").
struct BudgetPeak {
  uint64_t used = 0;
  uint64_t allowed = 0;
};

struct CollectorCounters {
  uint64_t cpu_ns = 0;  // real, of ingest
  uint64_t starts = 0;
  uint64_t sessions = 0;         // sealed
  uint64_t failed_sessions = 0;  // of these, FAILED
  uint64_t peak_open_files = 0;
  uint64_t peak_disk_bytes = 0;
  uint64_t refused = 0;
  std::array<BudgetPeak, principal::kResources> budgets{};

  void add(const CollectorCounters& other);  // sums, and the higher peaks
};

class Collector final : private ingest::IngestObserver {
 public:
  explicit Collector(CollectorSettings settings);
  ~Collector() override;

  void start();  // the process, on what the disk has
  void kill();   // as kill -9
  bool is_up() const { return ingest_ != nullptr; }
  // Its machine's time of day.
  void set_wall_error(int64_t ns) { clock_.set_wall_error(ns); }

  // All that ingest can do now. False: nothing.
  bool step();
  // What was sealed is handed to the uploader, and pauses that are over end.
  void let_uploads_go();
  // The uploader waits for something that only time or a new session brings.
  bool uploads_are_quiet() const;
  void wait_for_uploads();    // until they are
  bool has_sessions() const;  // that are not sealed
  bool is_idle() const;       // every session is sealed and uploaded
  void sample();              // for the peaks

  MemoryDisk& disk() { return *disk_; }
  // An empty one in place of one that died. The process is not up.
  std::unique_ptr<MemoryDisk> replace_disk();
  const CollectorCounters& counters() const { return counters_; }
  upload::UploadStatus uploads() const;  // of this start
  // As the part's name says it: id and epoch.
  std::string name() const;

  static constexpr char kRoot[] = "/traces";

 private:
  void agent_changed(const ingest::AgentSnapshot&) override {}
  void agent_removed(ingest::AgentId) override {}
  void session_changed(const ingest::SessionSnapshot& session) override;

  const CollectorSettings settings_;
  MachineClock clock_;
  upload::StaticCredentials credentials_{{"access", "secret"}};
  std::unique_ptr<MemoryDisk> disk_;
  std::set<std::string> ever_sealed_;  // on that disk
  CollectorCounters counters_;

  // Of the process.
  std::unique_ptr<MemoryFs> fs_;
  storage::CollectorIdentity identity_;
  std::unique_ptr<ingest::Ingest> ingest_;
  std::unique_ptr<HeldPauses> pauses_;
  std::unique_ptr<upload::Uploader> uploader_;
  std::vector<std::string> sealed_;  // or found at the start; not handed to the uploader yet
};

}  // namespace collect::fleet

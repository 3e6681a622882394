// The promise, held against what is left when the simulation ends: each record that an agent
// numbered is in one place after merging, or counted as lost or pending, with collector and range.
//
// What an agent recorded is known by the agent alone; where it is is read from the COMMIT objects
// of the store and from the manifests of the disks, with the daemon's code. Of some recordings the
// parts are fetched and merged as `collectctl merge` does it, and each record is compared.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "daemon/upload/commit.h"
#include "tests/fleet/agent.h"
#include "tests/fleet/memory_disk.h"
#include "tests/fleet/store_server.h"

namespace collect::fleet {

struct AuditResult {
  uint64_t runs = 0;
  uint64_t whole_runs = 0;  // a collector has acknowledged their end
  uint64_t parts = 0;
  uint64_t moved_runs = 0;  // with more than one part
  // Records.
  uint64_t numbered = 0;
  uint64_t in_store = 0;       // after merging, each once
  uint64_t on_disks = 0;       // of others: on a disk that works, upload pending
  uint64_t on_dead_disks = 0;  // of others: on a disk that died; lost, or pending until it is read
  uint64_t in_rings = 0;       // of others: held by agents that run
  uint64_t given_up = 0;       // of others: the program ended with no collector to give them to
  uint64_t repeated = 0;       // that more than one part has
  uint64_t dropped = 0;        // at hook time, without a number
  // Of the merged ones.
  uint64_t merged_runs = 0;
  uint64_t merged_records = 0;
  uint64_t clocks_compared = 0;
  uint64_t worst_clock_error_ns = 0;
  uint64_t clocks_off = 0;  // by more than the manifest says
  uint64_t worst_clock_excess_ns = 0;
  std::vector<std::string> violations{};  // the first of them
  uint64_t violation_count = 0;
  // "collector ID-EPOCH: N records of M recordings, first: device-7 …": of dead disks.
  std::vector<std::string> lost_ranges{};
};

class Audit {
 public:
  explicit Audit(const StoreServer& store) : store_(store) {}

  void add_disk(MemoryDisk& disk, bool is_dead) { disks_.push_back({&disk, is_dead}); }
  // `merge_every`: of how many recordings one is merged; 0: none.
  AuditResult judge(const std::vector<Run>& runs, uint64_t merge_every);

 private:
  enum class Where : uint8_t { kStore, kDisk, kDeadDisk };
  struct Part {
    Where where{};
    upload::Commit commit;
    std::string prefix;          // in the store
    MemoryDisk* disk = nullptr;  // elsewhere
    std::string directory;
    bool is_sealed = true;
  };
  struct Disk {
    MemoryDisk* disk;
    bool is_dead;
  };
  using PartsOfRun = std::map<std::string, std::vector<Part>>;  // by process id

  void find_in_store();
  void find_on(const Disk& disk);
  void judge_run(const Run& run, const std::vector<Part>& parts);
  void judge_stream(const Run& run, uint32_t stream, const std::vector<Part>& parts);
  void merge(const Run& run, const std::vector<Part>& parts);
  void compare_records(const Run& run, MemoryFs& fs, const storage::Manifest& manifest,
                       const std::string& directory);
  void compare_clocks(const Run& run, const storage::Manifest& manifest);
  void violated(const std::string& what);

  const StoreServer& store_;
  std::vector<Disk> disks_;
  PartsOfRun parts_;
  struct Lost {
    uint64_t records = 0;
    uint64_t ranges = 0;
    std::string first;
  };
  std::map<std::string, Lost> lost_;  // by collector
  AuditResult result_;
};

}  // namespace collect::fleet

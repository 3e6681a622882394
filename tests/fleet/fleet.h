// A part of the fleet that has no business with the rest: some collectors, the agents that know
// these and no others, a store. One process has one, because of descriptors: each link takes two of
// its own machine here, and two more of the collector's.
//
// What happens is decided by the settings and the seed alone.
#pragma once

#include <cstdint>
#include <memory>
#include <queue>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "tests/fleet/agent.h"
#include "tests/fleet/audit.h"
#include "tests/fleet/collector.h"
#include "tests/fleet/store_server.h"

namespace collect::fleet {

enum class Scenario : uint8_t { kSteady, kStoreAway, kDiskDies, kClocksWrong, kCollectorChurn };
inline constexpr std::pair<Scenario, const char*> kScenarios[] = {
    {Scenario::kSteady, "steady"},
    {Scenario::kStoreAway, "store-away"},
    {Scenario::kDiskDies, "disk-dies"},
    {Scenario::kClocksWrong, "clocks-wrong"},
    {Scenario::kCollectorChurn, "collector-churn"},
};

struct FleetSettings {
  Scenario scenario = Scenario::kSteady;
  uint32_t collectors = 100;
  uint32_t agents = 10'000;
  uint64_t seed = 1;
  uint32_t threads = 2;
  uint32_t events_per_s = 10;
  uint64_t ring_events = 100'000;
  uint64_t horizon_s = 60;  // agents begin runs in this time
  uint32_t runs = 1;        // of each agent, spread over it
  uint64_t run_s = 50;
  uint64_t tick_ms = 1'000;  // of an agent that runs
  uint32_t heartbeat_ms = 2'000;
  uint32_t probe_bursts = 2;
  uint64_t away_from_s = 3'600;
  uint64_t away_s = 86'400;
  uint64_t merge_every = 1;
};

struct FleetResult {
  AuditResult audit;
  AgentCounters agents;
  CollectorCounters collectors;     // of all: sums, and the highest peaks
  uint64_t peak_connected = 0;      // agents at once
  uint64_t heap_per_agent = 0;      // of a collector, at that moment
  uint64_t heap_of_agents = 0;      // of all agents, at that moment
  uint64_t heap_per_collector = 0;  // before any agent came
  uint64_t peak_pending_bytes = 0;
  uint64_t peak_pending_sessions = 0;
  uint64_t peak_pending_of_one = 0;  // bytes, of one collector
  uint64_t drained_ns = 0;           // when nothing was pending any more, after the last run
  uint64_t failed_requests = 0;      // of uploaders
  uint64_t refused_uploads = 0;
  uint64_t store_requests = 0;
  uint64_t store_bytes = 0;
  uint64_t skewed_requests = 0;
  uint64_t ended_ns = 0;  // simulated
};

class Fleet {
 public:
  Fleet(const FleetSettings& settings, uint32_t number);
  ~Fleet();
  FleetResult run();

 private:
  enum class What : uint8_t {
    kBeginRun,
    kStoreLeaves,
    kStoreReturns,
    kDiskDies,
    kReplace,
    kKill,
    kStart,
    kStepClocks,
    kSample
  };
  struct Event {
    uint64_t at_ns = 0;
    uint64_t order = 0;
    What what{};
    uint32_t whose = 0;
    bool operator>(const Event& other) const {
      return std::pair(at_ns, order) > std::pair(other.at_ns, other.order);
    }
  };
  using Wake = std::pair<uint64_t, uint32_t>;  // when, agent

  void make_collectors();
  void make_agents();
  void plan();
  void plan(uint64_t at_ns, What what, uint32_t whose = 0);
  void act(const Event& event);
  void kill(uint32_t collector);
  void step_to(uint64_t at_ns);
  // Everything that can happen now, and in the microseconds that links take meanwhile.
  void settle();
  bool step_collectors();
  bool step_agents();
  void settle_uploads();
  void note_wake(uint32_t agent);
  void sample();
  void note_uploads(const upload::UploadStatus& status);
  bool is_over() const;
  uint64_t random(uint64_t below) { return random_() % below; }
  FleetResult result();

  const FleetSettings settings_;
  std::mt19937_64 random_;
  StoreServer store_;
  std::vector<std::unique_ptr<Collector>> collectors_;
  std::vector<std::unique_ptr<MemoryDisk>> dead_disks_;
  Agent::Dependencies dependencies_;
  std::vector<std::unique_ptr<Agent>> agents_;
  std::vector<Run> runs_;  // that are over
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::priority_queue<Wake, std::vector<Wake>, std::greater<>> wakes_;
  std::vector<uint64_t> wake_noted_;  // by agent
  std::vector<bool> is_touched_;      // by collector
  std::set<uint32_t> unsent_;         // agents whose sockets are full
  uint64_t planned_ = 0;
  uint64_t runs_left_ = 0;
  uint64_t last_event_ns_ = 0;
  uint32_t running_ = 0;
  FleetResult result_;
};

}  // namespace collect::fleet

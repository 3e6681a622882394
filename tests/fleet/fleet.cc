#include "tests/fleet/fleet.h"

#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <set>
#include <utility>

#include "tests/fleet/heap_use.h"

namespace collect::fleet {
namespace {

constexpr uint64_t kLinkDelayNs = 50'000;  // one way
constexpr uint64_t kTickNs = kNsPerS;
constexpr uint64_t kIdleTickNs = 10 * kNsPerS;
constexpr uint64_t kSampleNs = 10 * kNsPerS;
constexpr uint64_t kPatienceNs = 24 * 3'600 * kNsPerS;  // for uploads, after the last event
constexpr uint64_t kRepairNs = 300 * kNsPerS;           // until a dead disk is replaced
constexpr uint64_t kKillEveryNs = 60 * kNsPerS;
constexpr uint64_t kMaxDownS = 120;

int64_t either_way(std::mt19937_64& random, uint64_t most) {
  return static_cast<int64_t>(random() % (2 * most + 1)) - static_cast<int64_t>(most);
}

}  // namespace

Fleet::Fleet(const FleetSettings& settings, uint32_t number)
    : settings_(settings), random_(settings.seed * 1'000 + number) {
  dependencies_.epoll = ::epoll_create1(EPOLL_CLOEXEC);
  dependencies_.touched = [this](uint32_t collector) { is_touched_[collector] = true; };
  dependencies_.finished = [this](Run run) {
    runs_.push_back(std::move(run));
    --running_;
    --runs_left_;
  };
  is_touched_.resize(settings_.collectors);
  make_collectors();
  make_agents();
  plan();
}

Fleet::~Fleet() {
  agents_.clear();
  ::close(dependencies_.epoll);
}

void Fleet::make_collectors() {
  for (uint32_t i = 0; i < settings_.collectors; ++i) {
    CollectorSettings collector;
    collector.address = "abstract:fleet-" + std::to_string(::getpid()) + "-" + std::to_string(i);
    collector.seed = random_() | 1;
    collector.heartbeat = std::chrono::milliseconds(settings_.heartbeat_ms);
    collector.store = store_.settings();
    collectors_.push_back(std::make_unique<Collector>(std::move(collector)));
    if (settings_.scenario == Scenario::kClocksWrong) {
      // Right, or off by up to a minute, a day, three years.
      constexpr uint64_t kMost[] = {0, 60, 86'400, 3 * 365 * 86'400};
      collectors_.back()->set_wall_error(either_way(random_, kMost[i % 4] * kNsPerS));
    }
    collectors_.back()->start();
  }
  settle();
  result_.heap_per_collector = heap_bytes(HeapOwner::kCollectors) / settings_.collectors;
}

void Fleet::make_agents() {
  const AgentSettings agent{settings_.threads, settings_.events_per_s, settings_.ring_events,
                            settings_.tick_ms * kNsPerMs, settings_.probe_bursts};
  const uint32_t listed = std::min(settings_.collectors, agent::kMaxCollectors);
  const HeapScope scope(HeapOwner::kAgents);
  for (uint32_t i = 0; i < settings_.agents; ++i) {
    std::string list;
    for (uint32_t k = 0; k < listed; ++k) {
      if (k != 0) list += ',';
      list += "abstract:fleet-" + std::to_string(::getpid()) + "-" +
              std::to_string((i + k) % settings_.collectors);
    }
    agents_.push_back(std::make_unique<Agent>(dependencies_, agent, i, random_(), list));
    const bool is_wrong = settings_.scenario == Scenario::kClocksWrong;
    DeviceClock clock;
    clock.offset_ns = static_cast<int64_t>(random(30 * 86'400) * kNsPerS);  // since it was started
    clock.drift_ppb = static_cast<int32_t>(either_way(random_, is_wrong ? 200'000 : 20'000));
    clock.wall_error_ns = is_wrong ? either_way(random_, uint64_t{5 * 365 * 86'400} * kNsPerS) : 0;
    agents_.back()->set_clock(clock);
  }
  wake_noted_.assign(settings_.agents, UINT64_MAX);
}

void Fleet::plan(uint64_t at_ns, What what, uint32_t whose) {
  events_.push({at_ns, planned_++, what, whose});
  if (what != What::kSample) last_event_ns_ = std::max(last_event_ns_, at_ns);
}

void Fleet::plan() {
  const uint64_t horizon = settings_.horizon_s * kNsPerS;
  const uint64_t slot = horizon / settings_.runs;
  const uint64_t run = settings_.run_s * kNsPerS;
  for (uint32_t i = 0; i < settings_.agents; ++i) {
    for (uint32_t k = 0; k < settings_.runs; ++k) {
      plan(k * slot + random(slot > run ? slot - run : kNsPerS), What::kBeginRun, i);
    }
  }
  runs_left_ = uint64_t{settings_.agents} * settings_.runs;
  plan(kSampleNs, What::kSample);
  switch (settings_.scenario) {
    case Scenario::kSteady:
      break;
    case Scenario::kStoreAway:
      plan(settings_.away_from_s * kNsPerS, What::kStoreLeaves);
      plan((settings_.away_from_s + settings_.away_s) * kNsPerS, What::kStoreReturns);
      break;
    case Scenario::kDiskDies:
      plan(horizon / 4 * 3, What::kDiskDies, 0);
      plan(horizon / 4 * 3 + kRepairNs, What::kReplace, 0);
      break;
    case Scenario::kClocksWrong:
      for (uint32_t i = 0; i < settings_.collectors; i += 2)
        plan(horizon / 2, What::kStepClocks, i);
      break;
    case Scenario::kCollectorChurn:
      for (uint64_t at = kKillEveryNs / 2; at < horizon; at += kKillEveryNs) {
        plan(at, What::kKill, static_cast<uint32_t>(random(settings_.collectors)));
      }
      break;
  }
}

void Fleet::kill(uint32_t collector) {
  note_uploads(collectors_[collector]->uploads());
  collectors_[collector]->kill();
  is_touched_[collector] = true;
}

void Fleet::act(const Event& event) {
  const uint64_t now = SimulatedTime::now_ns();
  switch (event.what) {
    case What::kBeginRun: {
      Agent& agent = *agents_[event.whose];
      if (agent.is_running()) {  // late: it gives its records to no one yet
        plan(now + kNsPerS, What::kBeginRun, event.whose);
        break;
      }
      ++running_;
      const HeapScope scope(HeapOwner::kAgents);
      agent.begin_run(settings_.run_s * kNsPerS);
      note_wake(event.whose);
      break;
    }
    case What::kStoreLeaves:
      store_.set_away(true);
      break;
    case What::kStoreReturns:
      store_.set_away(false);
      break;
    case What::kDiskDies:
      collectors_[event.whose]->disk().die();
      break;
    case What::kReplace:
      kill(event.whose);
      dead_disks_.push_back(collectors_[event.whose]->replace_disk());
      collectors_[event.whose]->start();
      break;
    case What::kKill:
      if (!collectors_[event.whose]->is_up()) break;
      kill(event.whose);
      plan(now + (5 + random(kMaxDownS - 5)) * kNsPerS, What::kStart, event.whose);
      break;
    case What::kStart:
      collectors_[event.whose]->start();
      is_touched_[event.whose] = true;
      break;
    case What::kStepClocks:
      collectors_[event.whose]->set_wall_error(either_way(random_, 7'200 * kNsPerS));
      break;
    case What::kSample:
      sample();
      plan(now + kSampleNs, What::kSample);
      break;
  }
}

void Fleet::note_wake(uint32_t agent) {
  const uint64_t at = agents_[agent]->wake_at_ns();
  if (at == wake_noted_[agent]) return;
  wake_noted_[agent] = at;
  if (at != UINT64_MAX) wakes_.push({at, agent});
}

bool Fleet::step_collectors() {
  bool did_something = false;
  for (uint32_t i = 0; i < collectors_.size(); ++i) {
    if (!is_touched_[i]) continue;
    is_touched_[i] = collectors_[i]->step();
    did_something |= is_touched_[i];
  }
  return did_something;
}

bool Fleet::step_agents() {
  const HeapScope scope(HeapOwner::kAgents);
  epoll_event ready[256];
  const int count = ::epoll_wait(dependencies_.epoll, ready, 256, 0);
  for (int i = 0; i < count; ++i) {
    const auto agent = static_cast<uint32_t>(ready[i].data.u64 >> 1);
    agents_[agent]->on_ready(ready[i].data.u64 & 1);
    note_wake(agent);
    if (agents_[agent]->has_unsent()) unsent_.insert(agent);
  }
  for (auto at = unsent_.begin(); at != unsent_.end();) {
    agents_[*at]->send_more();
    at = agents_[*at]->has_unsent() ? std::next(at) : unsent_.erase(at);
  }
  return count > 0;
}

void Fleet::settle() {
  while (true) {
    bool is_busy = step_collectors();
    is_busy |= step_agents();
    if (!is_busy && std::find(is_touched_.begin(), is_touched_.end(), true) == is_touched_.end()) {
      return;
    }
    SimulatedTime::advance_to(SimulatedTime::now_ns() + kLinkDelayNs);
  }
}

// Time stops meanwhile: the store and the way there are as fast as this machine is.
void Fleet::settle_uploads() {
  for (const auto& collector : collectors_) collector->let_uploads_go();
  for (const auto& collector : collectors_) collector->wait_for_uploads();
}

void Fleet::step_to(uint64_t at_ns) {
  SimulatedTime::advance_to(at_ns);
  const uint64_t now = SimulatedTime::now_ns();
  while (!events_.empty() && events_.top().at_ns <= now) {
    const Event event = events_.top();
    events_.pop();
    act(event);
  }
  while (!wakes_.empty() && wakes_.top().first <= now) {
    const auto [at, agent] = wakes_.top();
    wakes_.pop();
    if (wake_noted_[agent] != at) continue;  // it was woken, or moved
    wake_noted_[agent] = UINT64_MAX;
    const HeapScope scope(HeapOwner::kAgents);
    agents_[agent]->wake();
    note_wake(agent);
    if (agents_[agent]->has_unsent()) unsent_.insert(agent);
  }
  settle();
}

bool Fleet::is_over() const {
  if (runs_left_ != 0 || SimulatedTime::now_ns() < last_event_ns_) return false;
  return std::ranges::all_of(collectors_, [](const auto& collector) {
    return collector->is_up() && collector->is_idle();
  });
}

FleetResult Fleet::run() {
  uint64_t tick = 0;
  uint64_t idle_tick = 0;
  while (!is_over() && SimulatedTime::now_ns() < last_event_ns_ + kPatienceNs) {
    uint64_t next = tick;
    if (!events_.empty()) next = std::min(next, events_.top().at_ns);
    if (!wakes_.empty()) next = std::min(next, wakes_.top().first);
    step_to(next);
    const uint64_t now = SimulatedTime::now_ns();
    if (now < tick) continue;
    // Time passes for those who have something to do with it; for others less often.
    for (uint32_t i = 0; i < collectors_.size(); ++i) {
      if (now >= idle_tick || collectors_[i]->has_sessions()) is_touched_[i] = true;
    }
    if (now >= idle_tick) idle_tick = now + kIdleTickNs;
    settle();
    settle_uploads();
    tick = SimulatedTime::now_ns() + kTickNs;
  }
  sample();
  return result();
}

void Fleet::sample() {
  uint64_t up = 0;
  uint64_t bytes = 0;
  uint64_t sessions = 0;
  for (const auto& collector : collectors_) {
    collector->sample();
    up += collector->is_up() ? 1 : 0;
    const upload::UploadStatus status = collector->uploads();
    bytes += status.pending_bytes;
    sessions += status.pending_sessions;
    result_.peak_pending_of_one = std::max(result_.peak_pending_of_one, status.pending_bytes);
  }
  result_.peak_pending_bytes = std::max(result_.peak_pending_bytes, bytes);
  result_.peak_pending_sessions = std::max(result_.peak_pending_sessions, sessions);
  if (sessions != 0) result_.drained_ns = 0;
  if (sessions == 0 && result_.drained_ns == 0) result_.drained_ns = SimulatedTime::now_ns();
  uint64_t connected = 0;
  for (const auto& agent : agents_) connected += agent->is_connected() ? 1 : 0;
  if (connected <= result_.peak_connected) return;
  result_.peak_connected = connected;
  const uint64_t heap = heap_bytes(HeapOwner::kCollectors);
  const uint64_t base = result_.heap_per_collector * up;
  result_.heap_per_agent = (heap - std::min(base, heap)) / connected;
  result_.heap_of_agents = heap_bytes(HeapOwner::kAgents);
}

void Fleet::note_uploads(const upload::UploadStatus& status) {
  for (const auto& [code, count] : status.retries) result_.failed_requests += count;
  result_.refused_uploads += status.refused_sessions;
}

FleetResult Fleet::result() {
  Audit audit(store_);
  for (const auto& agent : agents_) {
    if (agent->is_running()) runs_.push_back(agent->run());
  }
  for (const auto& disk : dead_disks_) audit.add_disk(*disk, true);
  for (const auto& collector : collectors_) {
    note_uploads(collector->uploads());
    result_.collectors.add(collector->counters());
    audit.add_disk(collector->disk(), collector->disk().is_dead());
  }
  result_.ended_ns = SimulatedTime::now_ns();
  result_.store_requests = store_.requests();
  result_.store_bytes = store_.bytes();
  result_.skewed_requests = store_.skewed_requests();
  result_.agents = dependencies_.counters;
  result_.audit = audit.judge(runs_, settings_.merge_every);
  return result_;
}

}  // namespace collect::fleet

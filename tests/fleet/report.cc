#include "tests/fleet/report.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <sstream>

#include "tests/fleet/simulated_time.h"

namespace collect::fleet {
namespace {

enum class Sum : uint8_t { kAdd, kHighest };
struct Figure {
  uint64_t* value;
  Sum sum = Sum::kAdd;
};

// All numbers of a result, always in this order.
std::vector<Figure> figures_of(FleetResult& result, OwnUse& use) {
  AuditResult& audit = result.audit;
  CollectorCounters& collectors = result.collectors;
  std::vector<Figure> figures;
  for (uint64_t* const value : {&audit.runs,
                                &audit.whole_runs,
                                &audit.parts,
                                &audit.moved_runs,
                                &audit.numbered,
                                &audit.in_store,
                                &audit.on_disks,
                                &audit.on_dead_disks,
                                &audit.in_rings,
                                &audit.given_up,
                                &audit.repeated,
                                &audit.dropped,
                                &audit.merged_runs,
                                &audit.merged_records,
                                &audit.clocks_compared,
                                &audit.clocks_off,
                                &audit.violation_count,
                                &result.agents.connects,
                                &result.agents.failed_connects,
                                &result.agents.refusals,
                                &result.agents.pages,
                                &collectors.cpu_ns,
                                &collectors.starts,
                                &collectors.sessions,
                                &collectors.failed_sessions,
                                &collectors.refused,
                                &result.peak_connected,
                                &result.heap_of_agents,
                                &result.peak_pending_bytes,
                                &result.peak_pending_sessions,
                                &result.failed_requests,
                                &result.refused_uploads,
                                &result.store_requests,
                                &result.store_bytes,
                                &result.skewed_requests,
                                &use.peak_memory_bytes,
                                &use.cpu_ns}) {
    figures.push_back({value, Sum::kAdd});
  }
  for (uint64_t* const value :
       {&audit.worst_clock_error_ns, &audit.worst_clock_excess_ns, &collectors.peak_open_files,
        &collectors.peak_disk_bytes, &result.heap_per_agent, &result.heap_per_collector,
        &result.peak_pending_of_one, &result.drained_ns, &result.ended_ns}) {
    figures.push_back({value, Sum::kHighest});
  }
  for (BudgetPeak& budget : collectors.budgets) {
    figures.push_back({&budget.used, Sum::kHighest});
    figures.push_back({&budget.allowed, Sum::kHighest});
  }
  return figures;
}

void line(const char* name, uint64_t value, const std::string& remark = {}) {
  std::printf("  %-44s %15" PRIu64 "%s%s\n", name, value, remark.empty() ? "" : "  ",
              remark.c_str());
}

void line(const char* name, const std::string& value) {
  std::printf("  %-44s %15s\n", name, value.c_str());
}

std::string fixed(double value, const char* unit) {
  char text[64];
  std::snprintf(text, sizeof text, "%.2f %s", value, unit);
  return text;
}

std::string duration(uint64_t ns) {
  const uint64_t s = ns / kNsPerS;
  char text[64];
  std::snprintf(text, sizeof text, "%" PRIu64 ":%02" PRIu64 ":%02" PRIu64, s / 3'600, s / 60 % 60,
                s % 60);
  return text;
}

std::string mib(uint64_t bytes) {
  return fixed(static_cast<double>(bytes) / (1 << 20), "MiB");
}

void print_budgets(const CollectorCounters& collectors) {
  std::printf("Where a collector bends: the most used of what one user may have\n");
  std::vector<std::pair<double, std::string>> lines;
  for (size_t i = 0; i < principal::kResources; ++i) {
    const BudgetPeak& budget = collectors.budgets[i];
    if (budget.allowed == 0) continue;
    const double share = static_cast<double>(budget.used) / static_cast<double>(budget.allowed);
    char text[128];
    std::snprintf(text, sizeof text, "  %-44s %15" PRIu64 "  of %" PRIu64 ", %.1f %%",
                  principal::resource_name(static_cast<principal::Resource>(i)), budget.used,
                  budget.allowed, share * 100);
    lines.emplace_back(-share, text);
  }
  std::sort(lines.begin(), lines.end());
  for (const auto& [share, text] : lines) std::printf("%s\n", text.c_str());
}

void print_records(const AuditResult& audit) {
  std::printf("Records\n");
  line("made", audit.numbered + audit.dropped);
  line("dropped at hook time, counted", audit.dropped);
  line("in the store, each once", audit.in_store);
  line("pending: on disks that work", audit.on_disks);
  line("pending or lost: on disks that died", audit.on_dead_disks);
  line("held by agents that run", audit.in_rings);
  line("lost: no collector when the program ended", audit.given_up);
  line("repeated in more than one part", audit.repeated);
  for (const std::string& lost : audit.lost_ranges) std::printf("    %s\n", lost.c_str());
}

}  // namespace

OwnUse own_use() {
  rusage use{};
  ::getrusage(RUSAGE_SELF, &use);
  const auto ns = [](const timeval& time) {
    return static_cast<uint64_t>(time.tv_sec) * kNsPerS +
           static_cast<uint64_t>(time.tv_usec) * 1'000;
  };
  return {static_cast<uint64_t>(use.ru_maxrss) * 1024, ns(use.ru_utime) + ns(use.ru_stime)};
}

void write_figures(int pipe, const FleetResult& result, const OwnUse& use) {
  FleetResult copy = result;
  OwnUse own = use;
  std::ostringstream text;
  for (const Figure& figure : figures_of(copy, own)) text << *figure.value << '\n';
  for (const std::string& violation : copy.audit.violations) text << "! " << violation << '\n';
  for (const std::string& lost : copy.audit.lost_ranges) text << "- " << lost << '\n';
  if (!copy.agents.first_refusal.empty()) text << "? " << copy.agents.first_refusal << '\n';
  const std::string all = text.str();
  if (::write(pipe, all.data(), all.size()) != static_cast<ssize_t>(all.size())) ::_exit(1);
}

bool read_figures(int pipe, Totals& totals) {
  std::string all;
  char block[4096];
  for (ssize_t count; (count = ::read(pipe, block, sizeof block)) > 0;) {
    all.append(block, static_cast<size_t>(count));
  }
  std::istringstream text(all);
  for (const Figure& figure : figures_of(totals.fleet, totals.use)) {
    uint64_t value = 0;
    if (!(text >> value)) return false;
    *figure.value =
        figure.sum == Sum::kAdd ? *figure.value + value : std::max(*figure.value, value);
  }
  for (std::string rest; std::getline(text, rest);) {
    if (rest.size() < 2) continue;
    const std::string words = rest.substr(2);
    if (rest[0] == '!') totals.fleet.audit.violations.push_back(words);
    if (rest[0] == '-') totals.fleet.audit.lost_ranges.push_back(words);
    if (rest[0] == '?') totals.fleet.agents.first_refusal = words;
  }
  return true;
}

void print_report(const FleetSettings& settings, const Totals& totals, uint64_t wall_ns) {
  const FleetResult& fleet = totals.fleet;
  const AuditResult& audit = fleet.audit;
  print_records(audit);
  std::printf("Recordings\n");
  line("made", audit.runs);
  line("whole: their end was acknowledged", audit.whole_runs);
  line("with parts at more than one collector", audit.moved_runs);
  line("parts", audit.parts);
  line("sessions sealed", fleet.collectors.sessions);
  line("of these FAILED", fleet.collectors.failed_sessions);
  line("merged and compared, record by record", audit.merged_runs,
       std::to_string(audit.merged_records) + " records");
  std::printf("Store\n");
  line("requests answered", fleet.store_requests);
  line("requests that failed", fleet.failed_requests);
  line("of these refused for their clock", fleet.skewed_requests);
  line("uploads refused for good", fleet.refused_uploads);
  line("objects", mib(fleet.store_bytes));
  line("pending at most, all collectors", mib(fleet.peak_pending_bytes));
  line("pending at most, one collector", mib(fleet.peak_pending_of_one));
  line("sessions pending at most", fleet.peak_pending_sessions);
  if (fleet.peak_pending_sessions != 0) {
    line("nothing pending any more at", duration(fleet.drained_ns));
  }
  std::printf("Agents\n");
  line("connected at once", fleet.peak_connected);
  line("connections made", fleet.agents.connects);
  line("no one listened", fleet.agents.failed_connects);
  line("refused", fleet.agents.refusals,
       fleet.agents.first_refusal.empty() ? "" : "the first: " + fleet.agents.first_refusal);
  line("pages sent", fleet.agents.pages);
  if (audit.clocks_compared != 0) {
    line("clock relations compared", audit.clocks_compared);
    line("of these wrong by more than they say", audit.clocks_off,
         "by " + std::to_string(audit.worst_clock_excess_ns) + " ns at most");
    line("worst error", fixed(static_cast<double>(audit.worst_clock_error_ns) / 1e3, "us"));
  }
  std::printf("Memory and time\n");
  line("heap of a collector without agents", mib(fleet.heap_per_collector));
  line("heap of a collector for each agent",
       fixed(static_cast<double>(fleet.heap_per_agent) / 1024, "KiB"));
  line("heap of an agent of the simulation",
       fixed(static_cast<double>(fleet.heap_of_agents) / 1024 / settings.agents, "KiB"));
  line("files open at most, one collector", fleet.collectors.peak_open_files);
  line("disk of one collector at most", mib(fleet.collectors.peak_disk_bytes));
  line("starts of collectors", fleet.collectors.starts);
  const double simulated_s = static_cast<double>(fleet.ended_ns) / 1e9;
  line("CPU of ingest, one collector",
       fixed(static_cast<double>(fleet.collectors.cpu_ns) / 1e6 / simulated_s / settings.collectors,
             "ms/s"));
  line("simulated", duration(fleet.ended_ns));
  line("took", fixed(static_cast<double>(wall_ns) / 1e9, "s"));
  line("CPU of all processes", fixed(static_cast<double>(totals.use.cpu_ns) / 1e9, "s"));
  line("memory of all processes, at their peaks", mib(totals.use.peak_memory_bytes));
  print_budgets(fleet.collectors);
  if (totals.is_kept()) {
    std::printf("Kept: each record is in one place after merging, or counted\n");
    return;
  }
  std::printf("BROKEN: %" PRIu64 " violations\n", audit.violation_count);
  for (const std::string& violation : audit.violations) std::printf("  %s\n", violation.c_str());
}

}  // namespace collect::fleet

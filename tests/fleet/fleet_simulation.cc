// A fleet on one machine: real ingest, storage and uploads of many collectors, played agents, and a
// time that passes as fast as the work is done. deploy/fleet/FLEET.md says what is real and what is
// not. Exit code 0: each record is accounted for; 1: it is not, or something is refused that may
// not be; 2: the command line.
#include <poll.h>
#include <spdlog/spdlog.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <map>
#include <vector>

#include "tests/fleet/fleet.h"
#include "tests/fleet/report.h"
#include "tests/fleet/simulated_time.h"

namespace collect::fleet {
namespace {

constexpr uint64_t kBeginUnixNs = 1'780'000'000ull * kNsPerS;  // 28 May 2026, 20:26:40 UTC
// Agent and collector have two descriptors each for a pair; beside those a process has some others.
constexpr uint64_t kDescriptorsPerAgent = 4;
constexpr uint64_t kOtherDescriptors = 1'000;

// What each scenario is about, unless the command line says otherwise.
FleetSettings settings_of(Scenario scenario) {
  FleetSettings settings;
  settings.scenario = scenario;
  switch (scenario) {
    case Scenario::kSteady:
      break;
    case Scenario::kStoreAway:
      settings.horizon_s = 26 * 3'600;
      settings.runs = 4;
      settings.run_s = 20;
      settings.heartbeat_ms = 20'000;
      settings.tick_ms = 5'000;
      break;
    case Scenario::kDiskDies:
    case Scenario::kCollectorChurn:
      settings.horizon_s = 1'200;
      settings.runs = 2;
      settings.run_s = 300;
      settings.heartbeat_ms = 20'000;
      settings.tick_ms = 5'000;
      break;
    case Scenario::kClocksWrong:
      settings.horizon_s = 600;
      settings.runs = 2;
      settings.run_s = 60;
      settings.heartbeat_ms = 10'000;
      settings.probe_bursts = UINT32_MAX;
      settings.tick_ms = 5'000;
      break;
  }
  return settings;
}

uint64_t descriptors() {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
  return limit.rlim_cur;
}

// Share `index` of `count` parts of a whole.
uint32_t share_of(uint32_t whole, uint32_t index, uint32_t count) {
  return whole / count + (index < whole % count ? 1 : 0);
}

// One part of the fleet in a process of its own, which writes its figures into a pipe.
pid_t start_part(const FleetSettings& settings, uint32_t number, int& out) {
  int ends[2];
  COLLECT_CHECK(::pipe(ends) == 0);
  const pid_t child = ::fork();
  COLLECT_CHECK(child >= 0);
  if (child != 0) {
    ::close(ends[1]);
    out = ends[0];
    return child;
  }
  ::close(ends[0]);
  SimulatedTime::begin(kBeginUnixNs);
  {
    Fleet fleet(settings, number);
    const FleetResult result = fleet.run();
    write_figures(ends[1], result, own_use());
  }
  ::_exit(0);
}

int simulate(const FleetSettings& all, uint32_t parts, uint32_t at_once) {
  const uint64_t began = real_wall_ns();
  Totals totals;
  std::map<pid_t, int> running;
  uint32_t started = 0;
  bool failed = false;
  while (started < parts || !running.empty()) {
    while (started < parts && running.size() < at_once) {
      FleetSettings part = all;
      part.collectors = share_of(all.collectors, started, parts);
      part.agents = share_of(all.agents, started, parts);
      int out = -1;
      const pid_t child = start_part(part, started, out);
      running[child] = out;
      ++started;
    }
    // Figures are fewer bytes than a pipe holds, so that no child waits for its turn.
    int status = 0;
    const pid_t ended = ::wait(&status);
    const auto found = running.find(ended);
    COLLECT_CHECK(found != running.end());
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0 || !read_figures(found->second, totals)) {
      std::fprintf(stderr, "fleet_simulation: a part of the fleet ended with status %d\n", status);
      failed = true;
    }
    ::close(found->second);
    running.erase(found);
  }
  print_report(all, totals, real_wall_ns() - began);
  return failed || !totals.is_kept() ? 1 : 0;
}

// Numbers that belong to a scenario, as far as the command line has them.
using Given = std::map<std::string, std::optional<uint64_t>>;

FleetSettings chosen_settings(const std::string& scenario, const FleetSettings& shown,
                              Given& given) {
  FleetSettings settings;
  for (const auto& [value, name] : kScenarios) {
    if (scenario == name) settings = settings_of(value);
  }
  settings.collectors = shown.collectors;
  settings.agents = shown.agents;
  settings.seed = shown.seed;
  settings.threads = shown.threads;
  settings.events_per_s = shown.events_per_s;
  settings.ring_events = shown.ring_events;
  settings.merge_every = shown.merge_every;
  settings.horizon_s = given["--horizon"].value_or(settings.horizon_s);
  settings.runs = static_cast<uint32_t>(given["--runs"].value_or(settings.runs));
  settings.run_s = given["--run"].value_or(settings.run_s);
  settings.away_s = given["--away"].value_or(settings.away_s);
  settings.heartbeat_ms =
      static_cast<uint32_t>(given["--heartbeat"].value_or(settings.heartbeat_ms));
  settings.tick_ms = given["--tick"].value_or(settings.tick_ms);
  settings.probe_bursts =
      static_cast<uint32_t>(given["--probe-bursts"].value_or(settings.probe_bursts));
  return settings;
}

int main_of(int argc, char** argv) {
  CLI::App app{
      "Simulates a fleet of collectors and agents, and checks that no record is lost in "
      "silence."};
  std::string scenario = "steady";
  std::vector<std::string> names;
  for (const auto& [value, name] : kScenarios) names.emplace_back(name);
  app.add_option("--scenario", scenario, "What happens")->check(CLI::IsMember(names));
  const auto number = [&app](const char* name, auto& value, const char* text) {
    app.add_option(name, value, text);
  };
  Given given;
  FleetSettings shown;
  number("--collectors", shown.collectors, "Collectors");
  number("--agents", shown.agents, "Agents");
  number("--seed", shown.seed, "Decides all that happens");
  number("--threads", shown.threads, "Threads of each agent");
  number("--rate", shown.events_per_s, "Events per second of each thread");
  number("--ring", shown.ring_events, "Events that each thread's ring holds");
  number("--merge-every", shown.merge_every,
         "Merge and compare one of so many recordings that did not move; 0: only those that did");
  for (const char* name :
       {"--horizon", "--runs", "--run", "--away", "--heartbeat", "--tick", "--probe-bursts"}) {
    number(name, given[name], "As the scenario has it");
  }
  uint32_t parts = 0;
  uint32_t at_once = 2;
  number("--parts", parts, "Processes that the fleet is divided into; 0: as descriptors demand");
  number("--at-once", at_once, "Of these, how many run at once");
  std::string log = "off";
  number("--log", log, "Level of the collectors' log");
  CLI11_PARSE(app, argc, argv);

  const FleetSettings settings = chosen_settings(scenario, shown, given);
  if (settings.collectors == 0 || settings.agents == 0 || settings.runs == 0 ||
      settings.run_s == 0 || settings.threads == 0 || settings.events_per_s == 0 ||
      settings.horizon_s < settings.runs || at_once == 0) {
    std::fprintf(stderr, "fleet_simulation: nothing can be 0, and horizon is at least runs\n");
    return 2;
  }
  const uint64_t room = (descriptors() - kOtherDescriptors) / kDescriptorsPerAgent;
  if (parts == 0) parts = static_cast<uint32_t>((settings.agents + room - 1) / room);
  parts = std::min({parts, settings.collectors, settings.agents});
  spdlog::set_level(spdlog::level::from_str(log));
  ::setenv("TZ", "UTC", 1);
  ::tzset();
  std::printf("scenario %s, seed %llu, %u collectors, %u agents, in %u processes\n",
              scenario.c_str(), static_cast<unsigned long long>(settings.seed), settings.collectors,
              settings.agents, parts);
  std::fflush(stdout);
  return simulate(settings, parts, at_once);
}

}  // namespace
}  // namespace collect::fleet

int main(int argc, char** argv) {
  return collect::fleet::main_of(argc, argv);
}

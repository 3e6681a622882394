// Many agents at once: what they cost the collector in memory and CPU time, and how long a command
// takes beside them. And many connections on which nothing happens.
//
// bench_load AGENTS CONNECTIONS SECONDS: so long the idle ones are looked at.
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "daemon/ctl/control/connection/client.h"
#include "daemon/ingest/link/limits.h"
#include "tests/bench/contract.h"
#include "tests/bench/cpu_time.h"
#include "tests/e2e/collector_process.h"
#include "tests/e2e/raw_agent.h"

namespace collect::bench {
namespace {

constexpr uint32_t kFirstPid = 4'300'000;  // above the largest that Linux gives out
constexpr uint32_t kThreads = 4;
constexpr uint32_t kEvents = 500;  // of each thread in each round
constexpr uint32_t kRounds = 10;
constexpr int kCommands = 200;
constexpr uint64_t kSpare = 100;  // connections that are left to others

// Not by exit(): the collector ends with the object that started it.
[[noreturn]] void fail(const std::string& why) {
  throw std::runtime_error(why);
}

// So many connections, or as many as the hard limit of open files allows: the collector keeps half
// of it for files, and one user has three quarters of the rest.
uint32_t allowed_connections(uint32_t wanted) {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
  const uint64_t free =
      limit.rlim_max - std::min<uint64_t>(limit.rlim_max, ingest::kReservedDescriptors);
  const uint64_t allowed = free / 2 * 3 / 4;
  if (allowed >= wanted) return wanted;
  if (allowed <= kSpare) fail("the limit of open files is too low (ulimit -n)");
  return static_cast<uint32_t>(allowed / 2 * 2 - kSpare);
}

// One user may have three quarters of the connections.
e2e::Arguments flags_for(uint64_t connections) {
  return {"--heartbeat-ms", "60000", "--max-connections", std::to_string(connections * 4 / 3 + 100),
          "--log-level",    "warn"};
}

double milliseconds_of(const std::function<bool()>& call) {
  const double begin = wall_seconds();
  if (!call()) fail("a command failed");
  return (wall_seconds() - begin) * 1000;
}

void mention_latency(const std::string& what, const std::function<bool()>& call) {
  std::vector<double> taken;
  for (int i = 0; i < kCommands; ++i) taken.push_back(milliseconds_of(call));
  std::sort(taken.begin(), taken.end());
  mention("  " + what + ", median", taken[taken.size() / 2], "ms");
  mention("  " + what + ", 99th percentile", taken[taken.size() * 99 / 100], "ms");
}

// Does what the collector orders, as an agent would.
void obey(e2e::RawConnection& control, const std::atomic<bool>& done) {
  while (!done) {
    const std::optional<e2e::ReceivedFrame> frame = control.receive();
    if (!frame) return;
    if (frame->type != wire::FrameType::kCommand) continue;
    wire::Command command;
    command.ParseFromString(frame->body);
    wire::CommandResult result;
    result.set_command_id(command.command_id());
    result.set_ok(true);
    result.set_recording(1);
    control.send(wire::FrameType::kCommandResult, result);
  }
}

void commands(e2e::CollectorProcess& collector, e2e::RawAgent& agent) {
  ctl::Client client(collector.control());
  const auto agents = client.agents(std::to_string(kFirstPid));
  if (!agents.ok() || agents->size() != 1) fail("the first agent is not listed");
  const std::string name = agents->front().name();
  std::atomic<bool> done{false};
  std::jthread obedient([&] { obey(agent.control, done); });
  mention_latency("a marker", [&] { return client.annotate(name, "here").ok(); });
  mention_latency("detail on and off", [&] {
    ctl::api::StartDetailRequest start;
    start.mutable_target()->set_any(name);
    ctl::api::StopDetailRequest stop;
    stop.mutable_target()->set_any(name);
    return client.start_detail(start).ok() && client.stop_detail(stop).ok();
  });
  done = true;
  ctl::api::StopDetailRequest last;  // ends its wait
  last.mutable_target()->set_any(name);
  (void)client.stop_detail(last);
}

void many_agents(uint32_t wanted) {
  const uint32_t count = allowed_connections(wanted * 2) / 2;
  e2e::Scratch scratch;
  e2e::CollectorProcess collector(scratch, flags_for(uint64_t{count} * 2));
  const pid_t pid = collector.process().pid();
  const uint64_t idle = collector.process().resident_bytes();
  std::vector<std::unique_ptr<e2e::RawAgent>> agents;
  for (uint32_t i = 0; i < count; ++i) {
    agents.push_back(std::make_unique<e2e::RawAgent>(collector.ingest_port(), kFirstPid + i));
    if (!agents.back()->ready) fail("agent " + std::to_string(i) + " was not welcomed");
    for (uint32_t stream = 2; stream <= kThreads; ++stream) {
      if (!e2e::open_stream(agents.back()->data, 1, stream)) fail("a stream was refused");
    }
  }
  const double cpu_before = process_cpu_seconds(pid);
  const double begin = wall_seconds();
  for (uint32_t round = 0; round < kRounds; ++round) {
    const uint64_t first = uint64_t{round} * kEvents;
    const e2e::Octets records = e2e::events(1000 + first, kEvents);
    for (const auto& agent : agents) {
      for (uint32_t stream = 1; stream <= kThreads; ++stream) {
        if (!agent->data.send(e2e::page_bytes(stream, first, records))) fail("a page was refused");
      }
    }
  }
  for (const auto& agent : agents) {
    if (!agent->control.receive_ack(kThreads, uint64_t{kEvents} * kRounds)) fail("no ack");
  }
  const double wall = wall_seconds() - begin;
  const double cpu = process_cpu_seconds(pid) - cpu_before;
  const uint64_t loaded = collector.process().resident_bytes();
  const double events = static_cast<double>(count) * kThreads * kEvents * kRounds * 1e-6;
  std::printf("%u agents with %u threads each\n", count, kThreads);
  mention("  memory for each while it records",
          static_cast<double>(loaded - idle) / 1024 / static_cast<double>(count), "KiB", 1);
  mention("  collector's CPU time, in pages of 500 events", cpu / events, "s for 1 M events");
  mention("  the same, until acknowledged", events / wall, "M ev/s", 1);
  commands(collector, *agents.front());
}

// Pairs of channels that were welcomed and say nothing more.
void idle_connections(uint32_t wanted, double seconds) {
  const uint32_t count = allowed_connections(wanted);
  e2e::Scratch scratch;
  e2e::CollectorProcess collector(scratch, flags_for(count));
  const pid_t pid = collector.process().pid();
  const uint64_t idle = collector.process().resident_bytes();
  std::vector<e2e::RawConnection> connections;
  for (uint32_t i = 0; i < count / 2; ++i) {
    char process[17];
    std::snprintf(process, sizeof process, "idle_%011u", i);
    fakes::Secrets secrets;
    for (const wire::Channel channel : {wire::CHANNEL_CONTROL, wire::CHANNEL_DATA}) {
      connections.emplace_back(collector.ingest_port());
      wire::Hello hello = e2e::hello(channel, kFirstPid + i, process);
      hello.set_is_recording(false);
      hello.set_recording(0);
      if (!e2e::be_welcomed(connections.back(), hello, secrets))
        fail("not welcomed: " + collector.process().errors());
    }
  }
  const double cpu_before = process_cpu_seconds(pid);
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  const double cpu = process_cpu_seconds(pid) - cpu_before;
  std::printf("%u idle connections\n", count);
  mention("  memory for each",
          static_cast<double>(collector.process().resident_bytes() - idle) / 1024 / count, "KiB",
          1);
  mention("  collector's CPU", cpu * 100 / seconds, "% of a core", 2);
  ctl::Client client(collector.control());
  mention_latency("collectors", [&] { return client.stats().ok(); });
}

}  // namespace
}  // namespace collect::bench

int main(int argc, char** argv) {
  using namespace collect::bench;
  const auto number = [&](int at, uint32_t otherwise) {
    return argc > at ? static_cast<uint32_t>(std::strtoul(argv[at], nullptr, 10)) : otherwise;
  };
  try {
    many_agents(number(1, 1000));
    idle_connections(number(2, 10'000), argc > 3 ? std::atof(argv[3]) : 5);
  } catch (const std::runtime_error& error) {
    std::printf("%s\n", error.what());
    return 1;
  }
  return 0;
}

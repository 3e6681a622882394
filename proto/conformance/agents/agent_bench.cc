#include "proto/conformance/agents/agent_bench.h"

#include <utility>

#include "proto/conformance/agents/agent_checks.h"

namespace collect::conformance {
namespace {

constexpr uint32_t kProbes = 8;

}  // namespace

AgentBench::AgentBench(const Settings& settings, StartAgent start)
    : settings_(settings), start_(std::move(start)) {}

std::unique_ptr<PlayedCollector> AgentBench::collector() const {
  return std::make_unique<PlayedCollector>(settings_);
}

Result<Played> AgentBench::run(std::unique_ptr<PlayedCollector> collector) const {
  if (session_.collector && session_->connections() == 0) {
    return Error{Code::kUnavailable, incomplete_};
  }
  return start(std::move(collector));
}

Result<Played> AgentBench::start(std::unique_ptr<PlayedCollector> collector) const {
  COLLECT_TRY(collector->listen());
  auto program = start_(collector->address());
  if (!program.ok()) return program.error();
  return Played{std::move(collector), std::move(*program)};
}

Result<Played> AgentBench::run_open(std::unique_ptr<PlayedCollector> collector) const {
  auto played = run(std::move(collector));
  if (!played.ok()) return played;
  if ((*played)->wait_open()) return played;
  return Error{Code::kUnavailable, (*played)->why_not_open()};
}

const PlayedCollector& AgentBench::session() {
  if (!session_.collector) play_session();
  return *session_;
}

void AgentBench::play_session() {
  auto prepared = collector();
  prepared->data_hold = kQuietBound;
  auto played = start(std::move(prepared));
  if (!played.ok()) {  // check_agent() has started it once already
    session_.collector = collector();
    incomplete_ = played.error().message;
    return;
  }
  session_ = std::move(*played);
  PlayedCollector& own = *session_;
  if (!own.wait_open()) {
    incomplete_ = own.why_not_open();
    return;
  }
  wire::Command flush;
  flush.set_command_id(kFlushCommand);
  flush.mutable_flush();
  own.send_command(flush);
  wire::Command unknown;
  unknown.set_command_id(kUnknownCommand);
  own.send_command(unknown);
  for (uint32_t i = 0; i < kProbes; ++i) {
    own.send_probe();
    if (!own.wait([&] { return own.clock_replies > i || !own.is_open(); })) break;
  }
  const auto is_over = [&own] {
    return own.bye || !own.faults.of("whole-frames").empty() ||
           own.connection(wire::CHANNEL_CONTROL)->is_over;
  };
  if (!own.wait(is_over, kSessionBound)) {
    incomplete_ = "the program's agent sent no Bye within 60 s";
    return;
  }
  data_ended_ = own.wait([&own] { return own.connection(wire::CHANNEL_DATA)->is_over; });
  if (own.bye) return;
  incomplete_ = own.faults.of("whole-frames");
  if (incomplete_.empty()) incomplete_ = "the agent ended its connection";
}

}  // namespace collect::conformance

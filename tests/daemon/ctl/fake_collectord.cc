// Is in for collectord in the tests of `collectctl run`: a real control server with a scripted
// collector. FAKE_COLLECTORD says what it plays, "refuse", "silent", "agent" (a process said hello
// and recorded nothing), "session" (one sealed session), "crash" (a session whose process is gone),
// "events" and "lost" counts in FAKE_EVENTS and FAKE_LOST.
#include <sys/prctl.h>
#include <unistd.h>
#include <csignal>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <string>

#include "daemon/control/control_server.h"
#include "tests/daemon/control/fake_collector.h"

namespace collect::control {
namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

uint64_t number(const char* name) {
  const std::string text = variable(name);
  return text.empty() ? 0 : std::stoull(text);
}

constexpr uint32_t kNoSuchProcess = 0x3fffffff;  // above the largest pid_max

class ScriptedCollector final : public FakeCollector {
 public:
  explicit ScriptedCollector(std::string play) : play_(std::move(play)) {}

  std::vector<api::Agent> agents(const api::Selector& target) override {
    if (play_ == "silent") return {};
    api::Agent agent;
    agent.set_name("agents/1");
    agent.set_state(play_ == "crash" && !stopped_ ? api::AGENT_STATE_DISCONNECTED
                                                  : api::AGENT_STATE_GONE);
    agent.set_tag(target.any());
    return {agent};
  }

  std::vector<api::Session> sessions(const api::Selector& target) override {
    if (play_ == "silent" || play_ == "agent") return {};
    api::Session session;
    session.set_name("sessions/session_20250101_000000/pid_1");
    session.set_path("/data/session_20250101_000000/pid_1");
    session.set_tag(target.any());
    session.set_pid(kNoSuchProcess);
    session.set_state(play_ == "session"  ? api::SESSION_STATE_COMPLETE
                      : play_ == "failed" ? api::SESSION_STATE_FAILED
                      : stopped_          ? api::SESSION_STATE_RECOVERED
                                          : api::SESSION_STATE_INTERRUPTED);
    session.set_losses_known(play_ == "session");
    if (play_ != "session") session.set_missing("what was recorded last; how much is not known");
    session.set_events(number("FAKE_EVENTS"));
    session.set_lost_events(number("FAKE_LOST"));
    session.set_threads(2);
    session.mutable_start_time()->set_seconds(100);
    session.mutable_end_time()->set_seconds(102);
    return {session};
  }

  void stop_session(const api::Selector& target, Callback<api::StopSessionResponse> done) override {
    stopped_ = true;
    FakeCollector::stop_session(target, std::move(done));
  }

 private:
  const std::string play_;
  std::atomic<bool> stopped_{false};
};

int serve(const std::map<std::string, std::string>& options) {
  sigset_t ends;
  sigemptyset(&ends);
  sigaddset(&ends, SIGTERM);
  sigprocmask(SIG_BLOCK, &ends, nullptr);

  ScriptedCollector collector(variable("FAKE_COLLECTORD"));
  auto server = ControlServer::start(options.at("--control"), collector);
  if (!server.ok()) {
    std::fprintf(stderr, "%s\n", server.error().message.c_str());
    return 2;
  }
  const std::string ready =
      R"({"ingest":"127.0.0.1:1234","control":")" + (*server)->address() + "\"}\n";
  const int fd = std::stoi(options.at("--ready-fd"));
  if (::write(fd, ready.data(), ready.size()) != static_cast<ssize_t>(ready.size())) return 1;
  ::close(fd);
  int signal = 0;
  sigwait(&ends, &signal);
  (*server)->shutdown(ControlServer::kShutdownDeadline);
  std::ofstream(options.at("--root") + "/ended") << "by SIGTERM";
  return 0;
}

}  // namespace
}  // namespace collect::control

int main(int argc, char** argv) {
  if (collect::control::variable("FAKE_COLLECTORD") == "refuse") {
    std::fprintf(stderr, "collectord: the disk is on fire\n");
    return 2;
  }
  std::map<std::string, std::string> options;
  for (int i = 1; i + 1 < argc; i += 2) options[argv[i]] = argv[i + 1];
  return collect::control::serve(options);
}

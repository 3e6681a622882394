#include "daemon/ctl/record/android/app/app_watch.h"

#include <fmt/core.h>

#include <cstdlib>
#include <utility>

#include "daemon/attach/unix_sockets.h"

namespace collect::ctl {
namespace {

// As every line of the agent begins (agent/drain/link/status.cc).
constexpr std::string_view kAgentLine = "collect agent (";
constexpr size_t kMaxLogLineBytes = 4096;

// Says the process's number, and ends when it has ended.
std::string until_it_ends(const std::string& package, pid_t known) {
  if (known != 0) {
    return fmt::format("echo {}; while [ -d /proc/{} ]; do sleep 0.2; done", known, known);
  }
  return fmt::format(
      "n=0; until p=$(pidof {}); do n=$((n + 1)); [ $n -lt {} ] || exit 0; sleep 0.1; done; "
      "p=${{p%% *}}; echo $p; while [ -d /proc/$p ]; do sleep 0.2; done",
      package, kLooksForProcess);
}

}  // namespace

AppWatch::AppWatch(const AdbDevice& device, std::string package, OnLine on_line)
    : device_(device), package_(std::move(package)), on_line_(std::move(on_line)) {}

void AppWatch::work_for(std::chrono::milliseconds time) {
  start_what_ended();
  device_.client().io().work_for(time);
}

std::string AppWatch::agent_address() const {
  if (pid_ == 0) return "";
  return fmt::format("adb:{}:{}{}", device_.serial(), attach::kAgentSocketPrefix, pid_);
}

void AppWatch::start_what_ended() {
  if (has_ended_ || (process_ && log_)) return;
  const auto now = std::chrono::steady_clock::now();
  if (now < next_try_) return;
  next_try_ = now + kWatchRetry;
  if (!process_) watch_process();
  if (process_ && !log_) follow_log();
}

void AppWatch::watch_process() {
  const auto said = std::make_shared<std::string>();
  auto started = device_.follow(
      until_it_ends(package_, pid_),
      [this, said](const attach::ShellPacket& packet) {
        if (packet.stream != attach::ShellStreamId::kOutput) return;
        *said += packet.data;
        if (said->find('\n') != std::string::npos) pid_ = std::atoi(said->c_str());
      },
      [this](const Status& status) {
        process_.reset();
        has_ended_ = status.ok();
        is_away_ = !status.ok();
      });
  is_away_ = !started.ok();
  if (started.ok()) process_ = std::move(*started);
}

void AppWatch::follow_log() {
  auto started = device_.follow(
      "logcat -v raw -T 1 -e '^collect agent '",
      [this](const attach::ShellPacket& packet) {
        if (packet.stream == attach::ShellStreamId::kOutput) take_log(packet.data);
      },
      [this](const Status&) { log_.reset(); });
  if (started.ok()) log_ = std::move(*started);
}

void AppWatch::take_log(const std::string& text) {
  for (const char c : text) {
    if (c != '\n') {
      if (line_.size() < kMaxLogLineBytes) line_ += c;
      continue;
    }
    if (line_.starts_with(kAgentLine) && on_line_) on_line_(line_);
    line_.clear();
  }
}

}  // namespace collect::ctl

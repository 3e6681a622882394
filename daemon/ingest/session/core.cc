#include "daemon/ingest/session/core.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "daemon/ingest/link/descriptors.h"

namespace collect::ingest {
namespace {

unsigned threads_or(unsigned wanted, unsigned limit) {
  if (wanted != 0) return std::min(wanted, limit);
  return std::clamp(std::thread::hardware_concurrency(), 1u, limit);
}

Status check_access(const std::string& address, const std::string& token, const TlsContext* tls) {
  const bool is_asked = !token.empty() || (tls != nullptr && tls->asks_for_certificate());
  if (tls != nullptr && is_asked) return {};
  const std::string missing =
      tls == nullptr ? is_asked ? "tls_certificate and tls_key"
                                : "tls_certificate and tls_key, and token_file or tls_client_ca"
                     : "token_file or tls_client_ca";
  return Error{Code::kInvalidArgument,
               fmt::format("ingest address {}: other machines can reach it, so it needs {}; "
                           "127.0.0.1, [::1] and unix:/path need nothing",
                           address, missing)};
}

}  // namespace

void RecentProcesses::add(const ProcessId& id) {
  std::lock_guard lock(mutex_);
  if (!ids_.insert(id).second) return;
  order_.push_back(id);
  if (order_.size() <= kMaxRecentProcesses) return;
  ids_.erase(order_.front());
  order_.pop_front();
}

void RecentProcesses::remove(const ProcessId& id) {
  std::lock_guard lock(mutex_);
  if (ids_.erase(id) != 0) order_.erase(std::find(order_.begin(), order_.end(), id));
}

bool RecentProcesses::holds(const ProcessId& id) const {
  std::lock_guard lock(mutex_);
  return ids_.contains(id);
}

std::string LogRateLimiter::admit(const std::string& line,
                                  std::chrono::steady_clock::time_point now) {
  std::lock_guard lock(mutex_);
  if (lines_ == 0 || now - period_start_ > kRefusalLogPeriod) {
    period_start_ = now;
    lines_ = 0;
  }
  if (lines_ >= kRefusalLinesPerPeriod) {
    ++left_out_;
    return {};
  }
  ++lines_;
  if (left_out_ == 0) return line;
  const uint64_t before = std::exchange(left_out_, 0);
  return fmt::format("{} ({} such lines were left out before)", line, before);
}

IngestCore::IngestCore(IngestOptions given, storage::Fs& file_system, IngestObserver& watcher)
    : options(std::move(given)),
      fs(file_system),
      observer(watcher),
      budget(budget_limits(options)),
      data_threads("data", options.stepped ? 0 : threads_or(options.data_threads, kMaxDataThreads),
                   options.stepped ? 0 : kMaxStuckDataThreads),
      seal_threads("sealer", options.stepped ? 0 : 1, options.stepped ? 0 : kMaxSealThreads),
      queue_dependencies{
          &data_threads, &seal_threads, {&fs, &options.storage, &counters, &completed, &watcher}},
      token_(options.token),
      tls_(options.tls) {}

std::string IngestCore::token() const {
  std::lock_guard lock(access_mutex_);
  return token_;
}

std::shared_ptr<const TlsContext> IngestCore::tls() const {
  std::lock_guard lock(access_mutex_);
  return tls_;
}

Status IngestCore::set_access(std::string token, std::shared_ptr<const TlsContext> tls) {
  std::lock_guard lock(access_mutex_);
  if (!guarded_.empty()) COLLECT_TRY(check_access(guarded_, token, tls.get()));
  token_ = std::move(token);
  tls_ = std::move(tls);
  return {};
}

Status IngestCore::guard(const std::string& address) {
  std::lock_guard lock(access_mutex_);
  COLLECT_TRY(check_access(address, token_, tls_.get()));
  guarded_ = address;
  return {};
}

SessionQueue::OnReport IngestCore::late_seal(SessionSnapshot shown) {
  return [this, before = std::move(shown)](const SessionReport& report) {
    if (!report.sealed) return;
    SessionSnapshot now = before;
    now.state = shown_state(report.sealed->state);
    now.status = report.sealed->reason;
    now.symbols = report.sealed->symbols;
    now.health = report.sealed->health;
    now.end_time = std::chrono::system_clock::now();
    now.totals = report.totals;
    observer.session_changed(now);
    spdlog::info("{} is sealed, now that there is room: {}", now.name, now.status);
  };
}

void IngestCore::stop_threads() {
  data_threads.stop();
  seal_threads.stop();
}

void IngestCore::refused(const std::string& peer, const std::string& reason) {
  counters.connections_refused.fetch_add(1, std::memory_order_relaxed);
  const std::string line = refusal_lines.admit(fmt::format("refused {}: {}", peer, reason));
  if (!line.empty()) spdlog::warn("{}", line);
}

}  // namespace collect::ingest

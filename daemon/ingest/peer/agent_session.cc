#include "daemon/ingest/peer/agent_session.h"

#include <algorithm>
#include <utility>

#include "daemon/ingest/link/limits.h"
#include "storage/model/session_layout.h"

namespace collect::ingest {

using principal::Resource;

AgentSession::AgentSession(IngestCore& core, asio::io_context& io,
                           const std::shared_ptr<principal::Account>& account, uint32_t number)
    : LiveSession(core, io, account, nullptr),
      recording(number),
      place_(account, Resource::kSessions),
      memory_(account, Resource::kMemory),
      files_(account, Resource::kInodes) {
  shown.recording = number;
}

// ---- budget

Status AgentSession::charge() {
  COLLECT_TRY(place_.grow(1));
  COLLECT_TRY(memory_.grow(kSessionMemory));
  return files_.grow(storage::kFilesPerSession);
}

void AgentSession::charge_found() {
  place_.set(1);
  memory_.set(kSessionMemory);
  files_.set(storage::kFilesPerSession);
}

// ---- what comes

void AgentSession::store(const storage::ClockSync& sync) {
  push([sync](StoredSession& session) { return session.writer().clock_sync(sync); });
}

void AgentSession::store(const storage::FunctionFilter& filter) {
  push([filter](StoredSession& session) { return session.writer().function_filter(filter); });
}

void AgentSession::store_lost_without_stream(uint64_t count) {
  if (count == 0) return;
  push([count](StoredSession& session) {
    session.writer().set_lost_without_stream(count);
    return Status();
  });
}

void AgentSession::take_report(const SessionReport& report) {
  if (report.progress) progress_at_ = std::chrono::steady_clock::now();
  take(report);
  if (report.detail) show_detail(*report.detail);
}

void AgentSession::show_detail(DetailMode mode) {
  shown.detail = mode;
  show(true);
}

// ---- what it waits for

void AgentSession::wait_for_agent() {
  if (waiting_since_) return;
  waiting_since_ = std::chrono::steady_clock::now();
  shown.state = SessionState::kInterrupted;
  shown.status = "its agent is away";
  push([](StoredSession& session) { return session.writer().release_files(); });
  show(true);
}

void AgentSession::end_wait() {
  waiting_since_.reset();
  shown.state = SessionState::kActive;
  shown.status.clear();
  show(true);
}

bool AgentSession::expect_end() {
  if (stop_asked_at_) return false;
  stop_asked_at_ = std::chrono::steady_clock::now();
  return true;
}

AgentSession::Overdue AgentSession::overdue(SteadyTime now, milliseconds resume) const {
  if (waiting_since_ && now - *waiting_since_ > resume) return Overdue::kAgentAway;
  if (stop_asked_at_ && now - std::max(*stop_asked_at_, progress_at_) > kStopIdleDeadline) {
    return Overdue::kEndNotSent;
  }
  return Overdue::kNo;
}

// ---- orders

void AgentSession::annotate(const storage::Marker& marker, Answer<uint64_t> done) {
  queue->command(
      [marker](storage::Session& writer) -> Result<std::string> {
        const Status marked = writer.marker(marker);
        if (!marked.ok()) return marked.error();
        return std::string();
      },
      [done = std::move(done), at = marker.at_ns](const Result<std::string>& marked) {
        if (marked.ok()) {
          done(at);
        } else {
          done(marked.error());
        }
      });
}

void AgentSession::roll_container(Answer<std::string> done) {
  queue->command([](storage::Session& writer) { return writer.roll_container(); }, std::move(done));
}

void AgentSession::cut(Answer<storage::SessionCut> done) {
  const auto found = std::make_shared<storage::SessionCut>();
  queue->command(
      [found](storage::Session& writer) -> Result<std::string> {
        auto cut = writer.cut();
        if (!cut.ok()) return cut.error();
        *found = std::move(*cut);
        return std::string();
      },
      [found, done = std::move(done)](const Result<std::string>& result) {
        if (result.ok()) {
          done(std::move(*found));
        } else {
          done(result.error());
        }
      });
}

}  // namespace collect::ingest

#include "daemon/ingest/session/live_session.h"

#include <utility>

#include "daemon/ingest/link/limits.h"

namespace collect::ingest {

LiveSession::LiveSession(IngestCore& core, asio::io_context& io,
                         std::shared_ptr<principal::Account> account,
                         SessionQueue::OnReport on_report)
    : queue(std::make_shared<SessionQueue>(core.queue_dependencies, io.get_executor(),
                                           std::move(account), std::move(on_report))),
      core_(core) {
  core_.live_sessions.fetch_add(1);
}

void LiveSession::push(SessionQueue::Act act) {
  put_at_ = std::chrono::steady_clock::now();
  queue->push(std::move(act));
}

void LiveSession::note(std::string text) {
  put_at_ = std::chrono::steady_clock::now();
  queue->note(std::move(text));
}

void LiveSession::seal(storage::SessionState state, const std::string& reason) {
  shown.state = SessionState::kSealing;
  queue->seal(state, reason);
  show(true);
}

void LiveSession::take(const SessionReport& report) {
  if (report.opened) {
    opened = true;
    shown.name = report.opened->name;
    shown.directory = report.opened->directory;
    show(true);
  }
  shown.totals = report.totals;
  if (report.progress) put_at_ = std::chrono::steady_clock::now();
  unshown_ = true;
}

void LiveSession::take_sealed(const SessionReport::Sealed& sealed) {
  shown.state = shown_state(sealed.state);
  shown.status = sealed.reason;
  shown.symbols = sealed.symbols;
  shown.health = sealed.health;
  shown.end_time = std::chrono::system_clock::now();
  show(true);
  queue->report_to(sealed.deferred ? core_.late_seal(shown) : nullptr);
}

void LiveSession::leave() {
  queue->report_to(nullptr);
}

void LiveSession::show(bool now) {
  if (!opened || !now) {
    unshown_ = true;
    return;
  }
  unshown_ = false;
  shown_at_ = std::chrono::steady_clock::now();
  core_.observer.session_changed(shown);
}

void LiveSession::sweep(SteadyTime now) {
  if (unshown_ && now - shown_at_ >= kProgressInterval) show(true);
}

void LiveSession::commit_when_settled(SteadyTime now) {
  const bool is_settled = put_at_ + kSettleInterval < settled_at_;
  if (is_settled || now - settled_at_ < kSettleInterval) return;
  settled_at_ = now;
  queue->commit();
}

}  // namespace collect::ingest

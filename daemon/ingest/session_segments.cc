#include "daemon/ingest/session_segments.h"

#include <utility>

namespace collect::ingest {

void SessionSegments::hold(SessionReport& report) {
  SessionReport promises;
  promises.stored = std::exchange(report.stored, {});
  promises.stalls_next = std::exchange(report.stalls_next, 0);
  promises.sealed = std::exchange(report.sealed, std::nullopt);
  promises.repeated = std::exchange(report.repeated, std::nullopt);
  holds_ |=
      !promises.stored.empty() || promises.stalls_next != 0 || promises.sealed || promises.repeated;
  held_.merge(std::move(promises));
}

std::optional<milliseconds> SessionSegments::send(const std::string& name,
                                                  const std::string& directory,
                                                  const OnStored& on_stored) {
  if (is_busy() || !(holds_ || fs_.has_changes())) return std::nullopt;
  const auto due = sent_at_ + pace_;
  const auto now = std::chrono::steady_clock::now();
  if (!is_first_ && now < due) return std::chrono::ceil<milliseconds>(due - now);
  request({name, is_first_, false, fs_.take(directory)}, on_stored);
  return std::nullopt;
}

void SessionSegments::send_last(const std::string& name, const std::string& directory,
                                const OnStored& on_stored) {
  request({name, is_first_, true, fs_.take(directory)}, on_stored);
}

void SessionSegments::request(StoredChanges changes, const OnStored& on_stored) {
  is_first_ = false;
  holds_ = false;
  sent_at_ = std::chrono::steady_clock::now();
  {
    const std::lock_guard lock(shared_->mutex);
    shared_->is_busy = true;
  }
  auto held = std::make_shared<SessionReport>(std::exchange(held_, {}));
  store_.store(std::move(changes), [shared = shared_, held, on_stored] {
    {
      const std::lock_guard lock(shared->mutex);
      shared->is_busy = false;
      for (const auto& [stream, position] : held->stored) shared->durable[stream] = position;
    }
    on_stored(std::move(*held));
  });
}

bool SessionSegments::is_busy() const {
  const std::lock_guard lock(shared_->mutex);
  return shared_->is_busy;
}

std::vector<storage::StreamPosition> SessionSegments::durable() const {
  const std::lock_guard lock(shared_->mutex);
  std::vector<storage::StreamPosition> all;
  all.reserve(shared_->durable.size());
  for (const auto& [stream, position] : shared_->durable) all.push_back(position);
  return all;
}

}  // namespace collect::ingest

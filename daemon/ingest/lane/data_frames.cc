#include "daemon/ingest/lane/data_frames.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "daemon/ingest/link/limits.h"
#include "daemon/ingest/link/wire_values.h"

namespace collect::ingest {

Verdict DataFrames::take(const wire::Frame& frame, StoredSession* session) {
  session_ = session;
  switch (frame.type) {
    case wire::FrameType::kModules:
      return verdict_on(frame, *this, &DataFrames::on_modules);
    case wire::FrameType::kStreamOpen:
      return verdict_on(frame, *this, &DataFrames::on_stream_open);
    case wire::FrameType::kStreamClose:
      return verdict_on(frame, *this, &DataFrames::on_stream_close);
    case wire::FrameType::kDetailState:
      return verdict_on(frame, *this, &DataFrames::on_detail_state);
    case wire::FrameType::kStalls:
      return verdict_on(frame, *this, &DataFrames::on_stalls);
    default:
      return misplaced(frame, "data");
  }
}

Status DataFrames::store(StoredSession* session) {
  if (to_store_ && session != nullptr) COLLECT_TRY(to_store_(*session));
  to_store_ = nullptr;
  return {};
}

std::string DataFrames::fault_of(const Page& page) {
  const auto stream = streams_.find(page.stream_id);
  if (stream == streams_.end()) {
    return fmt::format("page of stream {}, which is not open", page.stream_id);
  }
  uint64_t& next = stream->second.next[static_cast<size_t>(page.lane)];
  if (page.first_seq < next) {
    return fmt::format("page of stream {} jumps back from record {} to {}", page.stream_id, next,
                       page.first_seq);
  }
  next = page.first_seq + page.record_count;
  return {};
}

void DataFrames::begin_recording(uint32_t recording) {
  recording_ = recording;
  to_store_ = nullptr;
  std::lock_guard lock(streams_mutex_);
  streams_.clear();
}

Verdict DataFrames::on_modules(const wire::Modules& modules) {
  if (recording_ == 0) return violation("modules before a recording began");
  if (Verdict bad = check_untrusted_modules(modules)) return bad;
  std::vector<storage::ModuleInfo> infos = to_storage(modules);
  modules_->add(infos);
  if (session_ != nullptr) {
    const Status charged = session_->charge_modules(infos);
    if (!charged.ok()) return over_budget(charged.error().message);
  }
  to_store_ = [infos = std::move(infos)](StoredSession& session) {
    return session.add_modules(infos);
  };
  return std::nullopt;
}

Verdict DataFrames::on_stream_open(const wire::StreamOpen& stream) {
  const uint32_t id = stream.stream_id();
  if (recording_ == 0 || stream.recording() != recording_) {
    return violation(fmt::format("stream {} of a recording that did not begin", id));
  }
  if (stream.thread_name().size() > kMaxNameBytes) return violation("a thread's name is too long");
  if (const auto known = streams_.find(id); known != streams_.end()) {
    rename_thread(known->second, stream);
    return std::nullopt;
  }
  if (streams_.size() >= most_threads_) {
    return Refusal{wire::REFUSE_LIMIT,
                   fmt::format("more than {} threads at once (threads_per_agent)", most_threads_),
                   false};
  }
  account_->count_stream_open();
  if (session_ != nullptr) {
    const Status charged = session_->charge_thread(id);
    if (!charged.ok()) return over_budget(charged.error().message);
  }
  {
    std::lock_guard lock(streams_mutex_);
    streams_[id] = {{std::nullopt, stream.thread_id(), stream.thread_name()}};
  }
  to_store_ = [info = to_storage(stream)](StoredSession& session) {
    return session.open_stream(info);
  };
  return std::nullopt;
}

// A repeat, or the thread's next name.
void DataFrames::rename_thread(OpenStream& known, const wire::StreamOpen& stream) {
  if (known.name == stream.thread_name() || known.renames == kMaxThreadRenames) return;
  ++known.renames;
  account_->count_stream_open();
  {
    std::lock_guard lock(streams_mutex_);
    known.name = stream.thread_name();
  }
  to_store_ = [info = to_storage(stream)](StoredSession& session) {
    return session.open_stream(info);
  };
}

Verdict DataFrames::on_stream_close(const wire::StreamClose& stream) {
  const uint32_t id = stream.stream_id();
  const auto known = streams_.find(id);
  if (known == streams_.end()) {
    return violation(fmt::format("close of stream {}, which is not open", id));
  }
  const auto& next = known->second.next;
  if (stream.index_count() < next[static_cast<size_t>(Lane::kIndex)] ||
      stream.detail_count() < next[static_cast<size_t>(Lane::kDetail)]) {
    return violation(fmt::format("stream {} closes with fewer records than it sent", id));
  }
  if (stream.thread_name().size() > kMaxNameBytes) return violation("a thread's name is too long");
  {
    std::lock_guard lock(streams_mutex_);
    streams_.erase(known);
  }
  to_store_ = [end = to_storage(stream)](StoredSession& session) {
    return session.close_stream(end);
  };
  return std::nullopt;
}

Verdict DataFrames::on_detail_state(const wire::DetailState& change) {
  if (recording_ == 0) return violation("a detail state before a recording began");
  to_store_ = [change = to_storage(change), mode = detail_mode(change.mode())](
                  StoredSession& session) { return session.change_detail(change, mode); };
  return std::nullopt;
}

Verdict DataFrames::on_stalls(const wire::Stalls& stalls) {
  if (recording_ == 0) return violation("stalls before a recording began");
  if (stalls.stalls_size() > static_cast<int>(wire::kMaxStallsPerFrame)) {
    return violation("more than 64 stalls in one frame");
  }
  ArrivedStalls arrived;
  arrived.next_number = stalls.first_number() + static_cast<uint64_t>(stalls.stalls_size());
  for (const wire::Stall& stall : stalls.stalls()) {
    const auto known = to_storage(stall);
    if (!known.ok()) return violation(known.error().message);
    if (*known) arrived.stalls.push_back({stall.stream_id(), **known});
  }
  to_store_ = [arrived = std::move(arrived)](StoredSession& session) {
    return session.add_stalls(arrived);
  };
  return std::nullopt;
}

std::vector<storage::ThreadIdentity> DataFrames::threads() const {
  std::vector<storage::ThreadIdentity> all;
  {
    std::lock_guard lock(streams_mutex_);
    all.reserve(streams_.size());
    for (const auto& [id, thread] : streams_) all.push_back(thread);
  }
  std::sort(all.begin(), all.end(),
            [](const auto& a, const auto& b) { return a.thread_id < b.thread_id; });
  return all;
}

}  // namespace collect::ingest

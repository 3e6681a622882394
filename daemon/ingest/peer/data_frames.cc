#include "daemon/ingest/peer/data_frames.h"

#include <algorithm>
#include <utility>

#include "daemon/ingest/link/limits.h"
#include "daemon/ingest/link/wire_values.h"

namespace collect::ingest {

void DataFrames::restart(std::shared_ptr<AgentDecoder> decoder) {
  decoder_ = std::move(decoder);
  streams_.clear();
  streams_opened_ = 0;
  recordings_.take_in(0);
}

Verdict DataFrames::take(const wire::Frame& frame) {
  switch (frame.type) {
    case wire::FrameType::kRecordingStart:
      return verdict_on(frame, *this, &DataFrames::on_recording_start);
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
    case wire::FrameType::kRecordingEnd:
      return verdict_on(frame, *this, &DataFrames::on_recording_end);
    default:
      return misplaced(frame, "data");
  }
}

void DataFrames::store(SessionQueue::Act act) {
  if (AgentSession* session = recordings_.storing()) session->store(std::move(act));
}

void DataFrames::close_all_streams() {
  streams_.clear();
  decoder_->close_all_streams();
}

Verdict DataFrames::on_recording_start(const wire::RecordingStart& start) {
  const uint32_t recording = start.recording();
  if (recording == 0) return violation("a recording is numbered from 1");
  if (start.atf_version() != profile_.hello().atf_version()) {
    return violation("the recording's ATF version is not that of the hello");
  }
  if (recordings_.incoming() == recording) return std::nullopt;  // a repeat
  close_all_streams();
  recordings_.take_in(recording);
  if (recordings_.is_finished(recording)) {
    recordings_.ack_ended(recording);
    return std::nullopt;
  }
  if (recordings_.storing() != nullptr) return std::nullopt;  // it is resumed
  Verdict begun = recordings_.begin(start);
  if (!begun) modules_.begin_recording();
  return begun;
}

Verdict DataFrames::on_modules(const wire::Modules& modules) {
  if (recordings_.incoming() == 0) return violation("modules before a recording began");
  if (Verdict bad = check_untrusted_modules(modules)) return bad;
  std::vector<storage::ModuleInfo> infos = to_storage(modules);
  modules_.add(infos);
  if (AgentSession* session = recordings_.storing()) {
    const Status charged = session->charge_modules(infos);
    if (!charged.ok()) return over_budget(charged.error().message);
  }
  store([infos = std::move(infos)](StoredSession& session) {
    if (IngestObserver* const observer = session.dependencies().observer) {
      observer->modules_loaded(infos);
    }
    return session.writer().add_modules(infos);
  });
  return std::nullopt;
}

Verdict DataFrames::on_stream_open(const wire::StreamOpen& stream) {
  const uint32_t id = stream.stream_id();
  if (recordings_.incoming() == 0 || stream.recording() != recordings_.incoming()) {
    return violation("stream " + std::to_string(id) + " of a recording that did not begin");
  }
  if (stream.thread_name().size() > kMaxNameBytes) return violation("a thread's name is too long");
  if (const auto known = streams_.find(id); known != streams_.end()) {
    rename_thread(known->second, stream);
    return std::nullopt;
  }
  if (streams_.size() >= options_.threads_per_agent) {
    return Refusal{wire::REFUSE_LIMIT,
                   "more than " + std::to_string(options_.threads_per_agent) +
                       " threads at once (threads_per_agent)",
                   false};
  }
  profile_.account()->count_stream_open();
  if (AgentSession* session = recordings_.storing()) {
    const Status charged = session->charge_streams(++streams_opened_);
    if (!charged.ok()) return over_budget(charged.error().message);
  }
  streams_[id] = {{std::nullopt, stream.thread_id(), stream.thread_name()}, 0};
  decoder_->open_stream(id);
  store([info = to_storage(stream)](StoredSession& session) {
    return session.writer().open_stream(info);
  });
  return std::nullopt;
}

// A repeat, or the thread's next name.
void DataFrames::rename_thread(OpenStream& known, const wire::StreamOpen& stream) {
  if (known.name == stream.thread_name() || known.renames == kMaxThreadRenames) return;
  ++known.renames;
  profile_.account()->count_stream_open();
  known.name = stream.thread_name();
  store([info = to_storage(stream)](StoredSession& session) {
    return session.writer().open_stream(info);
  });
}

Verdict DataFrames::on_stream_close(const wire::StreamClose& stream) {
  const uint32_t id = stream.stream_id();
  const auto known = streams_.find(id);
  if (known == streams_.end()) {
    return violation("close of stream " + std::to_string(id) + ", which is not open");
  }
  if (stream.index_count() < decoder_->next_seq(id, Lane::kIndex) ||
      stream.detail_count() < decoder_->next_seq(id, Lane::kDetail)) {
    return violation("stream " + std::to_string(id) + " closes with fewer records than it sent");
  }
  if (stream.thread_name().size() > kMaxNameBytes) return violation("a thread's name is too long");
  streams_.erase(known);
  decoder_->close_stream(id);
  store([end = to_storage(stream)](StoredSession& session) { return session.close_stream(end); });
  return std::nullopt;
}

Verdict DataFrames::on_detail_state(const wire::DetailState& change) {
  if (recordings_.incoming() == 0) return violation("a detail state before a recording began");
  profile_.set_detail(detail_mode(change.mode()));
  if (AgentSession* session = recordings_.current()) {
    session->show_detail(profile_.shown().detail);
  }
  profile_.show();
  store([change = to_storage(change)](StoredSession& session) {
    return session.change_detail(change);
  });
  return std::nullopt;
}

Verdict DataFrames::on_stalls(const wire::Stalls& stalls) {
  if (recordings_.incoming() == 0) return violation("stalls before a recording began");
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
  store([arrived = std::move(arrived)](StoredSession& session) {
    return session.add_stalls(arrived);
  });
  return std::nullopt;
}

Verdict DataFrames::on_recording_end(const wire::RecordingEnd& end) {
  if (recordings_.incoming() == 0 || end.recording() != recordings_.incoming()) {
    return violation("the end of a recording that did not begin");
  }
  if (recordings_.storing() != nullptr) {
    recordings_.end(end);
  } else {
    recordings_.ack_ended(end.recording());
  }
  recordings_.take_in(0);
  close_all_streams();
  return std::nullopt;
}

std::vector<storage::ThreadIdentity> DataFrames::threads() const {
  std::vector<storage::ThreadIdentity> all;
  all.reserve(streams_.size());
  for (const auto& [id, thread] : streams_) all.push_back(thread);
  std::sort(all.begin(), all.end(),
            [](const auto& a, const auto& b) { return a.thread_id < b.thread_id; });
  return all;
}

}  // namespace collect::ingest

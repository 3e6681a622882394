#include "storage/convert/session_builder.h"

#include <algorithm>

#include "formats/atf/writer.h"
#include "formats/core/crc32.h"
#include "storage/manifest/manifest.h"

namespace collect::convert {
namespace {

constexpr size_t kPageEvents = 2048;
constexpr size_t kPageDetailBytes = 256 << 10;

}  // namespace

// The wall clock of the recording, so that the session is named after it.
class SessionBuilder::BuildClock final : public storage::Clock {
 public:
  uint64_t unix_ns() override {
    return recorded_unix_ns != 0 ? recorded_unix_ns : storage::system_clock().unix_ns();
  }
  uint64_t monotonic_ns() override { return storage::system_clock().monotonic_ns(); }
  uint64_t recorded_unix_ns = 0;
};

struct SessionBuilder::Thread {
  uint32_t stream_id = 0;
  uint32_t thread_id = 0;
  uint64_t end_ns = 0;  // 0: that of its last event
  uint64_t last_ns = 0;
  uint32_t depth = 0;
  bool has_ended = false;
  // What is not flushed yet, and how much was before.
  struct Pending {
    std::vector<uint8_t> bytes;
    uint64_t first_seq = 0;
    uint32_t count = 0;
    uint64_t lost_total = 0;
    uint32_t lost_reasons = 0;
    uint64_t lost_first_ns = 0;
    uint64_t lost_last_ns = 0;
  };
  Pending lanes[2];

  Pending& lane(Lane which) { return lanes[static_cast<size_t>(which)]; }
};

SessionBuilder::SessionBuilder(storage::PosixFs files, atf::Version version)
    : fs_(std::move(files)), version_(version), clock_(std::make_unique<BuildClock>()) {}

SessionBuilder::~SessionBuilder() = default;

Status SessionBuilder::begin(const BuiltProcess& process) {
  storage::SessionIdentity identity;
  identity.pid = process.pid;
  identity.process_name = process.name;
  identity.executable = process.executable;
  identity.arch = process.arch;
  identity.os = process.os;
  identity.clock = process.clock;
  identity.version = version_;
  identity.start_ns = process.start_ns;
  identity.start_unix_ns = process.start_unix_ns;
  clock_->recorded_unix_ns = process.start_unix_ns;
  storage::SessionOptions options;
  options.root = fs_.root();
  options.symbolize = false;
  options.clock = clock_.get();
  auto created = storage::Session::create(fs_, options, identity);
  if (!created.ok()) return created.error();
  writer_ = std::move(*created);
  return {};
}

Result<uint32_t> SessionBuilder::add_thread(uint32_t thread_id, std::string_view name,
                                            uint64_t start_ns, uint64_t end_ns) {
  const auto position = static_cast<uint32_t>(threads_.size());
  auto thread = std::make_unique<Thread>();
  thread->stream_id = position + 1;
  thread->thread_id = thread_id;
  thread->end_ns = end_ns;
  const Status opened =
      writer_->open_stream({thread->stream_id, thread_id, std::string(name), start_ns});
  if (!opened.ok()) return opened.error();
  threads_.push_back(std::move(thread));
  return position;
}

uint64_t SessionBuilder::function_of(std::string_view name) {
  const auto [known, fresh] = ids_.try_emplace(std::string(name), ids_.size() + 1);
  if (fresh) symbols_.push_back({known->second, known->first});
  return known->second;
}

void SessionBuilder::put_index_event(Thread& thread, uint64_t ns, uint64_t function_id,
                                     atf::EventKind kind, bool has_detail) {
  Thread::Pending& index = thread.lane(Lane::kIndex);
  const Thread::Pending& detail = thread.lane(Lane::kDetail);
  atf::IndexEvent event;
  event.timestamp_ns = ns;
  event.function_id = function_id;
  event.kind = kind;
  event.thread_id = thread.thread_id;
  event.call_depth = kind == atf::EventKind::kCall ? ++thread.depth
                     : thread.depth == 0           ? 0
                                                   : thread.depth--;
  if (has_detail) event.detail_seq = detail.first_seq + detail.count;
  const size_t at = index.bytes.size();
  index.bytes.resize(at + atf::kEventBytes);
  atf::encode_index_event(version_, event,
                          std::span<uint8_t, atf::kEventBytes>(&index.bytes[at], atf::kEventBytes));
  ++index.count;
}

Status SessionBuilder::event(uint32_t position, uint64_t ns, uint64_t function_id,
                             atf::EventKind kind, Bytes payload, uint16_t detail_flags) {
  Thread& thread = *threads_[position];
  if (ns < thread.last_ns) {
    ++moved_times_;
    ns = thread.last_ns;
  }
  thread.last_ns = ns;
  ++events_;
  Thread::Pending& index = thread.lane(Lane::kIndex);
  const uint64_t seq = index.first_seq + index.count;
  const bool has_detail = !payload.empty();
  put_index_event(thread, ns, function_id, kind, has_detail);
  if (has_detail) {
    Thread::Pending& detail = thread.lane(Lane::kDetail);
    atf::DetailRecord record;
    record.type = kind == atf::EventKind::kCall ? atf::DetailType::kFunctionCall
                                                : atf::DetailType::kFunctionReturn;
    record.flags = detail_flags;
    record.index_seq = seq;
    record.thread_id = thread.thread_id;
    record.timestamp_ns = ns;
    record.payload = payload;
    const size_t at = detail.bytes.size();
    detail.bytes.resize(at + atf::kDetailHeaderBytes + payload.size());
    const size_t written =
        atf::encode_detail_record(version_, record, MutableBytes(detail.bytes).subspan(at));
    COLLECT_CHECK(written == detail.bytes.size() - at);
    ++detail.count;
  }
  const bool full =
      index.count == kPageEvents || thread.lane(Lane::kDetail).bytes.size() >= kPageDetailBytes;
  return full ? flush(thread) : Status();
}

void SessionBuilder::lost(uint32_t position, Lane which, uint64_t count, uint32_t reasons,
                          uint64_t first_ns, uint64_t last_ns) {
  Thread& thread = *threads_[position];
  // A loss is before the first record of a page: what came before it goes out first. An error
  // of the disk will be said by the next event, or by finish().
  (void)flush(thread);
  Thread::Pending& lane = thread.lane(which);
  if (lane.lost_reasons == 0) lane.lost_first_ns = first_ns;
  lane.lost_total += count;
  lane.lost_reasons |= reasons;
  lane.lost_last_ns = last_ns;
}

Status SessionBuilder::flush(Thread& thread) {
  for (const Lane which : {Lane::kIndex, Lane::kDetail}) {
    Thread::Pending& lane = thread.lane(which);
    if (lane.count == 0 && lane.lost_reasons == 0) continue;
    Page page;
    page.stream_id = thread.stream_id;
    page.lane = which;
    page.first_seq = lane.first_seq;
    page.record_count = lane.count;
    page.bytes_crc32c = crc32c(lane.bytes);
    page.lost_reasons = lane.lost_reasons;
    page.lost_total = lane.lost_total;
    page.lost_first_ns = lane.lost_first_ns;
    page.lost_last_ns = lane.lost_last_ns;
    page.bytes = lane.bytes;  // its times are for containers, of which this session has none
    COLLECT_TRY(writer_->append_pages({&page, 1}));
    lane.first_seq += lane.count;
    lane.count = 0;
    lane.bytes.clear();
    lane.lost_reasons = 0;
  }
  return {};
}

Status SessionBuilder::marker(uint64_t ns, std::string text) {
  storage::bound_text(text);
  auto key = std::make_pair(ns, std::move(text));
  if (markers_.contains(key)) {
    ++repeated_markers_;
    return {};
  }
  if (markers_.size() == storage::kMaxMarkers) {
    ++more_markers_;
    return {};
  }
  const auto& [at_ns, kept] = *markers_.insert(std::move(key)).first;
  return writer_->marker({at_ns, kept});
}

Status SessionBuilder::end_thread(Thread& thread) {
  if (thread.has_ended) return {};
  thread.has_ended = true;
  COLLECT_TRY(flush(thread));
  storage::StreamEnd end;
  end.stream_id = thread.stream_id;
  end.end_ns = thread.end_ns != 0 ? thread.end_ns : thread.last_ns;
  end.index_count = thread.lane(Lane::kIndex).first_seq;
  end.index_lost = thread.lane(Lane::kIndex).lost_total;
  end.detail_count = thread.lane(Lane::kDetail).first_seq;
  end.detail_lost = thread.lane(Lane::kDetail).lost_total;
  for (Thread::Pending& lane : thread.lanes) lane.bytes = {};
  return writer_->close_stream(end);
}

Status SessionBuilder::end_thread(uint32_t thread) {
  return end_thread(*threads_[thread]);
}

Result<std::string> SessionBuilder::finish(bool whole, std::string reason) {
  using storage::SessionState;
  SessionState state = was_;
  if (state == SessionState::kComplete && !whole) state = SessionState::kRecovered;
  if (was_ != SessionState::kComplete) {
    reason += "; the session in it was " + std::string(storage::session_state_name(was_));
  }
  return finish(state, reason);
}

Result<std::string> SessionBuilder::finish(storage::SessionState state, const std::string& reason) {
  COLLECT_TRY(writer_->add_modules(modules_));
  for (const auto& thread : threads_) {
    COLLECT_TRY(end_thread(*thread));
  }
  std::sort(symbols_.begin(), symbols_.end(),
            [](const auto& a, const auto& b) { return a.function_id < b.function_id; });
  writer_->adopt_symbols(std::move(symbols_), {}, storage::SymbolsState::kNone);
  COLLECT_TRY(writer_->seal(state, reason));
  return writer_->directory();
}

}  // namespace collect::convert

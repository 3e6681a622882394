#include "daemon/ingest/session/stored_session.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "storage/manifest/manifest.h"
#include "storage/model/seal_reason.h"
#include "storage/model/session_layout.h"
#include "storage/session/space_guard.h"

namespace collect::ingest {
namespace {

// Above what is to stay free, so that a session that begins can also store something.
constexpr uint64_t kRoomToBegin = 1u << 20;

}  // namespace

bool is_storage_fault(Code code) {
  switch (code) {
    case Code::kNoSpace:
    case Code::kExhausted:
    case Code::kIo:
    case Code::kPermission:
    case Code::kAlreadyExists:
    case Code::kNotFound:  // the root was moved or removed
    case Code::kUnavailable:
      return true;
    default:
      return false;
  }
}

void SessionReport::merge(SessionReport later) {
  if (later.opened) opened = std::move(later.opened);
  progress |= later.progress;
  if (later.detail) detail = later.detail;
  if (later.repeated) repeated = std::move(later.repeated);
  for (const auto& [stream, position] : later.stored) stored[stream] = position;
  stalls_next = std::max(stalls_next, later.stalls_next);
  for (auto& answer : later.positions) positions.push_back(std::move(answer));
  totals = later.totals;
  hot.insert(hot.end(), later.hot.begin(), later.hot.end());
  if (later.failed) failed = std::move(later.failed);
  if (later.sealed) sealed = std::move(later.sealed);
  suspended |= later.suspended;
}

StoredSession::StoredSession(const Dependencies& dependencies,
                             std::shared_ptr<principal::Account> account)
    : dependencies_(dependencies), charges_(std::move(account)), options_(*dependencies.options) {
  options_.budget = &charges_;
}

// ---- begin

Status StoredSession::check_room() const {
  storage::SpaceGuard guard(*dependencies_.fs, options_.root,
                            {0, options_.keep_free_bytes, options_.keep_free_files});
  COLLECT_TRY(guard.admit(0, kRoomToBegin));
  return guard.admit_files(storage::kFilesPerSession);
}

Status StoredSession::open(const storage::SessionIdentity& identity,
                           const std::optional<storage::ResumeKey>& key) {
  COLLECT_TRY(check_room());
  const CompletedSessions::Answer earlier =
      dependencies_.completed->find(identity.process_id, identity.recording, identity.pid);
  if (!earlier.is_known) {
    return Error{Code::kExhausted, "the old sessions of this process id are not all listed yet"};
  }
  if (earlier.session_path && dependencies_.fs->exists(earlier.session_path->directory)) {
    failed_ = true;
    report_.repeated = earlier.session_path->name;
    return {};
  }
  auto created = storage::Session::create(*dependencies_.fs, options_, identity, key);
  if (!created.ok()) return created.error();
  writer_ = std::move(created).value();
  name_ = writer_->name();
  directory_ = writer_->directory();
  opened();
  return {};
}

void StoredSession::opened() {
  report_.opened = SessionReport::Opened{writer_->name(), writer_->directory()};
  const storage::SessionIdentity& identity = writer_->identity();
  if (identity.max_rate == 0) return;
  principal::Lease memory = charges_.memory();
  if (const Status room = memory.grow(RateWatch::kMaxBytes); !room.ok()) {
    spdlog::warn("{}: no function is switched off: {}", writer_->name(), to_string(room.error()));
    return;
  }
  rate_memory_ = std::move(memory);
  rate_watch_.emplace(identity.version, identity.max_rate);
}

Status StoredSession::resume(const std::string& directory) {
  directory_ = directory;
  const std::filesystem::path path = directory;
  name_ = fmt::format("{}/{}", path.parent_path().filename().string(), path.filename().string());
  auto resumed = storage::Session::resume(*dependencies_.fs, options_, directory);
  if (!resumed.ok() && resumed.code() == Code::kExhausted) return resumed.error();
  if (!resumed.ok()) {
    recover_directory_ = directory;
    must_seal_ = {storage::SessionState::kRecovered, storage::seal_reason(resumed.error())};
    return {};
  }
  writer_ = std::move(resumed).value();
  counted_ = writer_->totals();  // those were counted by the collector that stored them
  charges_.hold_threads(counted_.threads);
  opened();
  return {};
}

// ---- what is stored

// A manifest that comes before the next page, or the next ack, and that would be written too soon.
bool StoredSession::must_wait_for_manifest() {
  const uint64_t wait_ns = writer_ && !failed_ ? writer_->manifest_wait_ns() : 0;
  if (wait_ns == 0) return false;
  const auto wait = std::chrono::ceil<milliseconds>(std::chrono::nanoseconds(wait_ns));
  manifest_wait_ = std::min(wait, kMaxManifestPause);
  return true;
}

// As far as there is room for what has to be decoded, the pages are one call.
Status StoredSession::store(std::span<const Page> sent, PageUnpacker& unpacker) {
  if (must_wait_for_manifest()) return Error{Code::kExhausted, "a manifest would come too soon"};
  unpacker.clear();
  run_of_pages_.clear();
  for (const Page& next : sent) {
    if (!unpacker.has_room(next)) {
      COLLECT_TRY(store_run());
      unpacker.clear();
    }
    auto page = unpacker.unpack(next);
    if (!page.ok()) {
      COLLECT_TRY(store_run());  // what came before it is good
      return page.error();
    }
    run_of_pages_.push_back(*page);
  }
  return store_run();
}

Status StoredSession::store_run() {
  if (run_of_pages_.empty()) return {};
  next_before_run_.clear();
  for (const Page& page : run_of_pages_) {
    next_before_run_.push_back(rate_watch_ ? writer_->position(page.stream_id).index_next : 0);
  }
  COLLECT_TRY(writer_->append_pages(run_of_pages_));
  uint64_t decoded = 0;
  for (size_t at = 0; at < run_of_pages_.size(); ++at) {
    const Page& page = run_of_pages_[at];
    touched_.insert(page.stream_id);
    if (watch_ && page.lane == Lane::kIndex) watch_->look_at(page);
    if (rate_watch_ && page.lane == Lane::kIndex) {
      rate_watch_->look_at(page,
                           next_before_run_[at] - std::min(next_before_run_[at], page.first_seq));
    }
    if (page.encoded_by != Codec::kRaw) ++decoded;
    uncommitted_bytes_ += page.bytes.size();
  }
  report_.progress = true;
  dependencies_.counters->pages_stored.fetch_add(run_of_pages_.size(), std::memory_order_relaxed);
  dependencies_.counters->pages_decoded.fetch_add(decoded, std::memory_order_relaxed);
  run_of_pages_.clear();
  return {};
}

Status StoredSession::store_passthrough(storage::PassthroughKind kind,
                                        std::span<const Bytes> parts) {
  report_.progress = true;
  return writer_->append_passthrough(kind, parts);
}

Status StoredSession::add_modules(const std::vector<storage::ModuleInfo>& modules) {
  report_.progress = true;
  if (dependencies_.observer != nullptr) dependencies_.observer->modules_loaded(modules);
  return writer_->add_modules(modules);
}

Status StoredSession::open_stream(const storage::StreamInfo& stream) {
  report_.progress = true;
  return writer_->open_stream(stream);
}

// Records that were numbered and never came are lost for good: the stream's last word counts them.
// A repeated close is answered as the first one: that answer may have been lost with the link.
Status StoredSession::close_stream(const storage::StreamEnd& end) {
  report_.progress = true;
  if (!writer_->position(end.stream_id).closed) COLLECT_TRY(writer_->close_stream(end));
  touched_.insert(end.stream_id);
  return {};
}

Status StoredSession::add_stalls(const ArrivedStalls& arrived) {
  report_.progress = true;
  COLLECT_TRY(writer_->add_stalls(arrived.stalls));
  if (watch_) watch_->look_at(arrived.stalls);
  stalls_next_ = std::max(stalls_next_, arrived.next_number);
  return {};
}

// A repeat comes after a reconnect.
Status StoredSession::change_detail(const storage::DetailStateChange& change, DetailMode mode) {
  report_.progress = true;
  report_.detail = mode;
  if (change.at_ns <= last_detail_change_ns_) return {};
  last_detail_change_ns_ = change.at_ns;
  return writer_->detail_state(change);
}

void StoredSession::watch(const EventsWanted& wanted) {
  watch_.reset();
  if (wanted.events.empty()) return;
  watch_.emplace(writer_->identity().version, wanted.events, wanted.on_seen);
}

// ---- the end of a round

Status StoredSession::commit() {
  if (must_wait_for_manifest()) return Error{Code::kExhausted, "a manifest would come too soon"};
  if (writer_ && !must_seal_) {
    const Status committed = writer_->commit();
    if (!committed.ok() && committed.code() == Code::kExhausted) return committed;
    if (!committed.ok()) fail(committed.error());
  }
  committed_at_ = std::chrono::steady_clock::now();
  uncommitted_bytes_ = 0;
  if (writer_) count_totals();
  if (must_seal_) {  // nothing may be acknowledged that may not be there
    touched_.clear();
    stalls_next_ = 0;
    tickets_.clear();
  }
  for (const uint32_t stream : touched_) report_.stored[stream] = writer_->position(stream);
  touched_.clear();
  report_.stalls_next = std::exchange(stalls_next_, 0);
  answer_tickets();
  return {};
}

bool StoredSession::take_put_off() {
  const bool is_early = uncommitted_bytes_ < kMaxUncommittedBytes &&
                        std::chrono::steady_clock::now() - committed_at_ < kMaxCommitDelay;
  return std::exchange(put_off_, false) && is_early && tickets_.empty() && !failed_;
}

void StoredSession::answer_tickets() {
  if (writer_ == nullptr && !failed_) return;  // not opened yet: that waits for something
  for (const uint64_t ticket : tickets_) {
    report_.positions.emplace_back(
        ticket, writer_ ? writer_->positions() : std::vector<storage::StreamPosition>());
  }
  tickets_.clear();
}

void StoredSession::count_totals() {
  const storage::SessionTotals totals = writer_->totals();
  IngestCounters& counters = *dependencies_.counters;
  const auto grow = [](std::atomic<uint64_t>& counter, uint64_t now, uint64_t before) {
    if (now > before) counter.fetch_add(now - before, std::memory_order_relaxed);
  };
  grow(counters.bytes_stored, totals.stored_bytes, counted_.stored_bytes);
  grow(counters.events_stored, totals.events, counted_.events);
  grow(counters.events_lost, totals.lost_events, counted_.lost_events);
  grow(counters.detail_records_stored, totals.detail_records, counted_.detail_records);
  counted_ = totals;
}

void StoredSession::fail(const Error& error) {
  if (!failed_) report_.failed = error;
  if (is_storage_fault(error.code) || !writer_ || writer_->failed()) {
    must_seal_ = {storage::SessionState::kFailed, storage::seal_reason(error)};
  } else if (!failed_) {
    const Status noted = writer_->note("the agent's data was refused: " + to_string(error));
    if (!noted.ok())
      must_seal_ = {storage::SessionState::kFailed, storage::seal_reason(noted.error())};
  }
  failed_ = true;
}

// What was acknowledged is in the files already. So a disk that takes no more leaves what kill -9
// leaves, and the session can be resumed all the same.
Status StoredSession::suspend(const std::string& why) {
  const Status done = writer_->suspend(why);
  if (!done.ok() && done.code() == Code::kExhausted) return done;
  if (!done.ok()) spdlog::warn("{}: {}", writer_->name(), to_string(done.error()));
  count_totals();
  close();
  report_.suspended = true;
  return {};
}

void StoredSession::count_held() {
  if (!manifest_wait_) {
    dependencies_.counters->writes_held.fetch_add(1, std::memory_order_relaxed);
  }
}

milliseconds StoredSession::take_wait() {
  return std::exchange(manifest_wait_, std::nullopt).value_or(kExhaustedPause);
}

void StoredSession::close() {
  rate_watch_.reset();
  rate_memory_.set(0);
  writer_.reset();
  charges_.hold_open_files(0);
  charges_.release();
}

SessionReport StoredSession::take_report() {
  report_.totals = counted_;
  if (rate_watch_) report_.hot = rate_watch_->take();
  return std::exchange(report_, {});
}

}  // namespace collect::ingest

#include "daemon/ingest/session_pipe.h"

#include <algorithm>
#include <asio/post.hpp>

#include "daemon/ingest/limits.h"
#include "daemon/ingest/page_unpacker.h"
#include "daemon/ingest/writer_pool.h"
#include "storage/manifest.h"
#include "storage/session_layout.h"
#include "storage/space_guard.h"

namespace collect::ingest {
namespace {

// Above what is to stay free, so that a session that begins can also store something.
constexpr uint64_t kRoomToBegin = 1u << 20;

// What the item holds up in memory, roughly; the same before and after it was handled.
size_t bytes_of(const SessionItem& item) {
  if (const auto* batch = std::get_if<PageBatch>(&item)) return batch->bytes;
  if (const auto* chunk = std::get_if<ForeignChunk>(&item)) {
    return sizeof(SessionItem) + chunk->front.size() + chunk->bytes.size();
  }
  if (const auto* modules = std::get_if<std::vector<storage::ModuleInfo>>(&item)) {
    return modules->size() * (sizeof(storage::ModuleInfo) + kMaxPathBytes);
  }
  return sizeof(SessionItem) + kMaxNameBytes;
}

// The name of the complete session of the same recording. An agent repeats a recording when the
// link broke, and this collector ended, between the seal and the agent's hearing of it.
std::optional<std::string> find_complete(storage::Fs& fs, const std::string& root,
                                         const storage::SessionIdentity& identity) {
  if (identity.recording == 0) return std::nullopt;  // no agent's: nobody repeats it
  auto places = storage::list_sessions(fs, root);
  if (!places.ok()) return std::nullopt;
  size_t looked_at = 0;
  for (auto place = places->rbegin(); place != places->rend(); ++place) {
    if (++looked_at > kRecentSessions) break;
    if (place->pid != identity.pid) continue;
    const auto manifest = storage::read_manifest(fs, place->directory);
    if (manifest.ok() && manifest->state == storage::SessionState::kComplete &&
        manifest->identity.process_id == identity.process_id &&
        manifest->identity.recording == identity.recording) {
      return place->name;
    }
  }
  return std::nullopt;
}

}  // namespace

bool is_storage_fault(Code code) {
  switch (code) {
    case Code::kNoSpace:
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

SessionPipe::SessionPipe(const World& world, asio::any_io_executor io, OnReport on_report)
    : world_(world),
      io_(std::move(io)),
      writer_index_(world.writers->assign()),
      on_report_(std::move(on_report)) {}

// ---- io thread

void SessionPipe::push(SessionItem item) {
  bool schedule = false;
  {
    std::lock_guard lock(mutex_);
    queued_bytes_ += bytes_of(item);
    queue_.push_back(std::move(item));
    schedule = !scheduled_;
    scheduled_ = true;
  }
  if (schedule) world_.writers->schedule(writer_index_, shared_from_this());
}

bool SessionPipe::full() {
  std::lock_guard lock(mutex_);
  was_full_ = queued_bytes_ >= world_.queue_bytes || queue_.size() >= kMaxQueuedItems;
  return was_full_;
}

void SessionPipe::deliver() {
  SessionReport report;
  {
    std::lock_guard lock(mutex_);
    report_on_its_way_ = false;
    std::swap(report, report_);
  }
  const OnReport on_report = on_report_;
  if (on_report) on_report(std::move(report));
}

// ---- writer thread

void SessionPipe::run() {
  std::vector<SessionItem> items;
  {
    std::lock_guard lock(mutex_);
    items.swap(queue_);
    scheduled_ = false;
  }
  handle(items);
  size_t bytes = 0;
  for (const SessionItem& item : items) bytes += bytes_of(item);
  items.clear();  // buffers go back before the reader is told that there is room
  bool send = false;
  {
    // Not through news_: that may be the sealing thread's by now.
    std::lock_guard lock(mutex_);
    queued_bytes_ -= bytes;
    if (was_full_ && queued_bytes_ <= world_.queue_bytes / 2) {
      was_full_ = false;
      report_.drained = true;
      send = !report_on_its_way_;
      report_on_its_way_ = true;
    }
  }
  if (send) send_report();
}

void SessionPipe::handle(const std::vector<SessionItem>& items) {
  std::vector<uint64_t> tickets;
  const SessionSeal* seal = nullptr;
  size_t at = 0;
  while (at < items.size() && !sealing_ && seal == nullptr) {
    if (const auto* wanted = std::get_if<PositionsWanted>(&items[at])) {
      tickets.push_back(wanted->ticket);
      ++at;
      continue;
    }
    if (const auto* order = std::get_if<SessionOrder>(&items[at])) {
      carry_out(*order);
      ++at;
      continue;
    }
    seal = std::get_if<SessionSeal>(&items[at]);
    size_t end = at + 1;
    Status stored;
    if (std::holds_alternative<PageBatch>(items[at])) {
      while (end < items.size() && std::holds_alternative<PageBatch>(items[end])) ++end;
      if (!failed_) stored = store_pages(items, at, end);
    } else if (seal == nullptr && !failed_) {
      stored = store(items[at]);
    }
    if (!stored.ok()) fail(stored.error());
    at = end;
  }
  for (; at < items.size(); ++at) {
    if (const auto* order = std::get_if<SessionOrder>(&items[at])) {
      answers_.emplace_back(order->done, Error{Code::kUnavailable, "the session is being sealed"});
    }
  }
  finish_round(tickets);
  answer_orders();
  if (seal == nullptr || sealing_) return;
  SessionSeal last = *seal;
  if (failed_ && last.state == storage::SessionState::kComplete) {
    last = {storage::SessionState::kRecovered, "the agent's data was refused"};
  }
  begin_seal(std::move(last));
}

void SessionPipe::carry_out(const SessionOrder& order) {
  if (writer_ && !failed_) {
    answers_.emplace_back(order.done, order.act(*writer_));
  } else {
    answers_.emplace_back(order.done, Error{Code::kUnavailable, "nothing more is stored"});
  }
}

void SessionPipe::answer_orders() {
  if (answers_.empty()) return;
  asio::post(io_, [answers = std::move(answers_)] {
    for (const auto& [done, result] : answers) done(result);
  });
  answers_.clear();
}

// Neighbouring batches become one call, so that a writer that fell behind writes in larger pieces;
// as far as there is room for what has to be decoded.
Status SessionPipe::store_pages(const std::vector<SessionItem>& items, size_t first, size_t end) {
  PageUnpacker& unpacker = world_.writers->unpacker(writer_index_);
  unpacker.clear();
  run_of_pages_.clear();
  for (size_t at = first; at < end; ++at) {
    for (const ArrivedPage& arrived : std::get<PageBatch>(items[at]).pages) {
      if (!unpacker.has_room(arrived)) {
        COLLECT_TRY(store_run());
        unpacker.clear();
      }
      auto page = unpacker.unpack(arrived);
      if (!page.ok()) {
        COLLECT_TRY(store_run());  // what came before it is good
        return page.error();
      }
      run_of_pages_.push_back(*page);
      if (arrived.codec != wire::Codec::kRaw) {
        world_.counters->pages_decoded.fetch_add(1, std::memory_order_relaxed);
      }
    }
  }
  return store_run();
}

Status SessionPipe::store_run() {
  if (run_of_pages_.empty()) return {};
  COLLECT_TRY(writer_->append_pages(run_of_pages_));
  for (const storage::Page& page : run_of_pages_) {
    storage::StreamPosition& position = position_of(page.stream_id);
    uint64_t& next =
        page.lane == storage::Lane::kIndex ? position.index_next : position.detail_next;
    next = std::max(next, page.first_seq + page.record_count);
  }
  world_.counters->pages_stored.fetch_add(run_of_pages_.size(), std::memory_order_relaxed);
  run_of_pages_.clear();
  return {};
}

Status SessionPipe::store(const SessionItem& item) {
  if (const auto* start = std::get_if<SessionOpen>(&item)) return open(*start);
  if (const auto* old = std::get_if<SessionResume>(&item)) return resume(*old);
  COLLECT_CHECK(writer_ != nullptr);
  if (const auto* modules = std::get_if<std::vector<storage::ModuleInfo>>(&item)) {
    return writer_->add_modules(*modules);
  }
  if (const auto* chunk = std::get_if<ForeignChunk>(&item)) {
    const Bytes parts[] = {chunk->front, chunk->bytes};
    return writer_->append_foreign(chunk->kind, parts);
  }
  if (const auto* end = std::get_if<ForeignEnd>(&item)) {
    return writer_->end_foreign(end->kind, end->refused_bytes, end->problem);
  }
  if (const auto* stream = std::get_if<storage::StreamInfo>(&item)) {
    return writer_->open_stream(*stream);
  }
  if (const auto* stream = std::get_if<storage::StreamEnd>(&item)) return close_stream(*stream);
  if (const auto* change = std::get_if<storage::DetailStateChange>(&item)) {
    if (change->at_ns <= last_detail_change_ns_) return {};  // a repeat after a reconnect
    last_detail_change_ns_ = change->at_ns;
    return writer_->detail_state(*change);
  }
  if (const auto* filter = std::get_if<storage::FunctionFilter>(&item)) {
    return writer_->function_filter(*filter);
  }
  if (const auto* sync = std::get_if<storage::ClockSync>(&item)) return writer_->clock_sync(*sync);
  if (const auto* note = std::get_if<SessionNote>(&item)) return writer_->note(note->text);
  if (const auto* lost = std::get_if<LostWithoutStream>(&item)) {
    writer_->set_lost_without_stream(lost->count);
  }
  if (const auto* end = std::get_if<storage::ProcessEnd>(&item)) writer_->set_process_end(*end);
  return {};
}

Status SessionPipe::open(const SessionOpen& item) {
  const std::string& root = world_.options->root;
  storage::SpaceGuard guard(*world_.fs, root, 0, world_.options->keep_free_bytes);
  COLLECT_TRY(guard.admit(0, kRoomToBegin));
  if (auto earlier = find_complete(*world_.fs, root, item.identity)) {
    failed_ = true;
    news_.repeated = std::move(*earlier);
    return {};
  }
  auto created = storage::SessionWriter::create(*world_.fs, *world_.options, item.identity);
  if (!created.ok()) return created.error();
  writer_ = std::move(created).value();
  news_.opened = SessionReport::Opened{writer_->name(), writer_->directory()};
  return {};
}

Status SessionPipe::resume(const SessionResume& item) {
  auto resumed = storage::SessionWriter::resume(*world_.fs, *world_.options, item.directory);
  if (!resumed.ok()) {
    failed_ = true;
    recover_directory_ = item.directory;
    begin_seal({storage::SessionState::kRecovered, to_string(resumed.error())});
    return {};
  }
  writer_ = std::move(resumed).value();
  for (const storage::StreamPosition& position : writer_->positions()) {
    positions_[position.stream_id] = position;
  }
  counted_ = writer_->totals();  // those were counted by the collector that stored them
  news_.opened = SessionReport::Opened{writer_->name(), writer_->directory()};
  return {};
}

// Records that were numbered and never came are lost for good: the stream's last word counts them.
// A repeated close is answered as the first one: that answer may have been lost with the link.
Status SessionPipe::close_stream(const storage::StreamEnd& end) {
  storage::StreamPosition& position = position_of(end.stream_id);
  if (!position.closed) COLLECT_TRY(writer_->close_stream(end));
  position.index_next = std::max(position.index_next, end.index_count);
  position.detail_next = std::max(position.detail_next, end.detail_count);
  position.closed = true;
  return {};
}

// To be changed: what moved is told in the next report.
storage::StreamPosition& SessionPipe::position_of(uint32_t stream) {
  touched_.insert(stream);
  storage::StreamPosition& position = positions_[stream];
  position.stream_id = stream;
  return position;
}

void SessionPipe::finish_round(const std::vector<uint64_t>& tickets) {
  if (sealing_) return;
  if (writer_ && !failed_) {
    Status committed = writer_->commit();
    if (!committed.ok()) {
      touched_.clear();  // nothing may be acknowledged that is not there
      fail(committed.error());
      if (sealing_) return;
    }
  }
  if (writer_) count_totals();
  for (const uint32_t stream : touched_) news_.stored[stream] = positions_[stream];
  touched_.clear();
  for (const uint64_t ticket : tickets) {
    std::vector<storage::StreamPosition> all;
    all.reserve(positions_.size());
    for (const auto& [stream, position] : positions_) all.push_back(position);
    news_.positions.emplace_back(ticket, std::move(all));
  }
  publish();
}

void SessionPipe::fail(const Error& error) {
  if (failed_) return;
  failed_ = true;
  news_.failed = error;
  if (is_storage_fault(error.code) || !writer_ || writer_->failed()) {
    begin_seal({storage::SessionState::kFailed, to_string(error)});
    return;
  }
  Status noted = writer_->note("the agent's data was refused: " + to_string(error));
  if (!noted.ok()) begin_seal({storage::SessionState::kFailed, to_string(noted.error())});
}

void SessionPipe::begin_seal(SessionSeal seal) {
  sealing_ = true;
  publish();
  world_.writers->schedule_seal(
      [self = shared_from_this(), seal = std::move(seal)] { self->finish_seal(seal); });
}

void SessionPipe::count_totals() {
  const storage::SessionTotals totals = writer_->totals();
  const auto grow = [](std::atomic<uint64_t>& counter, uint64_t now, uint64_t before) {
    if (now > before) counter.fetch_add(now - before, std::memory_order_relaxed);
  };
  grow(world_.counters->bytes_stored, totals.stored_bytes, counted_.stored_bytes);
  grow(world_.counters->events_stored, totals.events, counted_.events);
  grow(world_.counters->events_lost, totals.lost_events, counted_.lost_events);
  grow(world_.counters->detail_records_stored, totals.detail_records, counted_.detail_records);
  counted_ = totals;
  news_.totals = totals;
}

// Merges the news into the report that waits for the io thread, and sends one if none is under way.
void SessionPipe::publish() {
  bool send = false;
  {
    std::lock_guard lock(mutex_);
    if (news_.opened) report_.opened = std::move(news_.opened);
    if (news_.repeated) report_.repeated = std::move(news_.repeated);
    for (const auto& [stream, position] : news_.stored) report_.stored[stream] = position;
    for (auto& answer : news_.positions) report_.positions.push_back(std::move(answer));
    report_.totals = counted_;
    if (news_.failed) report_.failed = std::move(news_.failed);
    if (news_.sealed) report_.sealed = std::move(news_.sealed);
    send = !report_on_its_way_;
    report_on_its_way_ = true;
  }
  news_ = {};
  if (send) send_report();
}

void SessionPipe::send_report() {
  asio::post(io_, [self = shared_from_this()] { self->deliver(); });
}

}  // namespace collect::ingest

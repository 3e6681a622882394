#include "daemon/ingest/session_pipe.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <asio/post.hpp>
#include <tuple>
#include <utility>

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
constexpr char kDataRefused[] = "the agent's data was refused";

// What the item holds up in memory, roughly; the same before and after it was handled.
size_t bytes_of(const SessionItem& item) {
  if (const auto* batch = std::get_if<PageBatch>(&item)) return batch->bytes;
  if (const auto* chunk = std::get_if<ForeignChunk>(&item)) {
    return sizeof(SessionItem) + chunk->front.size() + chunk->bytes.size();
  }
  if (const auto* modules = std::get_if<std::vector<storage::ModuleInfo>>(&item)) {
    return modules->size() * (sizeof(storage::ModuleInfo) + kMaxPathBytes);
  }
  if (const auto* stalls = std::get_if<ArrivedStalls>(&item)) {
    return sizeof(SessionItem) + stalls->stalls.size() * sizeof(ArrivedStalls::Of);
  }
  return sizeof(SessionItem) + kMaxNameBytes;
}

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

SessionPipe::SessionPipe(const World& world, asio::any_io_executor io,
                         std::shared_ptr<principal::Account> account, OnReport on_report)
    : world_(world),
      io_(std::move(io)),
      writer_index_(world.writers->assign()),
      charges_(std::move(account)),
      storage_options_(*world.options),
      on_report_(std::move(on_report)) {
  storage_options_.budget = &charges_;
}

SessionPipe::~SessionPipe() {
  charges_.account().give_back(principal::Resource::kQueued, queued_bytes_);
}

// ---- io thread

void SessionPipe::push(SessionItem item) {
  bool schedule = false;
  {
    std::lock_guard lock(mutex_);
    const size_t bytes = bytes_of(item);
    queued_bytes_ += bytes;
    charges_.account().charge(principal::Resource::kQueued, bytes);
    queue_.push_back(std::move(item));
    schedule = !scheduled_;
    scheduled_ = true;
  }
  if (schedule) world_.writers->schedule(writer_index_, shared_from_this());
}

bool SessionPipe::full() {
  std::lock_guard lock(mutex_);
  // A session whose queue is empty may always fill it a little, whatever others of its principal
  // do.
  const bool over_budget =
      queued_bytes_ != 0 && !charges_.account().has_room(principal::Resource::kQueued);
  was_full_ =
      over_budget || queued_bytes_ >= world_.queue_bytes || queue_.size() >= kMaxQueuedItems;
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
  const size_t handled = handle(items);
  size_t bytes = 0;
  for (size_t at = 0; at < handled; ++at) bytes += bytes_of(items[at]);
  if (pause_) put_back(std::move(items), handled);
  items.clear();  // buffers go back before the reader is told that there is room
  bool send = false;
  {
    // Not through news_: that may be the sealing thread's by now.
    std::lock_guard lock(mutex_);
    queued_bytes_ -= bytes;
    charges_.account().give_back(principal::Resource::kQueued, bytes);
    if (was_full_ && queued_bytes_ <= world_.queue_bytes / 2) {
      was_full_ = false;
      report_.drained = true;
      send = !report_on_its_way_;
      report_on_its_way_ = true;
    }
  }
  if (send) send_report();
}

// In front of what was pushed meanwhile; the next round comes by itself.
void SessionPipe::put_back(std::vector<SessionItem> items, size_t first) {
  const milliseconds pause = *std::exchange(pause_, std::nullopt);
  {
    std::lock_guard lock(mutex_);
    const auto rest = items.begin() + static_cast<ptrdiff_t>(first);
    queue_.insert(queue_.begin(), std::make_move_iterator(rest),
                  std::make_move_iterator(items.end()));
    if (scheduled_) return;  // something came already, and brings the next round
    scheduled_ = true;
  }
  world_.writers->schedule_later(writer_index_, shared_from_this(), pause);
}

void SessionPipe::retry_later(milliseconds pause) {
  pause_ = std::max(pause_.value_or(milliseconds{0}), pause);
}

// A manifest that comes before the next page, or the next ack, and that would be written too soon.
bool SessionPipe::must_wait_for_manifest() {
  const uint64_t wait_ns = writer_ && !failed_ ? writer_->manifest_wait_ns() : 0;
  if (wait_ns == 0) return false;
  const auto wait = std::chrono::ceil<milliseconds>(std::chrono::nanoseconds(wait_ns));
  retry_later(std::min(wait, kMaxManifestPause));
  return true;
}

size_t SessionPipe::store_items(const std::vector<SessionItem>& items, const SessionSeal** seal) {
  size_t at = 0;
  while (at < items.size() && !sealing_ && *seal == nullptr) {
    if (const auto* wanted = std::get_if<PositionsWanted>(&items[at])) {
      tickets_.push_back(wanted->ticket);
      ++at;
      continue;
    }
    if (const auto* order = std::get_if<SessionOrder>(&items[at])) {
      carry_out(*order);
      ++at;
      continue;
    }
    *seal = std::get_if<SessionSeal>(&items[at]);
    size_t end = at + 1;
    Status stored;
    if (std::holds_alternative<PageBatch>(items[at])) {
      while (end < items.size() && std::holds_alternative<PageBatch>(items[end])) ++end;
      if (!failed_ && must_wait_for_manifest()) return at;
      if (!failed_) stored = store_pages(items, at, end);
    } else if (*seal == nullptr && !failed_) {
      stored = store(items[at]);
    } else if (std::holds_alternative<SessionSuspend>(items[at]) && writer_) {
      begin_seal({storage::SessionState::kRecovered, kDataRefused});
    }
    if (!stored.ok() && stored.code() == Code::kExhausted) {
      // Nobody's fault, and nothing is wrong with the session: the same items once more.
      world_.counters->writes_held.fetch_add(1, std::memory_order_relaxed);
      retry_later(kExhaustedPause);
      return at;
    }
    if (!stored.ok()) fail(stored.error());
    at = end;
  }
  return at;
}

size_t SessionPipe::handle(const std::vector<SessionItem>& items) {
  const SessionSeal* seal = nullptr;
  const size_t stored = store_items(items, &seal);
  const bool waits = pause_.has_value();
  if (!waits) {
    for (size_t at = stored; at < items.size(); ++at) {
      if (const auto* order = std::get_if<SessionOrder>(&items[at])) {
        answers_.emplace_back(order->done,
                              Error{Code::kUnavailable, "the session is being sealed"});
      }
    }
  }
  const bool committed = finish_round();
  if (committed) answer_orders();
  if (waits) return stored;
  if (seal == nullptr || sealing_) return items.size();
  // Sealing makes the last manifest: it need not wait for one, only for descriptors.
  SessionSeal last = *seal;
  if (failed_ && last.state == storage::SessionState::kComplete) {
    last = {storage::SessionState::kRecovered, kDataRefused};
  }
  pause_.reset();
  begin_seal(std::move(last));
  return items.size();
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
  asio::post(io_, [answers = std::exchange(answers_, {})] {
    for (const auto& [done, result] : answers) done(result);
  });
}

// Neighbouring batches become one call, so that a writer that fell behind writes in larger pieces;
// as far as there is room for what has to be decoded.
Status SessionPipe::store_pages(const std::vector<SessionItem>& items, size_t first, size_t end) {
  PageUnpacker& unpacker = world_.writers->unpacker(writer_index_);
  unpacker.clear();
  run_of_pages_.clear();
  for (size_t at = first; at < end; ++at) {
    for (const Page& sent : std::get<PageBatch>(items[at]).pages) {
      if (!unpacker.has_room(sent)) {
        COLLECT_TRY(store_run());
        unpacker.clear();
      }
      auto page = unpacker.unpack(sent);
      if (!page.ok()) {
        COLLECT_TRY(store_run());  // what came before it is good
        return page.error();
      }
      run_of_pages_.push_back(*page);
      if (sent.codec != Codec::kRaw) {
        world_.counters->pages_decoded.fetch_add(1, std::memory_order_relaxed);
      }
    }
  }
  return store_run();
}

Status SessionPipe::store_run() {
  if (run_of_pages_.empty()) return {};
  COLLECT_TRY(writer_->append_pages(run_of_pages_));
  for (const Page& page : run_of_pages_) {
    if (watch_ && page.lane == Lane::kIndex) watch_->look_at(page);
    storage::StreamPosition& position = position_of(page.stream_id);
    uint64_t& next = page.lane == Lane::kIndex ? position.index_next : position.detail_next;
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
  if (const auto* stalls = std::get_if<ArrivedStalls>(&item)) return add_stalls(*stalls);
  if (const auto* change = std::get_if<storage::DetailStateChange>(&item)) {
    if (change->at_ns <= last_detail_change_ns_) return {};  // a repeat after a reconnect
    last_detail_change_ns_ = change->at_ns;
    return writer_->detail_state(*change);
  }
  if (const auto* filter = std::get_if<storage::FunctionFilter>(&item)) {
    return writer_->function_filter(*filter);
  }
  if (const auto* wanted = std::get_if<EventsWanted>(&item)) {
    watch_.reset();
    if (!wanted->events.empty()) {
      watch_.emplace(writer_->identity().version, wanted->events, wanted->on_seen);
    }
    return {};
  }
  if (const auto* sync = std::get_if<storage::ClockSync>(&item)) return writer_->clock_sync(*sync);
  if (const auto* note = std::get_if<SessionNote>(&item)) return writer_->note(note->text);
  if (const auto* lost = std::get_if<LostWithoutStream>(&item)) {
    writer_->set_lost_without_stream(lost->count);
  }
  if (const auto* end = std::get_if<storage::ProcessEnd>(&item)) writer_->set_process_end(*end);
  if (std::holds_alternative<FilesIdle>(item)) return writer_->release_files();
  if (const auto* suspended = std::get_if<SessionSuspend>(&item)) return suspend(*suspended);
  return {};
}

Status SessionPipe::open(const SessionOpen& item) {
  const std::string& root = world_.options->root;
  const storage::SessionOptions& options = *world_.options;
  storage::SpaceGuard guard(*world_.fs, root,
                            {0, options.keep_free_bytes, options.keep_free_files});
  COLLECT_TRY(guard.admit(0, kRoomToBegin));
  COLLECT_TRY(guard.admit_files(storage::kFilesPerSession));
  const auto& [process, recording, pid] =
      std::tie(item.identity.process_id, item.identity.recording, item.identity.pid);
  const CompletedSessions::Answer earlier = world_.completed->find(process, recording, pid);
  if (!earlier.is_known) {
    return Error{Code::kExhausted, "the old sessions of this process id are not all listed yet"};
  }
  if (earlier.place && world_.fs->exists(earlier.place->directory)) {
    failed_ = true;
    news_.repeated = earlier.place->name;
    return {};
  }
  auto created =
      storage::SessionWriter::create(*world_.fs, storage_options_, item.identity, item.key);
  if (!created.ok()) return created.error();
  writer_ = std::move(created).value();
  news_.opened = SessionReport::Opened{writer_->name(), writer_->directory()};
  return {};
}

Status SessionPipe::resume(const SessionResume& item) {
  auto resumed = storage::SessionWriter::resume(*world_.fs, storage_options_, item.directory);
  if (!resumed.ok() && resumed.code() == Code::kExhausted) return resumed.error();
  if (!resumed.ok()) {
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

// What was acknowledged is in the files already. So a disk that takes no more leaves what kill -9
// leaves, and the session can be resumed all the same.
Status SessionPipe::suspend(const SessionSuspend& item) {
  const Status done = writer_->suspend(item.why);
  if (!done.ok() && done.code() == Code::kExhausted) return done;
  if (!done.ok()) spdlog::warn("{}: {}", writer_->name(), to_string(done.error()));
  count_totals();
  writer_.reset();
  charges_.hold_open_files(0);
  sealing_ = true;
  news_.suspended = true;
  publish();
  return {};
}

}  // namespace collect::ingest

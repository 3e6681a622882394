#include "daemon/ingest/session/session_queue.h"

#include <asio/post.hpp>

#include "daemon/ingest/link/limits.h"
#include "daemon/ingest/link/work_threads.h"
#include "formats/core/threads.h"

namespace collect::ingest {
namespace {

constexpr char kDataRefused[] = "the agent's data was refused";
constexpr char kIsOver[] = "the session is being sealed";
constexpr char kHasFailed[] = "nothing more is stored";
constexpr milliseconds kFaultWait{100};  // of a round for which there was no memory

}  // namespace

SessionQueue::SessionQueue(const Dependencies& dependencies, asio::any_io_executor io,
                           std::shared_ptr<principal::Account> account, OnReport on_report)
    : dependencies_(dependencies),
      io_(std::move(io)),
      on_report_(std::move(on_report)),
      session_(dependencies.storage, std::move(account)) {}

// ---- io thread

void SessionQueue::add(Item item) {
  bool is_first = false;
  {
    std::lock_guard lock(mutex_);
    items_.push_back(std::move(item));
    is_first = !scheduled_;
    scheduled_ = true;
  }
  if (!is_first) return;
  const Status scheduled = contain([this] { schedule(); });
  if (scheduled.ok()) return;
  report_fault("a session", scheduled.error());
  std::lock_guard lock(mutex_);
  scheduled_ = false;  // what comes next asks again
}

void SessionQueue::note(std::string text) {
  push([text = std::move(text)](StoredSession& session) { return session.writer().note(text); });
}

void SessionQueue::deliver() {
  SessionReport report;
  {
    std::lock_guard lock(mutex_);
    report_on_its_way_ = false;
    std::swap(report, report_);
  }
  const OnReport on_report = on_report_;
  if (on_report) on_report(std::move(report));
}

// ---- data thread

void SessionQueue::schedule() {
  dependencies_.data_threads->add(principal(), [self = shared_from_this()] { self->run(); });
}

void SessionQueue::run() {
  std::vector<Item> items;
  {
    std::lock_guard lock(mutex_);
    items.swap(items_);
  }
  bool waits = false;
  size_t at = 0;
  const Status done = contain([&] { carry_out_all(items, at, waits); });
  if (!done.ok()) {  // the next round continues where this one stopped
    report_fault("a session", done.error());
    waits = true;
    wait_ = kFaultWait;
  }
  const auto rest = items.begin() + static_cast<ptrdiff_t>(at);
  bool more = false;
  {
    std::lock_guard lock(mutex_);
    // In front of what came meanwhile.
    items_.insert(items_.begin(), std::make_move_iterator(rest),
                  std::make_move_iterator(items.end()));
    more = !items_.empty();
    scheduled_ = waits || more;
  }
  if (waits) {
    dependencies_.data_threads->add_later(
        principal(), [self = shared_from_this()] { self->run(); }, wait_);
  } else if (more) {
    schedule();
  }
}

// `at`: the items before it are done with. It `waits` when this machine is out of something.
void SessionQueue::carry_out_all(const std::vector<Item>& items, size_t& at, bool& waits) {
  while (at < items.size() && !over_ && !wanted_seal_) {
    const Status done = std::visit([this](const auto& item) { return carry_out(item); }, items[at]);
    waits = !done.ok() && done.code() == Code::kExhausted;
    if (waits) {
      session_.count_held();
      break;
    }
    ++at;
    if (!done.ok()) session_.fail(done.error());
    if (!wanted_seal_) wanted_seal_ = session_.must_seal();
  }
  if (over_ || wanted_seal_) {
    for (; at < items.size(); ++at) {
      std::visit([this](const auto& item) { refuse(item, kIsOver); }, items[at]);
    }
  }
  const bool puts_off =
      !over_ && session_.take_put_off() && !waits && !wanted_seal_ && answers_.empty();
  if (!over_ && !puts_off) waits = !finish_round() || waits;
  // A seal makes the last manifest: it need not wait for one.
  if (wanted_seal_ && !over_) {
    waits = false;
    begin_seal(*wanted_seal_);
  }
  if (over_ || !waits) answer_orders();
  if (waits) wait_ = session_.take_wait();
}

Status SessionQueue::carry_out(const Task& task) {
  if (!task.act) return {};
  if (!session_.failed()) {
    Status done;
    const Status contained = contain([&] { done = task.act(session_); });
    if (contained.ok()) return done;
    session_.fail(contained.error());  // half done: it can't be made again
  }
  refuse(task, kHasFailed);
  return {};
}

Status SessionQueue::carry_out(const Command& command) {
  if (session_.is_open() && !session_.failed()) {
    answers_.emplace_back(command.done, command.act(session_.writer()));
  } else {
    refuse(command, kHasFailed);
  }
  return {};
}

Status SessionQueue::carry_out(const SessionSeal& seal) {
  wanted_seal_ = seal;
  if (session_.failed() && seal.state == storage::SessionState::kComplete) {
    wanted_seal_ = {storage::SessionState::kRecovered, kDataRefused};
  }
  return {};
}

Status SessionQueue::carry_out(const Suspend& suspend) {
  if (session_.failed()) {
    if (session_.is_open()) wanted_seal_ = {storage::SessionState::kRecovered, kDataRefused};
    return {};
  }
  COLLECT_TRY(session_.suspend(suspend.why));
  over_ = true;
  publish();
  return {};
}

void SessionQueue::refuse(const Task& task, const char* /*why*/) {
  if (task.on_drop) task.on_drop();
}

void SessionQueue::refuse(const Command& command, const char* why) {
  answers_.emplace_back(command.done, Error{Code::kUnavailable, why});
}

// False: not now; what is not committed is acknowledged by a later round.
bool SessionQueue::finish_round() {
  if (!session_.commit().ok()) return false;
  if (!wanted_seal_) wanted_seal_ = session_.must_seal();
  publish();
  return true;
}

void SessionQueue::answer_orders() {
  if (answers_.empty()) return;
  asio::post(io_, [answers = std::exchange(answers_, {})] {
    for (const auto& [done, result] : answers) done(result);
  });
}

// Merges what the session reports into the report that waits for the io thread, and sends one if
// none is under way.
void SessionQueue::publish() {
  bool send = false;
  {
    std::lock_guard lock(mutex_);
    report_.merge(session_.take_report());
    send = !report_on_its_way_;
    report_on_its_way_ = true;
  }
  if (send) asio::post(io_, [self = shared_from_this()] { self->deliver(); });
}

void SessionQueue::begin_seal(SessionSeal seal) {
  publish();
  sealing_.emplace(session_, std::move(seal));
  dependencies_.seal_threads->add(principal(),
                                  [self = shared_from_this()] { self->attempt_seal(); });
  over_ = true;
}

// ---- sealing thread

void SessionQueue::attempt_seal() {
  std::lock_guard lock(sealing_mutex_);  // the next attempt may be due before this one has ended
  const auto try_later = [this] {
    return dependencies_.seal_threads->add_later(
        principal(), [self = shared_from_this()] { self->attempt_seal(); }, kSealAgain,
        kMaxDeferredSeals);
  };
  bool has_report = false;
  const Status done = contain([&] { has_report = sealing_->attempt(try_later); });
  if (!done.ok()) {
    report_fault("a seal", done.error());
    (void)try_later();
  }
  if (has_report) publish();
}

}  // namespace collect::ingest

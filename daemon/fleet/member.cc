#include "daemon/fleet/member.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <random>
#include <utility>

#include "formats/core/threads.h"

namespace collect::fleet {
namespace {

// Jitter: collectors that lost the database together do not come back together.
class Pauses {
 public:
  explicit Pauses(uint64_t seed) : random_(seed) {}

  std::chrono::milliseconds next() {
    const auto bound = std::exchange(bound_, std::min(bound_ * 2, kLongestPause));
    return std::chrono::milliseconds(
        std::uniform_int_distribution<int64_t>(bound.count() / 2, bound.count())(random_));
  }
  void reset() { bound_ = kFirstPause; }

 private:
  std::mt19937_64 random_;
  std::chrono::milliseconds bound_ = kFirstPause;
};

}  // namespace

Member::Member(std::string database_url, Look look)
    : url_(std::move(database_url)), look_(std::move(look)) {}

Member::~Member() {
  (void)stop(std::chrono::milliseconds(0));
  if (thread_.joinable()) thread_.join();
}

Status Member::start(Self self) {
  const std::lock_guard lock(mutex_);
  ended_ = false;
  status_.set_status(closed_->message);
  auto started = start_thread("fleet", [this, self = std::move(self)] { run(self); });
  if (!started.ok()) {
    ended_ = true;
    return started.error();
  }
  thread_ = std::move(*started);
  return {};
}

bool Member::stop(std::chrono::milliseconds bound) {
  std::unique_lock lock(mutex_);
  stopping_ = true;
  changed_.notify_all();
  return changed_.wait_for(lock, bound, [this] { return ended_; });
}

void Member::wake() {
  const std::lock_guard lock(mutex_);
  woken_ = true;
  changed_.notify_all();
}

void Member::list(std::string device, Answer answer) {
  std::unique_lock lock(mutex_);
  std::optional<Error> refused = closed_;
  if (!refused && questions_.size() >= kMaxQuestions) {
    refused = Error{Code::kLimit, std::to_string(kMaxQuestions) +
                                      " requests wait for the fleet's database; try again later"};
  }
  if (!refused) {
    questions_.push_back({std::move(device), std::move(answer)});
    changed_.notify_all();
    return;
  }
  lock.unlock();
  answer(*refused);
}

api::FleetStatus Member::status() const {
  const std::lock_guard lock(mutex_);
  return status_;
}

// ---- the member's thread

void Member::run(const Self& self) {
  Pauses pauses(self.epoch ^ std::hash<std::string>()(self.collector));
  while (true) {
    const Status outcome = serve(self);
    if (outcome.ok()) break;
    // A connection that worked for a while begins anew.
    if (written_) pauses.reset();
    note_failure(outcome.error());
    if (!wait(Clock::now() + pauses.next(), Clock::time_point::max())) break;
  }
  refuse_questions({Code::kUnavailable, "this collector is stopping"});
  const std::lock_guard lock(mutex_);
  ended_ = true;
  changed_.notify_all();
}

Status Member::serve(const Self& self) {
  written_.reset();
  auto database = Database::connect(url_);
  if (!database.ok()) return database.error();
  LeaseTable table(*database);
  COLLECT_TRY(table.prepare());
  Clock::time_point due = Clock::now();
  Clock::time_point soonest = due;
  while (wait(due, soonest)) {
    COLLECT_TRY(answer_questions(table));
    if (!take_due(due, soonest)) continue;
    COLLECT_TRY(round(table, self));
    due = Clock::now() + kRenewal;
    soonest = Clock::now() + kLeastPause;
  }
  // Where it fails, the entry is not renewed, which others see.
  const Status left = table.leave(self);
  if (!left.ok()) spdlog::warn("fleet: {}", left.error().message);
  return {};
}

bool Member::wait(Clock::time_point due, Clock::time_point soonest) {
  std::unique_lock lock(mutex_);
  while (!stopping_ && questions_.empty()) {
    const auto until = woken_ ? std::min(due, soonest) : due;
    if (Clock::now() >= until) break;
    changed_.wait_until(lock, until);
  }
  return !stopping_;
}

bool Member::take_due(Clock::time_point due, Clock::time_point soonest) {
  const std::lock_guard lock(mutex_);
  if (Clock::now() < (woken_ ? std::min(due, soonest) : due)) return false;
  woken_ = false;
  return true;
}

Status Member::answer_questions(LeaseTable& table) {
  std::vector<Question> asked;
  {
    const std::lock_guard lock(mutex_);
    asked.swap(questions_);
  }
  Status outcome;
  for (const Question& question : asked) {
    if (!outcome.ok()) {
      question.answer(outcome.error());
      continue;
    }
    auto found = table.list(question.device);
    if (!found.ok()) outcome = found.error();
    question.answer(std::move(found));
  }
  return outcome;
}

Status Member::round(LeaseTable& table, const Self& self) {
  const Holdings holdings = look_();
  COLLECT_TRY(table.renew(self, holdings));
  // Others may have taken a lease and given it up.
  const bool is_check = --rounds_until_check_ <= 0;
  if (is_check) {
    rounds_until_check_ = kRoundsBetweenChecks;
    COLLECT_TRY(table.forget(self));
  }
  if (is_check || !written_ || written_->all != holdings.all) {
    std::vector<Holding> arrived;
    std::unordered_map<std::string, uint64_t> arrivals;
    for (const Holding& holding : holdings.all) {
      const auto before = arrivals_.find(holding.key);
      if (before == arrivals_.end() || before->second != holding.arrival)
        arrived.push_back(holding);
      arrivals.emplace(holding.key, holding.arrival);
    }
    const auto counts = table.put(self, holdings.all, arrived);
    if (!counts.ok()) return counts.error();
    counts_ = *counts;
    arrivals_ = std::move(arrivals);
  }
  written_ = holdings;
  note_success(counts_, self);
  return {};
}

void Member::note_success(const LeaseCounts& counts, const Self& self) {
  const std::lock_guard lock(mutex_);
  if (!status_.connected()) {
    spdlog::info("fleet: joined as {} at {}", self.host_name, self.control_address);
  }
  if (counts.elsewhere != 0 && status_.leases_elsewhere() == 0) {
    spdlog::warn(
        "fleet: {} devices or processes that are here are also at another collector, which has "
        "their lease",
        counts.elsewhere);
  }
  closed_.reset();
  status_.set_connected(true);
  status_.clear_status();
  status_.set_leases(counts.held);
  status_.set_leases_elsewhere(counts.elsewhere);
}

void Member::note_failure(const Error& error) {
  const Error shown{error.code, "the fleet's database: " + error.message};
  {
    const std::lock_guard lock(mutex_);
    if (status_.connected() || status_.failures() == 0) {
      spdlog::warn("{}; recording goes on, and the database is tried again", shown.message);
    }
    status_.set_connected(false);
    status_.set_status(shown.message);
    status_.set_failures(status_.failures() + 1);
  }
  refuse_questions(shown);
}

void Member::refuse_questions(const Error& error) {
  std::vector<Question> refused;
  {
    const std::lock_guard lock(mutex_);
    closed_ = error;
    refused.swap(questions_);
  }
  for (const Question& question : refused) question.answer(error);
}

}  // namespace collect::fleet

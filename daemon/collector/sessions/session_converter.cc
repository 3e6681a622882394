#include "daemon/collector/sessions/session_converter.h"

#include <spdlog/spdlog.h>
#include <sys/resource.h>

#include <chrono>
#include <utility>

#include "daemon/ingest/link/limits.h"
#include "daemon/ingest/session/session_charges.h"
#include "formats/core/threads.h"

namespace collect::daemon {
namespace {

constexpr int kNiceness = 10;

Error stopped() {
  return {Code::kUnavailable, "the collector is shutting down; ask again when it is back"};
}

// What a session that is not sealed costs, for as long as it is made.
class Charges {
 public:
  explicit Charges(const std::shared_ptr<principal::Account>& account)
      : place_(account, principal::Resource::kSessions),
        memory_(account, principal::Resource::kMemory),
        files_(account, principal::Resource::kInodes) {}

  Status take(uint64_t threads) {
    COLLECT_TRY(place_.grow(1));
    COLLECT_TRY(memory_.grow(ingest::kSessionMemory + threads * ingest::kStreamMemory));
    return files_.grow(storage::kFilesPerSession + threads * storage::kFilesPerThread);
  }

 private:
  principal::Lease place_, memory_, files_;
};

}  // namespace

SessionConverter::SessionConverter(storage::Fs& fs, storage::SessionOptions options)
    : fs_(fs), options_(std::move(options)) {}

SessionConverter::~SessionConverter() {
  stop();
}

Status SessionConverter::start(principal::Budget& budget) {
  auto started = start_thread("converter", [this, &budget] { run(budget); });
  if (!started.ok()) return started.error();
  thread_ = std::move(*started);
  return {};
}

void SessionConverter::add(Job job) {
  Status refused;
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) {
      refused = stopped();
    } else if (waiting_.size() + is_busy_ >= kMaxConversions) {
      refused = Error{
          Code::kLimit,
          fmt::format(
              "more than {} conversions and snapshots run or wait; try again when one has ended",
              kMaxConversions)};
    } else {
      waiting_.push_back(std::move(job));
    }
  }
  if (refused.ok()) {
    wake_.notify_one();
  } else {
    job.done(refused.error());
  }
}

void SessionConverter::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  if (thread_.joinable()) thread_.join();
  for (const Job& job : std::exchange(waiting_, {})) job.done(stopped());
}

void SessionConverter::run(principal::Budget& budget) {
  // Lowers the priority of this thread alone: recording comes first. Where the system refuses, it
  // is as fast as others.
  (void)::setpriority(PRIO_PROCESS, 0, kNiceness);
  const Status cleared = storage::remove_unfinished_sessions(fs_, options_.root);
  if (!cleared.ok()) spdlog::warn("unfinished sessions: {}", to_string(cleared.error()));
  std::unique_lock lock(mutex_);
  while (true) {
    wake_.wait(lock, [this] { return stopping_ || !waiting_.empty(); });
    if (stopping_) return;
    Job job = std::move(waiting_.front());
    waiting_.pop_front();
    is_busy_ = true;
    lock.unlock();
    Result<storage::MadeSession> made = stopped();
    const Status done = contain([&] { made = make(job, budget); });
    if (!done.ok()) made = done.error();
    job.use.reset();
    job.done(made);
    job = {};
    lock.lock();
    is_busy_ = false;
  }
}

Result<storage::MadeSession> SessionConverter::make(const Job& job, principal::Budget& budget) {
  const storage::MakingProgress progress = [&](uint64_t done, uint64_t all) -> Status {
    if (stopping_) return stopped();
    if (job.progress(done, all)) return {};
    return Error{Code::kCancelled, "it was cancelled; nothing is left of it"};
  };
  COLLECT_TRY(progress(0, 0));  // it may have waited for long
  const Snapshot* const snapshot = std::get_if<Snapshot>(&job.wanted);
  uint64_t threads = 0;
  if (snapshot != nullptr) {
    threads = snapshot->cut.manifest.threads.size();
  } else {
    const auto manifest = storage::read_manifest(fs_, job.from.directory);
    if (!manifest.ok()) return manifest.error();
    threads = manifest->threads.size();
  }
  // Like the sessions of agents that are dialled here, it is this machine's.
  const auto account = budget.account({});
  Charges charges(account);
  COLLECT_TRY(charges.take(threads));
  ingest::SessionCharges files(account);
  storage::SessionOptions options = options_;
  options.budget = &files;
  const auto start = std::chrono::steady_clock::now();
  auto made = snapshot != nullptr
                  ? storage::snapshot_session(fs_, options, job.from, snapshot->cut,
                                              snapshot->moment, progress)
                  : storage::convert_session(fs_, options, job.from,
                                             std::get<atf::Version>(job.wanted), progress);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  if (made.ok()) {
    spdlog::info("{} is made of {}: {} events in {:.1f} s", made->session_path.name, job.from.name,
                 made->report.totals.events, took.count());
  } else {
    spdlog::info("nothing is made of {}: {}", job.from.name, to_string(made.error()));
  }
  return made;
}

}  // namespace collect::daemon

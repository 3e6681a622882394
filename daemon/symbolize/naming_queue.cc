#include "daemon/symbolize/naming_queue.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "daemon/symbolize/limits.h"
#include "formats/core/threads.h"
#include "storage/manifest/manifest_file.h"
#include "storage/model/stored_functions.h"

namespace collect::symbolize {
namespace {

using storage::Manifest;
using storage::SessionState;
using storage::SymbolsState;

constexpr uint32_t kMaxFailedStarts = 3;  // of the child, in a row, for one session

bool is_final(Code code) {
  return code == Code::kNotFound || code == Code::kPermission || code == Code::kLimit;
}

}  // namespace

NamingQueue::NamingQueue(storage::Fs& fs, SymbolizerOptions options, OnNamed on_named)
    : fs_(fs), symbolizer_(std::move(options)), on_named_(std::move(on_named)) {
  auto started = start_thread("names", [this] { serve(); });
  if (started.ok()) {
    thread_ = std::move(*started);
  } else {
    started_ = started.error();
  }
}

NamingQueue::~NamingQueue() {
  stop(std::chrono::milliseconds{0});
}

bool NamingQueue::add(SealedSession session) {
  {
    std::lock_guard lock(mutex_);
    if (stopping_ || queue_.size() >= kMaxQueuedSessions) return false;
    if (queued_functions_ + session.functions.size() > kMaxQueuedFunctions) {
      session.functions = {};  // read again when its turn comes
    }
    queued_functions_ += session.functions.size();
    queue_.push_back(std::make_unique<Job>(Job{std::move(session), nullptr, 0}));
  }
  wake_.notify_one();
  return true;
}

void NamingQueue::forget(const std::string& name) {
  std::unique_lock lock(mutex_);
  std::erase_if(queue_, [&](const std::unique_ptr<Job>& job) {
    if (job->session.name != name) return false;
    queued_functions_ -= job->session.functions.size();
    return true;
  });
  if (current_ != name) return;
  cancel_ = true;
  current_.clear();  // its thread sees that it was cancelled
  idle_.wait(lock, [this, turn = turns_] { return turns_ != turn; });
}

void NamingQueue::stop(std::chrono::milliseconds bound) {
  {
    std::unique_lock lock(mutex_);
    stopping_ = true;
    idle_.wait_for(lock, bound, [this] { return queue_.empty() && current_.empty(); });
    ended_ = true;
    if (!current_.empty()) cancel_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void NamingQueue::serve() {
  std::unique_lock lock(mutex_);
  while (true) {
    wake_.wait(lock, [this] { return ended_ || !queue_.empty(); });
    // Those that were begun go back to "pending"; the others say so already.
    if (queue_.empty()) return;
    std::unique_ptr<Job> job = std::move(queue_.front());
    queue_.pop_front();
    queued_functions_ -= job->session.functions.size();
    if (ended_ && job->names == nullptr) continue;
    current_ = job->session.name;
    const bool is_ending = ended_;
    lock.unlock();
    Verdict verdict;
    const Status done =
        contain([&] { verdict = is_ending ? leave_pending(*job) : take_turn(*job); });
    // The next start of the daemon takes it up.
    if (!done.ok()) verdict = {true, SymbolsState::kPending, done.error().message};
    lock.lock();
    const bool cancelled = current_.empty();
    current_.clear();
    ++turns_;
    cancel_ = ended_;
    if (!verdict.is_over && !cancelled) {
      queue_.push_back(std::move(job));  // begun by now: its functions are not held any more
    } else if (!cancelled) {
      lock.unlock();
      on_named_(job->session.name, verdict.state, verdict.said);
      lock.lock();
    }
    idle_.notify_all();
  }
}

NamingQueue::Verdict NamingQueue::take_turn(Job& job) {
  const auto slice_end = std::chrono::steady_clock::now() + kNamingSlice;
  if (job.names == nullptr) {
    Verdict verdict;
    const auto begun = begin(job, verdict);
    if (!begun.ok()) return give_up(job, begun.error());
    if (!*begun) return verdict;
  }
  while (!job.names->done()) {
    const Status stepped = job.names->step(symbolizer_, &cancel_);
    if (!stepped.ok()) {
      if (stepped.code() == Code::kCancelled) return leave_pending(job);
      if (is_final(stepped.code()) || ++job.failed_starts == kMaxFailedStarts) {
        return give_up(job, stepped.error());
      }
      return {false};
    }
    job.failed_starts = 0;
    if (std::chrono::steady_clock::now() >= slice_end) return {false};
  }
  return finish(job);
}

// False, with the verdict, when there is nothing to do.
Result<bool> NamingQueue::begin(Job& job, Verdict& verdict) {
  const std::string& directory = job.session.directory;
  auto manifest = storage::read_manifest(fs_, directory);
  if (!manifest.ok()) {
    verdict.said = to_string(manifest.error());  // removed meanwhile, or nothing that we can mend
    return false;
  }
  if (manifest->state == SessionState::kRecording ||
      manifest->symbols_state != SymbolsState::kPending) {
    verdict.state = manifest->symbols_state;
    return false;
  }
  if (manifest->symbols_tries >= kMaxNamingTries) {
    return Error{Code::kLimit, fmt::format("the daemon ended {} times while they were looked up",
                                           manifest->symbols_tries)};
  }
  ++manifest->symbols_tries;
  COLLECT_TRY(storage::write_manifest(fs_, directory, *manifest, false));
  std::vector<uint64_t> ids = std::exchange(job.session.functions, {});
  if (ids.empty()) {
    const auto functions = storage::stored_functions(fs_, directory, &cancel_);
    if (functions.ok()) {
      ids = functions->sorted();
    } else if (functions.code() == Code::kCancelled) {
      verdict = leave_pending(job);
      return false;
    } else {
      return functions.error();
    }
  }
  job.names = std::make_unique<SessionNames>(*manifest, ids, false);
  return true;
}

NamingQueue::Verdict NamingQueue::finish(Job& job) {
  auto manifest = storage::read_manifest(fs_, job.session.directory);
  if (!manifest.ok()) return {true, SymbolsState::kNone, to_string(manifest.error())};
  job.names->put_into(*manifest);
  manifest->symbols_state = SymbolsState::kDone;
  manifest->symbols_tries = 0;
  const Status written = write(*manifest, job);
  if (!written.ok()) return give_up(job, written.error());
  return {true, SymbolsState::kDone, job.names->missing()};
}

// What is known by now is kept: the next start does not look at these files again.
NamingQueue::Verdict NamingQueue::leave_pending(Job& job) {
  auto manifest = storage::read_manifest(fs_, job.session.directory);
  if (!manifest.ok()) return {true, SymbolsState::kNone, to_string(manifest.error())};
  if (job.names != nullptr) job.names->put_into(*manifest);
  if (manifest->symbols_tries != 0) --manifest->symbols_tries;
  const Status written = write(*manifest, job);
  return {true, SymbolsState::kPending, written.ok() ? "" : to_string(written.error())};
}

// The session is whole without names. `collectctl symbolize` looks them up when it is asked to.
NamingQueue::Verdict NamingQueue::give_up(Job& job, const Error& error) {
  Verdict verdict{true, SymbolsState::kFailed, "names are not looked up: " + to_string(error)};
  auto manifest = storage::read_manifest(fs_, job.session.directory);
  if (!manifest.ok()) return verdict;
  manifest->symbols_state = SymbolsState::kFailed;
  manifest->symbols_tries = 0;
  if (manifest->notes.size() < storage::kMaxNotes) {
    manifest->notes.push_back({storage::system_clock().unix_ns(), verdict.said});
  }
  const Status written = write(*manifest, job);
  if (!written.ok()) verdict.said += "; " + to_string(written.error());
  return verdict;
}

Status NamingQueue::write(const Manifest& manifest, const Job& job) {
  return storage::write_manifest(fs_, job.session.directory, manifest, true);
}

}  // namespace collect::symbolize

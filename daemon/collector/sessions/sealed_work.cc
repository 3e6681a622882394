#include "daemon/collector/sessions/sealed_work.h"

#include <spdlog/spdlog.h>
#include <sys/resource.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "daemon/symbolize/child_program.h"
#include "daemon/web/page_request.h"
#include "formats/core/text/figures.h"
#include "formats/core/threads.h"
#include "storage/manifest/manifest.h"
#include "storage/model/session_files.h"

namespace collect::daemon {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kWorkNiceness = 10;
constexpr std::chrono::hours kDeadline{1};
constexpr uint64_t kMaxAnswerBytes = 64u << 10;  // an error, if anything
// So many bytes of thread files become one: somewhat fewer than LOD.md and STORAGE.md say.
constexpr uint64_t kBytesOfALodByte = 100;
constexpr uint64_t kBytesOfAPackedByte = 8;
constexpr uint64_t kBytesOfAnUnpackedByte = 1;

Error removed() {
  return {Code::kCancelled, "the session is being removed"};
}

Error ended() {
  return {Code::kUnavailable, "the collector is shutting down; ask again when it is back"};
}

}  // namespace

SealedWork::SealedWork(std::string program, storage::Fs& fs,
                       const storage::SpaceGuard::Limits& limits, SessionUse in_use,
                       OnFailed on_failed)
    : program_(std::move(program)),
      fs_(fs),
      limits_(limits),
      in_use_(std::move(in_use)),
      on_failed_(std::move(on_failed)) {
  auto started = start_thread("sealed", [this] { serve(); });
  if (started.ok()) {
    thread_ = std::move(*started);
  } else {
    started_ = started.error();
  }
}

void SealedWork::add_lods(const storage::SessionPath& session_path) {
  (void)add({.session_path = session_path});
}

void SealedWork::add_packing(const storage::SessionPath& session_path, storage::PackWay way,
                             OnPacked done) {
  if (const Status added = add({.session_path = session_path, .done = done, .way = way});
      !added.ok()) {
    done(added.error());
  }
}

Status SealedWork::add(Job job) {
  {
    const std::lock_guard lock(mutex_);
    const bool is_there = std::ranges::any_of(queue_, [&](const Job& other) {
      return !job.done && !other.done && other.session_path.name == job.session_path.name;
    });
    if (stopping_) return ended();
    if (queue_.size() >= kMaxQueued) {
      return Error{Code::kLimit, "too many sessions wait for such work; try again later"};
    }
    if (!is_there) queue_.push_back(std::move(job));
  }
  changed_.notify_all();
  return {};
}

void SealedWork::end_current(std::unique_lock<std::mutex>& lock, const std::string& name) {
  if (current_ != name) return;
  cancel_ = true;
  changed_.wait(lock, [&] { return current_ != name; });
}

void SealedWork::end_packing(const std::string& name) {
  std::unique_lock lock(mutex_);
  if (is_packing_) end_current(lock, name);
}

void SealedWork::forget(const std::string& name) {
  std::vector<Job> dropped;
  {
    std::unique_lock lock(mutex_);
    for (Job& job : queue_) {
      if (job.session_path.name == name) dropped.push_back(job);
    }
    std::erase_if(queue_, [&](const Job& job) { return job.session_path.name == name; });
    end_current(lock, name);
  }
  for (const Job& job : dropped) {
    if (job.done) job.done(removed());
  }
}

void SealedWork::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    cancel_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
  for (const Job& job : std::exchange(queue_, {})) {
    if (job.done) job.done(ended());
  }
}

void SealedWork::serve() {
  // Of this thread, and of the programs that it starts. Where the system refuses, they are as fast
  // as others.
  (void)::setpriority(PRIO_PROCESS, 0, kWorkNiceness);
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    const auto next = std::ranges::min_element(queue_, {}, &Job::not_before);
    if (next == queue_.end()) {
      changed_.wait(lock);
      continue;
    }
    if (next->not_before > Clock::now()) {
      changed_.wait_until(lock, next->not_before);
      continue;
    }
    Job job = std::move(*next);
    queue_.erase(next);
    current_ = job.session_path.name;
    is_packing_ = job.done != nullptr;
    lock.unlock();
    const bool is_done = run(job);
    lock.lock();
    current_.clear();
    if (!stopping_) cancel_ = false;
    if (!is_done) {
      job.not_before = Clock::now() + kUseLook;
      queue_.push_back(std::move(job));
    }
    changed_.notify_all();
  }
}

bool SealedWork::run(const Job& job) {
  const std::string& name = job.session_path.name;
  if (!job.done) {
    const Status done = contain([&] { make_lods(job); });
    if (!done.ok()) on_failed_(name, done.error().message);
    return true;
  }
  auto use = in_use_.take(name, "is being packed");
  if (!use.ok() && !cancel_) return false;
  Result<storage::PackReport> packed = why_cancelled();
  if (use.ok()) {
    const Status done = contain([&] { packed = pack(job); });
    if (!done.ok()) packed = done.error();
    use->reset();
  }
  const Status said = contain([&] { job.done(packed); });
  if (!said.ok()) on_failed_(name, said.error().message);
  return true;
}

Error SealedWork::why_cancelled() {
  const std::lock_guard lock(mutex_);
  return stopping_ ? ended() : removed();
}

// `share`: of the bytes that were recorded.
Status SealedWork::admit(const storage::SessionPath& session_path, uint64_t share) const {
  const std::string& directory = session_path.directory;
  const auto manifest = storage::read_manifest(fs_, directory);
  const uint64_t bytes = manifest.ok() ? manifest->totals.stored_bytes : 0;
  return storage::SpaceGuard(fs_, directory, limits_).admit(0, bytes / share + 1);
}

Result<storage::PackReport> SealedWork::pack(const Job& job) {
  const bool packs = job.way == storage::PackWay::kPack;
  COLLECT_TRY(admit(job.session_path, packs ? kBytesOfAPackedByte : kBytesOfAnUnpackedByte));
  const auto progress = [this](uint64_t, uint64_t) -> Status {
    return cancel_ ? Status(why_cancelled()) : Status();
  };
  auto packed = packs ? storage::pack_session(fs_, job.session_path, progress)
                      : storage::unpack_session(fs_, job.session_path, progress);
  if (packed.ok() && packed->files != 0) {
    spdlog::info("{} is {}: {} of thread files, {} of containers", job.session_path.name,
                 packs ? "packed" : "unpacked", short_bytes(packed->file_bytes),
                 short_bytes(packed->packed_bytes));
  }
  return packed;
}

void SealedWork::make_lods(const Job& job) {
  const std::string& name = job.session_path.name;
  const std::string& directory = job.session_path.directory;
  if (const Status admitted = admit(job.session_path, kBytesOfALodByte); !admitted.ok()) {
    on_failed_(name, admitted.error().message);
    return;
  }
  web::PageRequest request;
  request.directory = directory;
  request.want = web::PageWant::kLods;
  const std::string asked = request.to_json();
  std::string answer;
  const auto ending = symbolize::run_child(
      {program_}, Bytes(reinterpret_cast<const uint8_t*>(asked.data()), asked.size()),
      {kDeadline, kMaxAnswerBytes, &cancel_}, [&](Bytes bytes) {
        answer.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
        return Status();
      });
  if (!ending.ok() || !ending->fault.empty()) storage::remove_half_made_lods(fs_, directory);
  if (!ending.ok()) {
    if (ending.code() != Code::kCancelled) on_failed_(name, ending.error().message);
  } else if (!ending->fault.empty()) {
    on_failed_(name, ending->fault);
  } else if (const auto error = web::error_in_page(answer, request.want)) {
    on_failed_(name, *error);
  }
}

}  // namespace collect::daemon

#include "daemon/upload/uploader.h"

#include <fmt/core.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <utility>

#include "formats/core/threads.h"
#include "storage/model/session_files.h"

namespace collect::upload {
namespace {

constexpr int kUploadNiceness = 10;
constexpr uint64_t kNsPerDay = 86'400ull * 1'000'000'000;
constexpr uint64_t kLongestWaitNs = 3600ull * 1'000'000'000;

// The time of "20260131_235959", which is local.
uint64_t began_unix_ns(std::string_view stamp) {
  tm parts{};
  parts.tm_isdst = -1;
  if (::strptime(std::string(stamp).c_str(), "%Y%m%d_%H%M%S", &parts) == nullptr) return 0;
  const time_t seconds = std::mktime(&parts);
  return seconds < 0 ? 0 : static_cast<uint64_t>(seconds) * 1'000'000'000;
}

// What no later run can do either.
bool is_final(const Error& error, bool at_store) {
  if (error.code == Code::kAlreadyExists) return true;
  return !at_store && (error.code == Code::kUnsupported || error.code == Code::kInvalidArgument ||
                       error.code == Code::kNotFound);
}

}  // namespace

bool Uploader::RealPauses::pause(uint64_t ns) {
  std::unique_lock lock(owner_.mutex_);
  return !owner_.changed_.wait_for(lock, std::chrono::nanoseconds(ns),
                                   [this] { return owner_.stopping_; });
}

Result<std::unique_ptr<Uploader>> Uploader::start(const UploadSettings& settings,
                                                  UploadDependencies dependencies) {
  const UploadSizes& sizes = settings.sizes;
  if (sizes.part_bytes == 0 || sizes.part_bytes > sizes.multipart_bytes ||
      sizes.multipart_bytes > kMaxPutBytes) {
    return Error{Code::kInvalidArgument,
                 "part_bytes must be 1 to multipart_bytes, and that at most 5 GiB"};
  }
  if (settings.retry.attempts == 0) {
    return Error{Code::kInvalidArgument, "attempts must be 1 or more"};
  }
  auto client = S3Client::create(settings.s3, dependencies.credentials, dependencies.clock);
  if (!client.ok()) return client.error();
  std::unique_ptr<Uploader> uploader(
      new Uploader(settings, std::move(dependencies), std::move(*client)));
  auto started = start_thread("uploader", [raw = uploader.get()] { raw->run(); });
  if (!started.ok()) return started.error();
  uploader->thread_ = std::move(*started);
  return uploader;
}

Uploader::Uploader(const UploadSettings& settings, UploadDependencies dependencies,
                   std::unique_ptr<S3Client> client)
    : settings_(settings),
      dependencies_(std::move(dependencies)),
      pauses_(dependencies_.pauses != nullptr ? *dependencies_.pauses : real_pauses_),
      client_(std::move(client)),
      retries_(settings_.retry, pauses_,
               settings_.retry.seed != 0 ? settings_.retry.seed : std::random_device()(),
               [this](const Error& error) {
                 const std::lock_guard lock(mutex_);
                 ++status_.retries[client_->last_status()];
                 (void)error;
               }),
      objects_(settings_.sizes,
               {*client_, retries_, pauses_, dependencies_.clock, settings_.s3.max_bytes_per_s,
                [this](uint64_t bytes) {
                  const std::lock_guard lock(mutex_);
                  status_.sent_bytes += bytes;
                }}),
      parts_(dependencies_.fs, objects_, {*client_, retries_, pauses_, dependencies_.clock},
             dependencies_.tables) {}

Uploader::~Uploader() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  client_->cancel();
  if (thread_.joinable()) thread_.join();
}

Status Uploader::add(const storage::SessionPath& session_path, const PartName& part) {
  const auto name = storage::parse_session_name(session_path.session);
  if (!name || !name->is_recorded()) {
    return Error{Code::kInvalidArgument, session_path.name + " is no session that was recorded"};
  }
  const std::lock_guard lock(mutex_);
  if (queue_.contains(session_path.name)) return {};
  if (queue_.size() >= kMaxQueuedSessions) {
    return Error{Code::kLimit,
                 fmt::format("more than {} sessions wait for their upload", kMaxQueuedSessions)};
  }
  Queued& entry = queue_[session_path.name];
  entry.session_path = session_path;
  entry.part = part;
  entry.began_unix_ns = began_unix_ns(name->stamp);
  ++status_.pending_sessions;
  was_woken_ = true;
  changed_.notify_all();
  return {};
}

UploadStatus Uploader::status() const {
  const std::lock_guard lock(mutex_);
  UploadStatus status = status_;
  for (const auto& [name, entry] : queue_) {
    if (entry.is_committed) continue;
    status.oldest_unix_ns = entry.began_unix_ns;
    break;
  }
  return status;
}

bool Uploader::is_idle() const {
  const uint64_t now = dependencies_.clock.monotonic_ns();
  return !is_busy_ && std::all_of(queue_.begin(), queue_.end(), [now](const auto& one) {
    return one.second.is_committed && one.second.not_before_ns > now;
  });
}

bool Uploader::wait_idle(uint64_t most_ms) const {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, std::chrono::milliseconds(most_ms), [this] { return is_idle(); });
}

void Uploader::run() {
  // Lowers the priority of this thread alone: recording comes first. Where the system refuses, it
  // is as fast as others.
  (void)::setpriority(PRIO_PROCESS, 0, kUploadNiceness);
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    was_woken_ = false;
    for (auto& [name, entry] : queue_) {
      if (!entry.bytes) measure(entry, lock);
      if (stopping_) return;
    }
    uint64_t wait_ns = kLongestWaitNs;
    const uint64_t now = dependencies_.clock.monotonic_ns();
    const auto due = held_until_ns_ > now ? queue_.end() : next_due(now, wait_ns);
    if (due != queue_.end()) {
      take_turn(due, lock);
      continue;
    }
    if (held_until_ns_ > now) wait_ns = held_until_ns_ - now;
    wait(wait_ns, lock);
  }
}

void Uploader::wait(uint64_t ns, std::unique_lock<std::mutex>& lock) {
  changed_.notify_all();
  if (dependencies_.pauses != nullptr && !queue_.empty() && !was_woken_) {
    lock.unlock();
    (void)dependencies_.pauses->pause(ns);
    lock.lock();
    return;
  }
  const auto woken = [this] { return stopping_ || was_woken_; };
  if (queue_.empty()) {
    changed_.wait(lock, woken);
  } else {
    changed_.wait_for(lock, std::chrono::nanoseconds(ns), woken);
  }
}

// Entries stay where they are: only this thread removes any.
void Uploader::measure(Queued& entry, std::unique_lock<std::mutex>& lock) {
  lock.unlock();
  uint64_t bytes = 0;
  const auto files = storage::list_session_files(dependencies_.fs, entry.session_path);
  if (files.ok()) {
    for (const storage::SessionFileInfo& file : *files) bytes += file.bytes;
  }
  lock.lock();
  // What cannot be read has its turn all the same, and the error is reported then.
  entry.bytes = bytes;
  status_.pending_bytes += bytes;
}

// end(): none now; `wait_ns` is until when.
Uploader::Queue::iterator Uploader::next_due(uint64_t now_ns, uint64_t& wait_ns) {
  auto best = queue_.end();
  for (auto at = queue_.begin(); at != queue_.end(); ++at) {
    const Queued& entry = at->second;
    if (entry.not_before_ns > now_ns) {
      wait_ns = std::min(wait_ns, entry.not_before_ns - now_ns);
    } else if (best == queue_.end() || (best->second.is_suspect && !entry.is_suspect)) {
      best = at;
    }
  }
  return best;
}

void Uploader::take_turn(Queue::iterator at, std::unique_lock<std::mutex>& lock) {
  is_busy_ = true;
  lock.unlock();
  auto part = parts_.run(at->second.session_path, at->second.part);
  if (part.ok()) at->second.ended_unix_ns = part->ended_unix_ns;
  Status removed;
  const bool is_removal = part.ok() && part->outcome == PartOutcome::kPresent && removes() &&
                          removal_due_ns(at->second) <= dependencies_.clock.monotonic_ns();
  if (is_removal) removed = dependencies_.remove(at->second.session_path);
  lock.lock();
  is_busy_ = false;
  status_.clock_correction_s = client_->clock_correction_s();
  if (!part.ok()) {
    fail(at, part.error(), parts_.failed_at_store());
  } else if (is_removal && removed.ok()) {
    ++status_.removed_sessions;
    status_.removed_bytes += part->file_bytes;
    succeed(at, *part);
    queue_.erase(at);
  } else {
    succeed(at, *part);
    if (is_removal) {
      fail(at, removed.error(), false);
    } else {
      retire(at);
    }
  }
  changed_.notify_all();
}

void Uploader::no_longer_pending(const Queued& entry) {
  --status_.pending_sessions;
  status_.pending_bytes -= *entry.bytes;
}

void Uploader::succeed(Queue::iterator at, const UploadedPart& part) {
  Queued& entry = at->second;
  entry.failures = 0;
  entry.is_suspect = false;
  status_.problem.clear();
  status_.problem_since_unix_ns = 0;
  if (entry.is_committed) return;
  entry.is_committed = true;
  no_longer_pending(entry);
  if (part.outcome == PartOutcome::kPresent) {
    ++status_.present_sessions;
  } else {
    ++status_.committed_sessions;
    status_.committed_bytes += part.file_bytes;
  }
}

// It is committed: until it is to be removed there is nothing to do.
void Uploader::retire(Queue::iterator at) {
  if (removes()) {
    at->second.not_before_ns = removal_due_ns(at->second);
  } else {
    queue_.erase(at);
  }
}

void Uploader::fail(Queue::iterator at, const Error& error, bool at_store) {
  if (error.code == Code::kCancelled) return;
  Queued& entry = at->second;
  ++status_.failed_runs;
  if (status_.problem.empty()) status_.problem_since_unix_ns = dependencies_.clock.unix_ns();
  status_.problem = to_string(error);
  if (is_final(error, at_store)) {
    ++status_.refused_sessions;
    if (!entry.is_committed) no_longer_pending(entry);
    queue_.erase(at);
    return;
  }
  const uint64_t later = dependencies_.clock.monotonic_ns() + settings_.hold_ms * kNsPerMs;
  if (at_store && !entry.is_suspect) {
    held_until_ns_ = later;
    suspect(entry);
  } else {
    entry.not_before_ns = later;
  }
}

// A session that fails again and again lets another one try. Where that fails too, it is the
// bucket, and the oldest is first as before.
void Uploader::suspect(Queued& entry) {
  for (auto& [name, other] : queue_) {
    if (!std::exchange(other.is_suspect, false)) continue;
    other.failures = 0;
    entry.failures = 0;
  }
  if (++entry.failures < kTurnsInARow) return;
  entry.failures = 0;
  entry.is_suspect = true;
}

uint64_t Uploader::removal_due_ns(const Queued& entry) const {
  const uint64_t now = dependencies_.clock.monotonic_ns();
  if (settings_.keep_local.until != KeepUntil::kDays) return now;
  const uint64_t due_unix = entry.ended_unix_ns + settings_.keep_local.days * kNsPerDay;
  const uint64_t now_unix = dependencies_.clock.unix_ns();
  return due_unix > now_unix ? now + (due_unix - now_unix) : now;
}

}  // namespace collect::upload

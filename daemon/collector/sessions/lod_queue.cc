#include "daemon/collector/sessions/lod_queue.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <utility>

#include "daemon/symbolize/child_program.h"
#include "daemon/web/page_request.h"
#include "formats/core/threads.h"
#include "storage/model/session_files.h"
#include "storage/model/session_layout.h"

namespace collect::daemon {
namespace {

constexpr std::chrono::hours kDeadline{1};
constexpr uint64_t kMaxAnswerBytes = 64u << 10;  // an error, if anything
constexpr uint64_t kEventBytesOfALodByte = 100;  // so somewhat larger than LOD.md says

// What the files will take together.
uint64_t bytes_of_lods(const std::string& directory) {
  namespace fs = std::filesystem;
  uint64_t bytes = 0;
  std::error_code error;
  for (const auto& thread : fs::directory_iterator(directory, error)) {
    const uint64_t size = fs::file_size(thread.path() / storage::kIndexFile, error);
    if (!error) bytes += size;
  }
  return bytes / kEventBytesOfALodByte + 1;
}

}  // namespace

LodQueue::LodQueue(std::string program, storage::Fs& fs, const storage::SpaceGuard::Limits& limits,
                   OnFailed on_failed)
    : program_(std::move(program)), fs_(fs), limits_(limits), on_failed_(std::move(on_failed)) {
  auto started = start_thread("lods", [this] { serve(); });
  if (started.ok()) {
    thread_ = std::move(*started);
  } else {
    started_ = started.error();
  }
}

void LodQueue::add(const std::string& name, const std::string& directory) {
  {
    const std::lock_guard lock(mutex_);
    const bool is_there =
        std::ranges::any_of(queue_, [&](const Job& job) { return job.name == name; });
    if (stopping_ || is_there || queue_.size() >= kMaxQueued) return;
    queue_.push_back({name, directory});
  }
  changed_.notify_all();
}

void LodQueue::forget(const std::string& name) {
  std::unique_lock lock(mutex_);
  std::erase_if(queue_, [&](const Job& job) { return job.name == name; });
  if (current_ != name) return;
  cancel_ = true;
  changed_.wait(lock, [&] { return current_ != name; });
}

void LodQueue::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    cancel_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void LodQueue::serve() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return stopping_ || !queue_.empty(); });
    if (stopping_) return;
    const Job job = std::move(queue_.front());
    queue_.pop_front();
    current_ = job.name;
    lock.unlock();
    const Status done = contain([&] { make(job); });
    if (!done.ok()) on_failed_(job.name, done.error().message);
    lock.lock();
    current_.clear();
    if (!stopping_) cancel_ = false;
    changed_.notify_all();
  }
}

void LodQueue::make(const Job& job) {
  const Status admitted =
      storage::SpaceGuard(fs_, job.directory, limits_).admit(0, bytes_of_lods(job.directory));
  if (!admitted.ok()) {
    on_failed_(job.name, admitted.error().message);
    return;
  }
  web::PageRequest request;
  request.directory = job.directory;
  request.want = web::PageWant::kLods;
  const std::string asked = request.to_json();
  std::string answer;
  const auto ending = symbolize::run_child(
      {program_}, Bytes(reinterpret_cast<const uint8_t*>(asked.data()), asked.size()),
      {kDeadline, kMaxAnswerBytes, &cancel_}, [&](Bytes bytes) {
        answer.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
        return Status();
      });
  if (!ending.ok() || !ending->fault.empty()) storage::remove_half_made_lods(fs_, job.directory);
  if (!ending.ok()) {
    if (ending.code() != Code::kCancelled) on_failed_(job.name, ending.error().message);
  } else if (!ending->fault.empty()) {
    on_failed_(job.name, ending->fault);
  } else if (const auto error = web::error_in_page(answer, request.want)) {
    on_failed_(job.name, *error);
  }
}

}  // namespace collect::daemon

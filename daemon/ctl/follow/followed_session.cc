#include "daemon/ctl/follow/followed_session.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "daemon/ctl/follow/limits.h"
#include "storage/manifest/manifest.h"
#include "storage/model/session_layout.h"
#include "storage/model/switch_times.h"
#include "storage/read/session_files.h"
#include "storage/read/session_search.h"
#include "storage/read/thread_breaks.h"

namespace collect::ctl::follow {

Result<FollowedSession> FollowedSession::open(const std::string& directory) {
  auto root = storage::RootedDirectory::open(directory);
  if (!root.ok()) return root.error();
  FollowedSession session(std::move(root).value());
  session.skip_switches();
  COLLECT_TRY(session.look());
  return session;
}

Status FollowedSession::look() {
  const auto names = root_.list("");
  if (!names.ok()) return names.error();
  // Before the manifest, so that it says what was lost before these events.
  for (auto& [n, thread] : threads_) thread.settled = thread.index ? thread.index->size() : 0;
  COLLECT_TRY(look_at_manifest());
  for (const std::string& name : *names) {
    const auto n = read::number_after(name, "thread_");
    if (!n) continue;
    const auto [at, is_new] = threads_.try_emplace(*n);
    if (is_new) {
      at->second.n = *n;
      apply_manifest(at->second);
    }
    look_at(at->second);
  }
  look_at_switches();
  // Nothing comes behind that any more.
  if (!is_sealed_) return {};
  for (auto& [n, thread] : threads_) thread.settled = thread.index ? thread.index->size() : 0;
  return {};
}

void FollowedSession::look_at(FollowedThread& thread) {
  const std::string below = fmt::format("thread_{}/index.atf", thread.n);
  const auto status = root_.look_at(below);
  if (!status.ok() || static_cast<uint64_t>(status->st_size) == thread.size_bytes) return;
  auto file = read::FileBytes::open(root_, below);
  if (!file) return;  // not yet: the next look tries again
  atf::Findings findings;
  auto index = atf::IndexReader::open(file->bytes(), findings);
  // A shorter one is of a seal that was done again: what was read of it stays as it was.
  if (!index || (thread.index && index->size() < thread.index->size())) return;
  thread.size_bytes = static_cast<uint64_t>(status->st_size);
  thread.thread_id = index->header().thread_id;
  thread.index.reset();
  thread.file = std::move(*file);
  thread.index = std::move(index);
}

void FollowedThread::add_wait(const calls::Stall& wait) {
  if (waits.size() < kMaxWaitsOfThread) {
    waits.push_back(wait);
    return;
  }
  calls::Stall& last = waits.back();
  last.last_ns = std::max(last.last_ns, wait.last_ns);
  last.stalled_ns += wait.stalled_ns;
  last.count += wait.count;
}

// What was before belongs to no call that will be known.
void FollowedSession::skip_switches() {
  const auto file = read::FileBytes::open(root_, storage::kSwitchesFile);
  if (file) switch_bytes_ = storage::whole_switch_frames(file->bytes());
}

// Frames that do not hold are the end of it: what calls did is known without them.
void FollowedSession::look_at_switches() {
  const auto status = root_.look_at(storage::kSwitchesFile);
  if (!status.ok() || static_cast<uint64_t>(status->st_size) <= switch_bytes_) return;
  const auto file = read::FileBytes::open(root_, storage::kSwitchesFile);
  if (!file || file->bytes().size() <= switch_bytes_) return;
  Bytes fresh = file->bytes().subspan(switch_bytes_);
  fresh = fresh.first(std::min(fresh.size(), kMaxSwitchBytesOfLook));
  fresh = fresh.first(storage::whole_switch_frames(fresh));
  switch_bytes_ += fresh.size();
  std::vector<storage::Stall> switches;
  (void)storage::decode_switches(fresh, switches);
  std::ranges::stable_sort(switches, {}, &storage::Stall::first_ns);
  for (const storage::Stall& one : switches) {
    const auto thread = threads_.find(one.thread.value_or(UINT32_MAX));
    if (thread == threads_.end() || !storage::is_off_processor(one.kind)) continue;
    thread->second.add_wait(read::call_stall_of(one));
  }
}

Status FollowedSession::look_at_manifest() {
  const auto status = root_.look_at("manifest.json");
  // It is there as long as the session is.
  if (!status.ok()) return manifests_ == 0 ? Status() : status.error();
  // It is replaced as a whole.
  const int64_t time_ns = status->st_mtim.tv_sec * int64_t{1'000'000'000} + status->st_mtim.tv_nsec;
  if (status->st_ino == manifest_inode_ && time_ns == manifest_time_ns_) return {};
  const auto file = read::FileBytes::open(root_, "manifest.json");
  if (!file || file->bytes().size() > storage::kMaxManifestBytes) return {};
  std::string text(reinterpret_cast<const char*>(file->bytes().data()), file->bytes().size());
  auto said = read::SessionManifest::parse(text);
  if (!said.ok()) return {};
  manifest_inode_ = status->st_ino;
  manifest_time_ns_ = time_ns;
  text_ = std::move(text);
  said_ = std::move(*said);
  ++manifests_;
  is_sealed_ = said_.state != storage::SessionState::kRecording;
  for (auto& [n, thread] : threads_) apply_manifest(thread);
  return {};
}

void FollowedSession::apply_manifest(FollowedThread& thread) const {
  if (const read::ManifestThread* said = said_.thread(thread.n)) {
    thread.name = said->name;
    thread.lost = said->lost_events;
  }
  thread.gaps = read::call_gaps_of(said_, thread.n);
}

}  // namespace collect::ctl::follow

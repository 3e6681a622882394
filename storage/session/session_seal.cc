// The ends of a session: copying it, suspending it and sealing it.
#include <algorithm>

#include "storage/manifest/manifest_file.h"
#include "storage/session/session.h"

namespace collect::storage {
Result<SessionCut> Session::cut() {
  COLLECT_TRY(commit());
  refresh_manifest();
  auto files = list_session_files(fs_, session_path_);
  if (!files.ok()) return files.error();
  std::erase_if(*files, [](const SessionFileInfo& file) {
    // Manifest, containers.
    return file.path.find('/') == std::string::npos && file.path != kSwitchesFile;
  });
  return SessionCut{manifest_, std::move(*files)};
}

Status Session::suspend(const std::string& why) {
  if (!failure_.ok()) return failure_;
  if (!suspending_) COLLECT_TRY(note(why));
  suspending_ = true;  // kExhausted: it is called again
  COLLECT_TRY(commit());
  refresh_manifest();
  roller_.end_container(manifest_);
  note_capture_problem();
  COLLECT_TRY(write_manifest_now(durable()));
  return release_files();
}

Status Session::seal(SessionState state, const std::string& reason) {
  if (sealed_) return clean_up();
  COLLECT_CHECK(state != SessionState::kRecording);
  Status first_error = reserve_.release();
  threads_.account_for_damage(manifest_.sealing);
  manifest_.sealing = true;
  manifest_.sealing_state = failure_.ok() ? state : SessionState::kFailed;
  manifest_.reason = reason;
  if (!failure_.ok()) live_.fail(failure_);
  bound_text(manifest_.reason);
  live_.end_detail_window(totals().last_ns);
  const Status marked = write_manifest_now(durable());
  if (!marked.ok() && marked.code() == Code::kExhausted) return marked;
  if (!marked.ok()) live_.fail(marked);
  if (first_error.ok()) first_error = marked;
  const Status passthrough = passthrough_.seal(durable());
  if (!passthrough.ok() && passthrough.code() == Code::kExhausted) return passthrough;
  const SessionThreads::Sealed threads = threads_.seal();
  if (!threads.error.ok() && threads.error.code() == Code::kExhausted) return threads.error;
  for (const Status& unsynced : threads.unsynced) live_.fail(unsynced);
  if (first_error.ok()) first_error = threads.error;
  if (first_error.ok()) first_error = passthrough;
  if (!passthrough.ok() || !threads.is_whole) {
    // The manifest on disk still says "recording": the next start tries again.
    return first_error;
  }
  symbols_.finish();
  manifest_.sealing = false;
  manifest_.state = manifest_.sealing_state;
  // The clock of the day may have been set back meanwhile.
  manifest_.finished_unix_ns = std::max(manifest_.created_unix_ns, clock().unix_ns());
  refresh_manifest();
  roller_.finish(manifest_);
  note_capture_problem();
  refresh_containers();
  Status written = write_manifest_now(true);
  if (!written.ok() && written.code() == Code::kIo) {
    // What can be written but not synced says at least why.
    live_.fail(written);
    if (first_error.ok()) first_error = written;
    written = write_manifest_now(false);
  }
  COLLECT_TRY(written);
  sealed_ = true;
  const Status cleaned = clean_up();
  return first_error.ok() ? cleaned : first_error;
}

// What only an unsealed session needs. The next start of the daemon removes what stays here.
Status Session::clean_up() {
  Status first_error = reserve_.release();
  const Status forgotten = remove_resume_key(fs_, directory());
  if (first_error.ok()) first_error = forgotten;
  const Status removed = threads_.remove_journals();
  return first_error.ok() ? removed : first_error;
}

}  // namespace collect::storage

#include "daemon/ingest/session/old_sessions.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "daemon/ingest/link/limits.h"
#include "daemon/ingest/session/core.h"
#include "storage/model/session_files.h"

namespace collect::ingest {

SystemTime unix_time(uint64_t unix_ns) {
  return SystemTime(
      std::chrono::duration_cast<SystemTime::duration>(std::chrono::nanoseconds(unix_ns)));
}

SessionSnapshot snapshot_of(const storage::Manifest& manifest,
                            const storage::SessionPath& session_path) {
  SessionSnapshot shown;
  shown.name = session_path.name;
  shown.directory = session_path.directory;
  shown.state = manifest.state == storage::SessionState::kComplete    ? SessionState::kComplete
                : manifest.state == storage::SessionState::kRecovered ? SessionState::kRecovered
                                                                      : SessionState::kFailed;
  shown.recording = manifest.identity.recording;
  shown.process_name = manifest.identity.process_name;
  shown.pid = manifest.identity.pid;
  shown.device_id = manifest.identity.device_id;
  shown.route = manifest.identity.route;
  shown.tag = manifest.identity.tag;
  shown.start_time = unix_time(manifest.created_unix_ns);
  shown.end_time = unix_time(manifest.finished_unix_ns);
  shown.totals = manifest.totals;
  shown.status = manifest.reason;
  shown.process_end = manifest.process_end;
  shown.symbols = manifest.symbols_state;
  shown.health = storage::health_of(manifest);
  if (shown.state == SessionState::kComplete) shown.state = shown_state(shown.health.state);
  return shown;
}

OldSessions::OldSessions(IngestCore& core, Restore restore)
    : core_(core), restore_(std::move(restore)) {}

void OldSessions::list() {
  core_.seal_threads.add({}, [this] { list_next(); });
}

// Before any agent can connect, so that an agent that comes back finds its session. Only what was
// being written is looked at: a session keeps its reserve file until its sealing begins.
void OldSessions::find() {
  const std::string& root = core_.options.storage.root;
  std::vector<Error> refused;
  auto session_paths = storage::list_sessions(core_.fs, root, &refused);
  if (!session_paths.ok()) {
    spdlog::warn("{}: old sessions are not resumed: {}", root, to_string(session_paths.error()));
    return;
  }
  if (!refused.empty()) {
    spdlog::warn("{} entries below {} are not looked at; the first: {}", refused.size(), root,
                 to_string(refused.front()));
  }
  for (const storage::SessionPath& session_path : *session_paths) {
    if (!core_.fs.exists(fmt::format("{}/{}", session_path.directory, storage::kReserveFile))) {
      session_paths_.push_back(session_path);
      continue;
    }
    const auto manifest = storage::read_manifest(core_.fs, session_path.directory);
    if (!manifest.ok() || manifest->sealing ||
        manifest->state != storage::SessionState::kRecording) {
      session_paths_.push_back(session_path);
      continue;
    }
    const storage::SessionIdentity& identity = manifest->identity;
    if (identity.recording == 0) {  // a feed's: there is no agent that could come back for it
      session_paths_.push_back(session_path);
      continue;
    }
    const auto key = storage::read_resume_key(core_.fs, session_path.directory);
    if (!key.ok()) {  // no one can show that it is that process
      spdlog::warn("{} can't be resumed: {}", session_path.name, to_string(key.error()));
      session_paths_.push_back(session_path);
      continue;
    }
    spdlog::info("{} was not sealed; it waits {} s for its agent", session_path.name,
                 core_.options.resume.count() / 1000);
    restore_(*manifest, *key, session_path);
  }
  // The newest are listed. Until that is done, it is not known what they hold.
  const size_t left_out = session_paths_.size() - std::min(session_paths_.size(), kListedSessions);
  session_paths_.erase(session_paths_.begin(),
                       session_paths_.begin() + static_cast<ptrdiff_t>(left_out));
  for (const storage::SessionPath& session_path : session_paths_)
    core_.completed.expect(session_path.pid);
}

// On the sealing thread: names the sessions that are on disk, and finishes those whose sealing was
// interrupted, or whose beginning was. Only those that were there before any agent was served: what
// is just being made looks like what was left half-made. One at a time, the newest first, so that
// sessions that end meanwhile are sealed in between.
void OldSessions::list_next() {
  if (session_paths_.empty() || core_.stopping) return;
  const storage::SessionPath session_path = std::move(session_paths_.back());
  session_paths_.pop_back();
  list_one(session_path);
  core_.completed.looked_at(session_path.pid);
  core_.seal_threads.add({}, [this] { list_next(); });
}

void OldSessions::list_one(const storage::SessionPath& session_path) {
  auto manifest = storage::read_manifest(core_.fs, session_path.directory);
  std::vector<uint64_t> functions;
  if (!manifest.ok() || manifest->state == storage::SessionState::kRecording) {
    auto recovered =
        storage::recover_session(core_.fs, core_.options.storage, session_path.directory);
    if (!recovered.ok()) {
      const bool again =
          (recovered.code() == Code::kNoSpace || recovered.code() == Code::kExhausted) &&
          core_.seal_threads.add_later(
              {}, [this, session_path] { list_one(session_path); }, kSealAgain, kMaxDeferredSeals);
      if (!again) spdlog::warn("{}: {}", session_path.name, to_string(recovered.error()));
      return;
    }
    spdlog::info("{} is sealed: {} events: {}", session_path.name, recovered->totals.events,
                 recovered->reason);
    functions = std::move(recovered->functions);
    manifest = storage::read_manifest(core_.fs, session_path.directory);
  }
  if (!manifest.ok()) return;
  storage::remove_half_made_lods(core_.fs, session_path.directory);
  // One that was made of another session is not what the agent recorded into.
  const auto name = storage::parse_session_name(session_path.session);
  const bool is_recorded = name && name->is_recorded();
  if (manifest->state == storage::SessionState::kComplete && is_recorded) {
    core_.completed.add(manifest->identity.process_id, manifest->identity.recording, session_path);
  }
  SessionSnapshot shown = snapshot_of(*manifest, session_path);
  shown.packed =
      core_.fs.exists(fmt::format("{}/{}", session_path.directory, storage::kPackedLanesFile));
  core_.observer.session_changed(shown);
  if (!core_.options.storage.symbolize) return;
  if (manifest->symbols_state != storage::SymbolsState::kPending) return;
  core_.observer.to_be_named(session_path.name, session_path.directory, std::move(functions));
}

}  // namespace collect::ingest

// Sessions are created here. One that was not sealed is resumed when its agent comes back, else
// recovered: STORAGE.md "Recovery" has the table.
#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <utility>

#include "formats/core/threads.h"
#include "storage/container/container_pages.h"
#include "storage/model/switch_times.h"
#include "storage/session/session.h"
#include "storage/session/thread_reopening.h"

namespace collect::storage {
namespace {

// Texts of peers are shown, never used: bounded here, made valid UTF-8 when they are written.
void bound(SessionIdentity& identity) {
  for (std::string* text :
       {&identity.process_name, &identity.executable, &identity.device_id, &identity.device_model,
        &identity.boot_id, &identity.route, &identity.tag, &identity.agent_version,
        &identity.no_switches, &identity.no_samples}) {
    bound_text(*text);
  }
}

Result<std::string> absolute_path(const std::string& path) {
  std::error_code error;
  std::string absolute = std::filesystem::absolute(path, error).lexically_normal().string();
  if (error)
    return Error{Code::kIo, fmt::format("{}: no absolute path: {}", path, error.message())};
  while (absolute.size() > 1 && absolute.back() == '/') absolute.pop_back();
  return absolute;
}

SessionPath session_path_of(const std::string& directory) {
  const std::filesystem::path path(directory);
  SessionPath session_path;
  session_path.session = path.parent_path().filename().string();
  session_path.pid = parse_pid_directory(path.filename().string()).value_or(0);
  session_path.name = fmt::format("{}/{}", session_path.session, path.filename().string());
  session_path.directory = path.string();
  return session_path;
}

std::string parent_of(const std::string& directory) {
  return std::filesystem::path(directory).parent_path().string();
}

Result<std::vector<uint32_t>> thread_ids_in(Fs& fs, const std::string& directory) {
  auto names = fs.list_directory(directory);
  if (!names.ok()) return names.error();
  std::vector<uint32_t> ids;
  for (const std::string& name : *names) {
    if (const auto id = parse_thread_directory(name)) ids.push_back(*id);
  }
  std::sort(ids.begin(), ids.end());
  return ids;
}

// What the directory itself says of a session whose manifest is gone.
Manifest manifest_without_file(Fs& fs, const SessionPath& session_path,
                               const std::vector<uint32_t>& thread_ids) {
  Manifest manifest;
  manifest.identity.pid = session_path.pid;
  for (const uint32_t id : thread_ids) {
    const auto format =
        read_thread_format(fs, thread_file_path(session_path.directory, id, Lane::kIndex));
    if (!format.ok()) continue;
    manifest.identity.version = format.value().version;
    manifest.identity.arch = format.value().arch;
    manifest.identity.os = format.value().os;
    manifest.identity.clock = format.value().clock;
    break;
  }
  return manifest;
}

// The manifest of a session where it cannot be read as it is: its text with what JSON has no form
// for replaced, else the containers', else what the directory itself says.
Result<Manifest> manifest_otherwise(Fs& fs, const SessionPath& session_path,
                                    const std::vector<uint32_t>& thread_ids) {
  const auto text = read_manifest_json(fs, session_path.directory);
  ManifestReading reading;
  if (text.ok()) {
    auto manifest = manifest_from_json(*text, &reading);
    if (manifest.ok() && !reading.said_state.empty()) return manifest;
  }
  auto contained = newest_container_manifest(fs, session_path.directory);
  if (!contained.ok()) return contained.error();
  if (!*contained) return manifest_without_file(fs, session_path, thread_ids);
  (*contained)->state = SessionState::kRecording;
  (*contained)->sealing = false;
  return std::move(**contained);
}

Status remove_if_there(Fs& fs, const std::string& path) {
  return fs.exists(path) ? fs.remove_file(path) : Status();
}

// A thread directory that was being made when the daemon ended: events come after a whole header,
// so it has none, and no manifest names it. Removed; an agent that comes back opens the stream
// again.
Result<bool> remove_unborn_thread(Fs& fs, const std::string& directory) {
  const std::string index = fmt::format("{}/{}", directory, kIndexFile);
  if (fs.exists(index)) {
    auto file = fs.open(index, OpenMode::kRead);
    if (!file.ok()) return file.error();
    auto size = (*file)->size();
    if (!size.ok()) return size.error();
    if (*size >= atf::kHeaderBytes) return false;
  }
  for (const char* name : {kIndexFile, kDetailFile, kStreamJournalFile}) {
    COLLECT_TRY(remove_if_there(fs, fmt::format("{}/{}", directory, name)));
  }
  COLLECT_TRY(fs.remove_directory(directory));
  return true;
}

// Those that a manifest lists, and those whose directories are there; by id.
Result<std::vector<ManifestThread>> threads_found(Fs& fs, const SessionPath& session_path,
                                                  std::vector<ManifestThread> listed) {
  auto ids = thread_ids_in(fs, session_path.directory);
  if (!ids.ok()) return ids.error();
  std::map<uint32_t, ManifestThread> threads;
  for (ManifestThread& thread : listed) threads[thread.id] = std::move(thread);
  for (const uint32_t id : *ids) {
    if (threads.contains(id)) continue;
    auto removed = remove_unborn_thread(
        fs, fmt::format("{}/{}", session_path.directory, thread_directory_name(id)));
    if (!removed.ok()) return removed.error();
    if (*removed) continue;
    threads[id].id = id;
    threads[id].unlisted = true;
  }
  if (threads.size() > kMaxThreads) {
    return Error{Code::kLimit,
                 fmt::format("{}: more than {} threads", session_path.name, kMaxThreads)};
  }
  std::vector<ManifestThread> found;
  for (auto& [id, thread] : threads) found.push_back(std::move(thread));
  return found;
}

// What a daemon that ended between the last manifest and the clean-up left behind. The manifest may
// not be synced yet; it is before anything goes that only an older one needs.
Status remove_leftovers(Fs& fs, const std::string& directory) {
  std::vector<std::string> paths = {fmt::format("{}/{}", directory, kManifestTemporaryFile),
                                    fmt::format("{}/{}", directory, kReserveFile),
                                    fmt::format("{}/{}", directory, kResumeKeyFile)};
  auto ids = thread_ids_in(fs, directory);
  if (!ids.ok()) return ids.error();
  for (const uint32_t id : *ids) {
    for (const char* name : {kStreamJournalFile, kLodTemporaryFile}) {
      paths.push_back(fmt::format("{}/{}/{}", directory, thread_directory_name(id), name));
    }
  }
  std::erase_if(paths, [&](const std::string& path) { return !fs.exists(path); });
  if (paths.empty()) return {};
  COLLECT_TRY(fs.sync_directory(directory));
  for (const std::string& path : paths) COLLECT_TRY(fs.remove_file(path));
  return {};
}

}  // namespace

Status Session::begin(SessionIdentity identity, const std::optional<ResumeKey>& key) {
  bound(identity);
  manifest_.identity = std::move(identity);
  if (options_.collector.is_known()) manifest_.identity.collector = options_.collector;
  manifest_.created_unix_ns = clock().unix_ns();
  COLLECT_TRY(reserve_.grow_to(kReserveBytes));
  if (key) COLLECT_TRY(write_resume_key(fs_, directory(), *key, durable()));
  return write_manifest_now(durable());
}

Result<std::unique_ptr<Session>> Session::create(Fs& fs, const SessionOptions& options,
                                                 SessionIdentity identity,
                                                 const std::optional<ResumeKey>& key) {
  auto root = absolute_path(options.root);
  if (!root.ok()) return root.error();
  if (options.root_lock != nullptr) COLLECT_TRY(options.root_lock->hold());
  Clock& clock = options.clock != nullptr ? *options.clock : system_clock();
  auto place = make_session_directory(fs, *root, clock.unix_ns(), identity.pid,
                                      options.durability == Durability::kFsync);
  if (!place.ok()) return place.error();
  const std::string directory = place->directory;
  const std::string session_directory = fmt::format("{}/{}", *root, place->session);
  std::unique_ptr<Session> session;
  Status begun;
  const Status contained = contain([&] {  // memory may end on the way
    session = std::make_unique<Session>(fs, options, std::move(*place));
    begun = session->begin(std::move(identity), key);
  });
  if (begun.ok()) begun = contained;
  if (!begun.ok()) {
    // Best effort: what stays is a directory without threads, which recovery removes.
    (void)fs.remove_file(fmt::format("{}/{}", directory, kReserveFile));
    (void)remove_resume_key(fs, directory);
    (void)fs.remove_file(fmt::format("{}/{}", directory, kManifestFile));
    (void)fs.remove_directory(directory);
    (void)fs.remove_directory(session_directory);
    return begun.error();
  }
  return session;
}

Status Session::reopen(Manifest manifest, std::vector<std::string>* problems, bool may_come_again) {
  auto threads = threads_found(fs_, session_path_, std::move(manifest.threads));
  if (!threads.ok()) return threads.error();
  manifest.threads = std::move(*threads);
  roller_.adopt(manifest.containers, manifest.containers_removed);
  live_.adopt(std::move(manifest));
  ThreadReopening reopening(fs_, options_, directory(), manifest_, threads_, symbols_,
                            may_come_again);
  COLLECT_TRY(reopening.run(*problems));
  restored_records_ = reopening.restored_records();
  for (const std::string& restored : reopening.notes()) COLLECT_TRY(note(restored));
  stalls_.adopt(manifest_.stalls);
  COLLECT_TRY(passthrough_.reopen(manifest_, problems));
  std::vector<Stall> switches;
  const Status read = read_switches(fs_, directory(), switches);
  if (!read.ok() && read.code() == Code::kExhausted) return read;
  if (!read.ok()) problems->push_back(read.error().message);
  stalls_.adopt(switches);
  symbols_.add(switches);
  stored_bytes_ = totals().stored_bytes;
  COLLECT_TRY(remove_if_there(fs_, fmt::format("{}/{}", directory(), kManifestTemporaryFile)));
  COLLECT_TRY(remove_if_there(fs_, fmt::format("{}/{}", directory(), kReserveFile)));
  live_.change_before_ack();
  return {};
}

Result<std::unique_ptr<Session>> Session::resume(Fs& fs, const SessionOptions& options,
                                                 const std::string& directory) {
  auto manifest = read_manifest(fs, directory);
  if (!manifest.ok()) return manifest.error();
  if (manifest->state != SessionState::kRecording || manifest->sealing) {
    return Error{Code::kCancelled, directory + ": the session is sealed"};
  }
  auto session = std::make_unique<Session>(fs, options, session_path_of(directory));
  std::vector<std::string> problems;
  COLLECT_TRY(session->reopen(std::move(*manifest), &problems, true));
  COLLECT_TRY(session->note("resumed after the daemon ended"));
  for (const std::string& problem : problems) COLLECT_TRY(session->note(problem));
  COLLECT_TRY(
      session->reserve_.grow_to(kReserveBytes + session->threads_.size() * kReserveBytesPerThread));
  return session;
}

Result<RecoveredSession> recover_session(Fs& fs, const SessionOptions& options,
                                         const std::string& directory) {
  RecoveredSession recovered;
  const SessionPath session_path = session_path_of(directory);
  auto manifest = read_manifest(fs, directory);
  if (!manifest.ok()) {
    if (manifest.code() != Code::kNotFound && manifest.code() != Code::kDamaged) {
      return manifest.error();
    }
    auto ids = thread_ids_in(fs, directory);
    if (!ids.ok()) return ids.error();
    const bool is_dial9 = fs.exists(fmt::format("{}/{}", directory, kDial9File));
    if (ids->empty() && !is_dial9) {
      COLLECT_TRY(remove_leftovers(fs, directory));
      COLLECT_TRY(remove_if_there(fs, fmt::format("{}/{}", directory, kManifestFile)));
      COLLECT_TRY(fs.remove_directory(directory));
      (void)fs.remove_directory(parent_of(session_path.directory));  // stays where it holds others
      return Error{Code::kNotFound, directory + ": nothing was recorded there; removed"};
    }
    recovered.problems.push_back(to_string(manifest.error()));
    manifest = manifest_otherwise(fs, session_path, *ids);
    if (!manifest.ok()) return manifest.error();
    if (is_dial9) {
      manifest->identity.process_name = passthrough_kind_name(PassthroughKind::kDial9);
    }
  }
  if (manifest->state != SessionState::kRecording) {
    COLLECT_TRY(remove_leftovers(fs, directory));
    recovered.state = manifest->state;
    recovered.reason = manifest->reason;
    recovered.totals = manifest->totals;
    recovered.health = health_of(*manifest);
    recovered.was_sealed = true;
    return recovered;
  }
  recovered.state = manifest->sealing ? manifest->sealing_state : SessionState::kRecovered;
  recovered.reason =
      manifest->sealing ? manifest->reason : "the daemon ended before the session did";
  Session session(fs, options, session_path);
  COLLECT_TRY(session.reopen(std::move(*manifest), &recovered.problems, false));
  for (const std::string& problem : recovered.problems) COLLECT_TRY(session.note(problem));
  COLLECT_TRY(session.seal(recovered.state, recovered.reason));
  recovered.state = session.manifest().state;
  recovered.reason = session.manifest().reason;
  recovered.totals = session.totals();
  recovered.health = session.health();
  recovered.functions = session.functions();
  recovered.restored_records = session.restored_records();
  return recovered;
}

}  // namespace collect::storage

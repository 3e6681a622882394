// Every name below a root directory, in one place: made here, recognised here. STORAGE.md "Layout".
// No string of a peer is ever part of a path: names consist of our own words, digits and nothing
// else, and a name that comes from outside is parsed and made again before it is used.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/core/result.h"
#include "storage/fs/fs.h"
#include "storage/model/session_types.h"

namespace collect::storage {

inline constexpr char kRootLockFile[] = ".collectord.lock";
inline constexpr char kCollectorIdFile[] = ".collector_id";
inline constexpr char kCollectorIdTemporaryFile[] = ".collector_id.new";
inline constexpr char kManifestFile[] = "manifest.json";
inline constexpr char kManifestTemporaryFile[] = "manifest.json.new";
inline constexpr char kReserveFile[] = "reserve.space";
inline constexpr char kResumeKeyFile[] = "resume.key";
inline constexpr char kIndexFile[] = "index.atf";
inline constexpr char kDetailFile[] = "detail.atf";
inline constexpr char kDetailTemporaryFile[] = "detail.atf.new";
// "unlinked_12345.atf": detail records from that number of the agent's on, whose events another
// part of the session has (STORAGE.md "Parts").
std::string unlinked_file_name(uint64_t first_seq);
std::optional<uint64_t> parse_unlinked_file_name(std::string_view name);
inline constexpr char kLodFile[] = "index.lod";  // formats/calls/LOD.md; made after the seal
inline constexpr char kLodTemporaryFile[] = "index.lod.new";
inline constexpr char kPackedLanesFile[] = "lanes.packed";  // storage/container/packed_lanes.h
inline constexpr char kPackedLanesTemporaryFile[] = "lanes.packed.new";
inline constexpr char kContainerTemporaryFile[] = "capture.rtc.new";
inline constexpr char kStreamJournalFile[] = "stream.journal";
inline constexpr char kDial9File[] = "stream.dial9";
inline constexpr char kSwitchesFile[] = "switches.bin";
// How many snapshots of one session there may be.
inline constexpr uint32_t kMaxSnapshots = 1000;
// Where a session is made of another one. It is moved out of there when it is whole; what a process
// left there that was killed is removed by the next.
inline constexpr char kConvertingDirectory[] = ".converting";

// "capture-000001.rtc"; numbers beyond six digits do not exist.
inline constexpr uint32_t kMaxContainerNumber = 999'999;

// How many sessions may begin within one second.
inline constexpr uint32_t kMaxSessionsPerSecond = 10000;

// One pid directory: the unit that readers open.
struct SessionPath {
  std::string session;  // "session_20260131_235959", "session_20260131_235959_2_atf1"
  uint32_t pid = 0;
  std::string name;       // "<session>/pid_<pid>"
  std::string directory;  // "<root>/<name>"

  std::string root() const { return directory.substr(0, directory.size() - name.size() - 1); }
};

std::string session_name(uint64_t unix_ns, uint32_t attempt);  // local time; attempt counts from 1
std::string pid_directory_name(uint32_t pid);
std::string thread_directory_name(uint32_t id);
// A file of a thread: "thread_0/index.atf", and its path in a session's directory.
std::string thread_file_name(uint32_t thread, Lane lane);
std::string thread_file_path(const std::string& directory, uint32_t thread, Lane lane);

struct SessionNameParts {
  std::string_view stamp;  // "20260131_235959"
  uint32_t attempt = 1;    // N of session_…_N
  // N of session_…_snapN: what the session of that name without this ending held at some moment.
  std::optional<uint32_t> snapshot{};
  // N of session_…_atfN: it was made of the session of that name without this ending.
  std::optional<uint32_t> converted_to{};

  // An agent recorded into it; it was not made of another session.
  bool is_recorded() const { return !snapshot && !converted_to; }
};
std::optional<SessionNameParts> parse_session_name(std::string_view name);
bool is_session_name(std::string_view name);
// "session_…_atf1", of a recorded session's name or of a converted one's.
std::string converted_session_name(std::string_view name, uint32_t atf_version);
// "session_…_snap1", of a recorded session's name.
std::string snapshot_session_name(std::string_view name, uint32_t number);
std::optional<uint32_t> parse_pid_directory(std::string_view name);
std::optional<uint32_t> parse_thread_directory(std::string_view name);
const char* passthrough_file_name(PassthroughKind kind);
std::string container_name(uint32_t number);
std::optional<uint32_t> parse_container_name(std::string_view name);

// The place named "session_…/pid_…", whether it exists or not; absent for any other words.
std::optional<SessionPath> parse_session_path(const std::string& root, std::string_view name);
// The session whose directory this is, without a slash at its end.
std::optional<SessionPath> parse_session_directory(const std::string& directory);

// Makes <root> where needed, the session directory and the pid directory; `durable`: and syncs what
// names them. mkdir decides between two that begin in the same second, so also between two
// processes.
Result<SessionPath> make_session_directory(Fs& fs, const std::string& root, uint64_t unix_ns,
                                           uint32_t pid, bool durable);

// All places below the root, oldest first. What bears another name is left out. `refused` gets what
// bears a session's name and may not be looked into: a link in its place, for example.
Result<std::vector<SessionPath>> list_sessions(Fs& fs, const std::string& root,
                                               std::vector<Error>* refused = nullptr);

// Held by a daemon as long as it uses a root, so that no second one recovers its live sessions.
// Thread-safe.
class RootLock {
 public:
  RootLock(Fs& fs, std::string root) : fs_(fs), root_(std::move(root)) {}
  // Makes the root where needed. kUnavailable when another holds it.
  static Result<std::unique_ptr<RootLock>> take(Fs& fs, const std::string& root);

  // Takes the lock; nothing to do while it is held. Where the root was moved or removed meanwhile,
  // it is made and locked again.
  Status hold();

 private:
  Fs& fs_;
  const std::string root_;
  std::mutex mutex_;
  std::unique_ptr<FileLock> lock_;  // guarded by mutex_
};

}  // namespace collect::storage

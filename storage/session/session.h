// One session on disk: its directory, thread files, manifest and seal. STORAGE.md has the picture.
//
// Made up of threads, each with its files (thread_writer.h), and the manifest, kept in memory and
// written when something in it must not be lost, else once a second.
//
// Owned by one storage thread: every function is called there and may block on the disk. It knows
// files and formats; it knows neither sockets nor protobuf: ingest translates.
//
// kExhausted, from any function: this machine is out of descriptors or memory. Nothing is wrong
// with the session; the same call, made again later, continues where this one stopped.
//
// Order of the promises: a page is written only after the manifest on disk names its session, its
// thread and the modules given before it, so everything stored can be read in any case
// next.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "formats/core/result.h"
#include "storage/container/passthrough_streams.h"
#include "storage/container/rtc_roller.h"
#include "storage/fs/fs.h"
#include "storage/manifest/manifest.h"
#include "storage/manifest/session_health.h"
#include "storage/model/resume_key.h"
#include "storage/model/session_files.h"
#include "storage/model/session_layout.h"
#include "storage/model/session_types.h"
#include "storage/session/live_manifest.h"
#include "storage/session/session_stalls.h"
#include "storage/session/session_symbols.h"
#include "storage/session/session_threads.h"
#include "storage/session/space_guard.h"
#include "storage/thread/thread_writer.h"

namespace collect::storage {

// A page of one of so many first threads waits for the manifest that names it. Of the later ones,
// the stream journal names them (a manifest for each would cost their number squared).
inline constexpr size_t kThreadsNamedAtOnce = 64;

// What a session that is still written holds at some moment: for a copy of it.
struct SessionCut {
  Manifest manifest;                   // what it would be if it were written now
  std::vector<SessionFileInfo> files;  // of the threads, as long as they are now
};

struct RecoveredSession {
  SessionState state = SessionState::kRecovered;
  std::string reason;
  SessionTotals totals;
  SessionHealth health;
  uint64_t restored_records = 0;    // damaged in the files, and whole in the containers
  bool was_sealed = false;          // there was nothing to do
  std::vector<uint64_t> functions;  // as Session::functions(); none of a sealed session
  std::vector<std::string>
      problems;  // threads that cannot be read, what was damaged, bytes cut off
};

// Seals a session whose agent is gone: at the start of the daemon, or of `collectctl`. Finishes a
// seal that was interrupted. Works without a manifest too, from the thread directories.
Result<RecoveredSession> recover_session(Fs& fs, const SessionOptions& options,
                                         const std::string& directory);

class Session {
 public:
  // Makes <root>/session_…/pid_<pid>/ and its first manifest. Distinct names within one second.
  // With `key` its agent can continue it after the daemon ended.
  static Result<std::unique_ptr<Session>> create(
      Fs& fs, const SessionOptions& options, SessionIdentity identity,
      const std::optional<ResumeKey>& key = std::nullopt);
  // Opens an unsealed session directory again, cut back to whole records. kCancelled: it is sealed,
  // or its sealing was begun (recover_session finishes that).
  static Result<std::unique_ptr<Session>> resume(Fs& fs, const SessionOptions& options,
                                                 const std::string& directory);

  // A directory of files that are there: reopen() comes first.
  Session(Fs& fs, const SessionOptions& options, SessionPath session_path);
  // `may_come_again`: an agent may send what was not acknowledged.
  Status reopen(Manifest manifest, std::vector<std::string>* problems, bool may_come_again);
  // By reopen(): that were damaged in the files, and are whole in the containers.
  uint64_t restored_records() const { return restored_records_; }

  const std::string& directory() const { return session_path_.directory; }  // absolute
  const std::string& name() const { return session_path_.name; }  // "session_YYYYMMDD_HHMMSS/pid_N"
  const Manifest& manifest() const { return manifest_; }
  const SessionIdentity& identity() const { return manifest_.identity; }

  // Repeats of what is known already are taken silently: agents send all metadata again after a
  // reconnect.
  Status add_modules(std::span<const ModuleInfo> modules) {
    return live_.add_modules(modules, name());
  }
  Status open_stream(const StreamInfo& stream);

  // Stores the pages in order; neighbouring pages of one file become one gathering write. A page
  // that is stored already is skipped, one that is stored in part is cut, one that begins beyond
  // the next record leaves a gap of kLostUnavailable or kLostOverwritten in the manifest. kDamaged:
  // the bytes are not records (counts, lengths, kinds, times running backwards are the peer's
  // fault); nothing of that page was stored. kNoSpace, kIo: as much as was written stays counted.
  Status append_pages(std::span<const Page> pages);

  // Stores the next bytes of a stream of another format: the parts, one behind the other, are whole
  // frames that the caller has checked. They become one object of the container.
  Status append_passthrough(PassthroughKind kind, std::span<const Bytes> parts);
  // The end of the stream: how many bytes came and are no whole frames, and where and why.
  Status end_passthrough(PassthroughKind kind, uint64_t refused_bytes, const std::string& problem);

  // Those of one stream and kind in order of time. Repeats are taken silently.
  Status add_stalls(std::span<const StreamStall> arrived);

  Status close_stream(const StreamEnd& end);
  Status detail_state(const DetailStateChange& change) { return live_.detail_state(change); }
  // A repeat (same time) is taken silently.
  Status function_filter(FunctionFilter filter) { return live_.function_filter(std::move(filter)); }
  Status clock_sync(const ClockSync& sync) { return live_.clock_sync(sync); }
  // Adds a line to the manifest's "events": a refused connection, a reconnect, a damaged page.
  Status note(const std::string& what) { return live_.note(what); }
  // The capture that the session is made of lacks this.
  void input_missing(MissingInput missing) { live_.input_missing(std::move(missing)); }
  void set_lost_without_stream(uint64_t count) { live_.set_lost_without_stream(count); }
  void set_switches_lost(uint64_t count) { live_.set_switches_lost(count); }
  void set_process_end(const ProcessEnd& end) { live_.set_process_end(end); }
  // Into the manifest and the open container. A repeat (same time, same text) is taken silently.
  Status marker(const Marker& marker) { return live_.marker(marker); }
  // Ends the RTC container and begins the next; its path. kUnsupported when none are written.
  Result<std::string> roll_container();
  // Names that are known already, and whether there are more to be looked up.
  void adopt_symbols(std::vector<Symbol> symbols, std::vector<ModuleSymbols> modules,
                     SymbolsState state) {
    symbols_.adopt(std::move(symbols), std::move(modules), state);
  }

  // Makes everything appended so far durable as SessionOptions say, and the manifest true. Called
  // before an ack; cheap when there is nothing to do.
  Status commit();
  // How long commit() and pages have to wait for a manifest that comes before them, because too
  // many were written lately; 0: not at all. Callers that do not ask do not wait.
  uint64_t manifest_wait_ns() const { return live_.wait_ns(options_.budget); }
  // Commits, and says what there is. The files only grow until seal() is called.
  Result<SessionCut> cut();
  // Nothing comes for a while: no file stays open. They are opened again when something does.
  Status release_files();
  // The collector stops, and a later one is to continue by resume(): commits, ends the open
  // container, makes the manifest true and closes every file. Nothing is sealed, and nothing more
  // may be asked than totals(). `why` is for the manifest's events.
  Status suspend(const std::string& why);
  // A write or a sync failed, or a limit was reached: nothing more is stored, and the session can
  // only be sealed, as failed.
  bool failed() const { return !failure_.ok(); }

  bool has_stream(uint32_t stream_id) const { return threads_.slot_of(stream_id).has_value(); }
  // What is stored of a stream; zero of one that was not opened.
  StreamPosition position(uint32_t stream_id) const { return threads_.position(stream_id); }
  std::vector<StreamPosition> positions() const { return threads_.positions(); }  // by stream
  SessionTotals totals() const;
  // As the manifest has it: final once the session is sealed.
  SessionHealth health() const { return health_of(manifest_); }

  // Repairs links where needed, writes footers and headers, writes the final manifest, which says
  // that names are to be looked up. `reason` is for the manifest. After this only totals(),
  // health(), functions() and the names may be asked; and while it is not sealed(), because the
  // disk was full, seal() continues where it stopped.
  Status seal(SessionState state, const std::string& reason);
  // Everything is on disk, up to the last manifest, also where seal() returned an error.
  bool sealed() const { return sealed_; }
  // The ids that occur in the events, sorted; at most kMaxFunctionIds. Empty when no names are
  // wanted.
  std::vector<uint64_t> functions() const { return symbols_.functions(); }

 private:
  Status begin(SessionIdentity identity, const std::optional<ResumeKey>& key);
  Status append_run(std::span<const Page> pages);
  Result<PassthroughFile*> passthrough_file(PassthroughKind kind);
  // Containers take about as much again as what goes into them.
  uint64_t copies() const { return roller_.enabled() ? 2 : 1; }
  void refresh_manifest();
  void refresh_containers();
  Status write_manifest_now(bool durable);
  Status fail(Status status);
  Status make_capture_room();
  void capture_pages(std::span<const Page> pages, uint64_t from, const ThreadWriter& writer);
  void note_capture_problem();
  Status clean_up();
  bool durable() const { return options_.durability == Durability::kFsync; }
  Clock& clock() const { return options_.clock != nullptr ? *options_.clock : system_clock(); }

  // Constant after construction.
  Fs& fs_;
  const SessionOptions options_;
  const SessionPath session_path_;

  SessionReserve reserve_;
  SpaceGuard space_;
  RtcRoller roller_;
  LiveManifest live_;
  Manifest& manifest_ = live_.manifest;
  SessionThreads threads_;
  SessionStalls stalls_;
  SessionSymbols symbols_;
  PassthroughStreams passthrough_;
  uint64_t restored_records_ = 0;
  uint64_t stored_bytes_ = 0;  // of records and passthrough streams, in the files

  bool directory_unsynced_ = false;
  bool suspending_ = false;
  bool sealed_ = false;
  Status failure_;  // the first write error: nothing more is stored after it
};

}  // namespace collect::storage

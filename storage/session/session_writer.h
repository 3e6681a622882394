// One session on disk: its directory, thread files, manifest and seal. STORAGE.md has the picture.
//
// Owned by one storage thread: every function is called there and may block on the disk. It knows
// files and formats; it knows neither sockets nor protobuf: ingest translates.
//
// kExhausted, from any function: this machine is out of descriptors or memory. Nothing is wrong
// with the session; the same call, made again later, goes on where this one stopped.
//
// Order of the promises: a page is written only after the manifest on disk names its session, its
// thread and the modules given before it, so whatever was stored can be read, whatever happens
// next.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "formats/core/result.h"
#include "storage/fs/fs.h"
#include "storage/manifest/manifest.h"
#include "storage/manifest/session_health.h"
#include "storage/model/resume_key.h"
#include "storage/model/session_files.h"
#include "storage/model/session_types.h"

namespace collect::storage {

// What a session that is still written holds at some moment: for a copy of it.
struct SessionCut {
  Manifest manifest;                   // what it would be if it were written now
  std::vector<SessionFileInfo> files;  // of the threads, as long as they are now
};

class SessionWriter {
 public:
  // Makes <root>/session_…/pid_<pid>/ and its first manifest. Distinct names within one second.
  // With `key` its agent can go on with it after the daemon ended.
  static Result<std::unique_ptr<SessionWriter>> create(
      Fs& fs, const SessionOptions& options, SessionIdentity identity,
      const std::optional<ResumeKey>& key = std::nullopt);
  // Opens an unsealed session directory again, cut back to whole records. kCancelled: it is sealed,
  // or its sealing was begun (recover_session finishes that).
  static Result<std::unique_ptr<SessionWriter>> resume(Fs& fs, const SessionOptions& options,
                                                       const std::string& directory);
  virtual ~SessionWriter() = default;

  virtual const std::string& directory() const = 0;  // absolute
  virtual const std::string& name() const = 0;       // "session_YYYYMMDD_HHMMSS/pid_N"
  virtual const SessionIdentity& identity() const = 0;

  // Repeats of what is known already are taken silently: agents explain everything again after a
  // reconnect.
  virtual Status add_modules(std::span<const ModuleInfo> modules) = 0;
  virtual Status open_stream(const StreamInfo& stream) = 0;

  // Stores the pages in order; neighbouring pages of one file become one gathering write. A page
  // that is stored already is skipped, one that is stored in part is cut, one that begins beyond
  // the next record leaves a gap of kLostUnavailable or kLostOverwritten in the manifest. kDamaged:
  // the bytes are not records (counts, lengths, kinds, times running backwards are the peer's
  // fault); nothing of that page was stored. kNoSpace, kIo: as much as was written stays counted.
  virtual Status append_pages(std::span<const Page> pages) = 0;

  // Stores the next bytes of a stream of another format: the parts, one behind the other, are whole
  // frames that the caller has checked. They become one object of the container.
  virtual Status append_passthrough(PassthroughKind kind, std::span<const Bytes> parts) = 0;
  // The stream's last word: bytes that came and are no whole frames, and where and why.
  virtual Status end_passthrough(PassthroughKind kind, uint64_t refused_bytes,
                                 const std::string& problem) = 0;

  // Stalls of a thread, or of the whole process (stream 0), in order of time. Repeats are taken
  // silently.
  virtual Status add_stalls(uint32_t stream_id, std::span<const Stall> stalls) = 0;

  virtual Status close_stream(const StreamEnd& end) = 0;
  virtual Status detail_state(const DetailStateChange& change) = 0;
  // A repeat (same time) is taken silently.
  virtual Status function_filter(FunctionFilter filter) = 0;
  virtual Status clock_sync(const ClockSync& sync) = 0;
  // Adds a line to the manifest's "events": a refused connection, a reconnect, a damaged page.
  virtual Status note(const std::string& what) = 0;
  // The capture that the session is made of lacks this.
  virtual void input_missing(MissingInput missing) = 0;
  virtual void set_lost_without_stream(uint64_t count) = 0;
  virtual void set_process_end(const ProcessEnd& end) = 0;
  // Into the manifest and the open container. A repeat (same time, same text) is taken silently.
  virtual Status marker(const Marker& marker) = 0;
  // Ends the RTC container and begins the next; its path. kUnsupported when none are written.
  virtual Result<std::string> roll_container() = 0;
  // Names that are known already, and whether there are more to be looked up.
  virtual void adopt_symbols(std::vector<Symbol> symbols, std::vector<ModuleSymbols> modules,
                             SymbolsState state) = 0;

  // Makes everything appended so far durable as SessionOptions say, and the manifest true. Called
  // before an ack; cheap when there is nothing to do.
  virtual Status commit() = 0;
  // How long commit() and pages have to wait for a manifest that comes before them, because too
  // many were written lately; 0: not at all. Who does not ask does not wait.
  virtual uint64_t manifest_wait_ns() const = 0;
  // Commits, and says what there is. The files only grow until seal() is called.
  virtual Result<SessionCut> cut() = 0;
  // Nothing comes for a while: no file stays open. They are opened again when something does.
  virtual Status release_files() = 0;
  // The collector stops, and a later one is to go on by resume(): commits, ends the open container,
  // makes the manifest true and closes every file. Nothing is sealed, and nothing more may be asked
  // than totals(). `why` stands in the manifest's events.
  virtual Status suspend(const std::string& why) = 0;
  // A write or a sync failed, or a limit was reached: nothing more is stored, and the session can
  // only be sealed, as failed.
  virtual bool failed() const = 0;

  virtual std::vector<StreamPosition> positions() const = 0;
  virtual SessionTotals totals() const = 0;
  // As the manifest has it: of a sealed session, the last word.
  virtual SessionHealth health() const = 0;

  // Repairs links where needed, writes footers and headers, writes the final manifest, which says
  // that names are to be looked up. `reason` stands in the manifest. After this only totals(),
  // health(), functions() and the names may be asked; and while it is not sealed(), because the
  // disk was full, seal() goes on where it stopped.
  virtual Status seal(SessionState state, const std::string& reason) = 0;
  // Everything is on disk, up to the last manifest; whatever seal() had to say.
  virtual bool sealed() const = 0;
  // The ids that occur in the events, sorted; at most kMaxFunctionIds. Empty when nobody is to
  // name them.
  virtual std::vector<uint64_t> functions() const = 0;
};

struct RecoveredSession {
  SessionState state = SessionState::kRecovered;
  std::string reason;
  SessionTotals totals;
  SessionHealth health;
  uint64_t restored_records = 0;    // damaged in the files, and whole in the containers
  bool was_sealed = false;          // there was nothing to do
  std::vector<uint64_t> functions;  // as SessionWriter::functions(); none of a sealed session
  std::vector<std::string>
      problems;  // threads that cannot be read, what was damaged, bytes cut off
};

// Seals a session whose agent is gone: at the start of the daemon, or of `collectctl`. Finishes a
// seal that was interrupted. Works without a manifest too, from the thread directories.
Result<RecoveredSession> recover_session(Fs& fs, const SessionOptions& options,
                                         const std::string& directory);

}  // namespace collect::storage

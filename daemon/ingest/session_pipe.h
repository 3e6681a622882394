// One session's way from its io thread to its files: a bounded queue in order, and the one
// SessionWriter behind it.
//
//   io thread:      push(), full()          <- reports, coalesced: at most one is on its way
//   writer thread:  run(): take all, write, commit, report
//   sealing thread: the last step, because checking links and syncing files may take seconds
//
// Members say which of the three owns them; the steps follow one another, never at once.
#pragma once

#include <asio/any_io_executor.hpp>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <variant>
#include <vector>

#include "daemon/ingest/completed_sessions.h"
#include "daemon/ingest/event_watch.h"
#include "daemon/ingest/limits.h"
#include "daemon/ingest/page_reader.h"
#include "daemon/ingest/session_charges.h"
#include "daemon/ingest/snapshot.h"
#include "formats/core/keyed_hash.h"
#include "storage/session_writer.h"

namespace collect::ingest {

class WriterPool;

struct SessionOpen {
  storage::SessionIdentity identity;
  std::optional<storage::ResumeKey> key;  // none: nobody comes back for it
};
// Opens a session again that a former collector left unsealed.
struct SessionResume {
  std::string directory;
};
// Whole frames of a stream of another format: `front`, then `bytes`, which point into `buffer`.
struct ForeignChunk {
  storage::ForeignKind kind{};
  std::vector<uint8_t> front;
  Bytes bytes;
  BufferRef buffer;
};
struct ForeignEnd {
  storage::ForeignKind kind{};
  uint64_t refused_bytes = 0;
  std::string problem;
};
struct ArrivedStalls {
  struct Of {
    uint32_t stream_id = 0;  // 0: of the whole process
    storage::Stall stall;
  };
  uint64_t next_number = 0;  // of the agent's numbering, behind these
  std::vector<Of> stalls;
};
struct SessionNote {
  std::string text;
};
struct LostWithoutStream {
  uint64_t count = 0;
};
// Asks for all positions, after everything queued before it.
struct PositionsWanted {
  uint64_t ticket = 0;
};
// Something that a person wants done with the session's files, in its place among what arrives.
// Answered exactly once, on the io thread, after the commit that makes it last.
struct SessionOrder {
  std::function<Result<std::string>(storage::SessionWriter&)> act;
  std::function<void(Result<std::string>)> done;
};
// What is looked for among the events from now on; empty: nothing.
struct EventsWanted {
  std::vector<WatchedEvent> events;
  OnSeen on_seen;
};
// Nothing but the commit that follows every round.
struct CommitWanted {};
// Its agent is away: no file stays open until something comes.
struct FilesIdle {};
struct SessionSeal {
  storage::SessionState state{};
  std::string reason;
};
// The collector stops, and the next one goes on with the session: nothing more goes into it here.
struct SessionSuspend {
  std::string why;
};

using SessionItem =
    std::variant<SessionOpen, SessionResume, PageBatch, ForeignChunk, ForeignEnd,
                 std::vector<storage::ModuleInfo>, storage::StreamInfo, storage::StreamEnd,
                 storage::DetailStateChange, ArrivedStalls, storage::FunctionFilter,
                 storage::ClockSync, SessionNote, LostWithoutStream, storage::ProcessEnd,
                 PositionsWanted, SessionOrder, EventsWanted, CommitWanted, FilesIdle, SessionSeal,
                 SessionSuspend>;

// What happened since the last report. Everything in it was written and committed.
struct SessionReport {
  struct Opened {
    std::string name;
    std::string directory;
  };
  struct Sealed {
    storage::SessionState state{};
    std::string reason;
    bool held_up = false;  // a full disk left the files unsealed: another report says when they are
    storage::SymbolsState symbols{};
    storage::SessionHealth health{};
  };
  std::optional<Opened> opened;
  // Instead: this recording is sealed and complete already, in this session. Nothing is stored.
  std::optional<std::string> repeated;
  std::unordered_map<uint32_t, storage::StreamPosition, KeyedHash>
      stored;                // newest per stream that moved
  uint64_t stalls_next = 0;  // stalls below this number are stored; 0: none came
  std::vector<std::pair<uint64_t, std::vector<storage::StreamPosition>>> positions;  // by ticket
  storage::SessionTotals totals;
  std::optional<Error> failed;  // kDamaged, kLimit, …: the agent's fault; kNoSpace, kIo, …: the
                                // disk's. Never kExhausted: that is waited for
  std::optional<Sealed> sealed;
  // Instead: everything stored is on disk, and the session waits there for the next collector.
  bool suspended = false;
  bool drained = false;  // full() is false again
};

// Whether the error is the disk's, not the agent's.
bool is_storage_fault(Code code);

class SessionPipe : public std::enable_shared_from_this<SessionPipe> {
 public:
  struct World {  // outlives the pipe
    WriterPool* writers;
    storage::Fs* fs;
    const storage::SessionOptions* options;
    IngestCounters* counters;
    CompletedSessions* completed;
    size_t queue_bytes;
    IngestObserver* observer;  // for to_be_named()
  };
  using OnReport = std::function<void(SessionReport)>;

  // Reports come on `io`. The first item opens or resumes the session. What it takes is charged to
  // the account.
  SessionPipe(const World& world, asio::any_io_executor io,
              std::shared_ptr<principal::Account> account, OnReport on_report);
  ~SessionPipe();

  // ---- io thread
  void push(SessionItem item);
  // True: push no more pages until a report says `drained`.
  bool full();
  // It keeps more files open than it should: a commit closes some.
  bool has_too_many_files() const { return charges_.over_limit(); }
  const principal::Principal& principal() const { return charges_.account().principal(); }
  // From now on; null: to nobody.
  void report_to(OnReport on_report) { on_report_ = std::move(on_report); }

  // ---- writer thread: called by WriterPool whenever something was pushed
  void run();

 private:
  friend class WriterPool;

  Status store(const SessionItem& item);
  Status store_pages(const std::vector<SessionItem>& items, size_t first, size_t end);
  Status store_run();
  Status open(const SessionOpen& item);
  Status resume(const SessionResume& item);
  Status suspend(const SessionSuspend& item);
  Status close_stream(const storage::StreamEnd& end);
  Status add_stalls(const ArrivedStalls& arrived);
  // Writes items until one has to wait; how many were written.
  size_t handle(const std::vector<SessionItem>& items);
  size_t store_items(const std::vector<SessionItem>& items, const SessionSeal** seal);
  void retry_later(milliseconds pause);
  void put_back(std::vector<SessionItem> items, size_t first);
  bool must_wait_for_manifest();
  void carry_out(const SessionOrder& order);
  void answer_orders();
  bool finish_round();
  void answer_tickets();
  void fail(const Error& error);
  void begin_seal(SessionSeal seal);
  void finish_seal(const SessionSeal& seal);
  enum class SealOutcome : uint8_t { kWhole, kNotWhole, kTryAgain };
  void remember_complete(storage::SessionState state);
  SealOutcome seal_files(SessionReport::Sealed& sealed);
  SealOutcome recover(SessionReport::Sealed& sealed);
  void have_named(const std::string& directory, std::vector<uint64_t> functions,
                  SessionReport::Sealed& sealed);
  void count_totals();
  storage::StreamPosition& position_of(uint32_t stream);
  void publish();
  void send_report();
  void deliver();

  // constant after construction
  const World world_;
  const asio::any_io_executor io_;
  size_t writer_index_ = 0;
  SessionCharges charges_;                   // as session_charges.h says
  storage::SessionOptions storage_options_;  // with this session's charges

  // io thread
  OnReport on_report_;

  // guarded by mutex_
  mutable std::mutex mutex_;
  std::vector<SessionItem> queue_;
  size_t queued_bytes_ = 0;
  bool scheduled_ = false;
  bool was_full_ = false;
  bool report_on_its_way_ = false;
  SessionReport report_;

  // writer thread; from begin_seal on, the sealing thread
  std::unique_ptr<storage::SessionWriter> writer_;
  std::unordered_map<uint32_t, storage::StreamPosition, KeyedHash> positions_;
  std::unordered_set<uint32_t, KeyedHash> touched_;  // streams whose position moved in this round
  std::vector<Page> run_of_pages_;
  std::optional<EventWatch> watch_;
  uint64_t stalls_next_ = 0;       // as in the report, of this round
  std::vector<uint64_t> tickets_;  // to be answered behind the next commit
  // What has to wait, because this machine is out of something or a manifest is paced.
  std::optional<milliseconds> pause_;
  // Carried out in this round, or refused; answered behind the commit.
  std::vector<std::pair<std::function<void(Result<std::string>)>, Result<std::string>>> answers_;
  SessionReport news_;
  storage::SessionTotals counted_;
  std::string recover_directory_;  // of an old session that can't go on: it is only to be sealed
  uint64_t last_detail_change_ns_ = 0;
  bool failed_ = false;  // nothing more is stored
  bool sealing_ = false;
  bool told_sealed_ = false;
};

}  // namespace collect::ingest

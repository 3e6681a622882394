// One session as it is stored: its files (storage::Session), its charges, and the report of
// what was done since the last commit.
//
// Used by one thread at a time: by the data thread that runs a round of its SessionQueue, and from
// the seal on by a sealing thread (SessionSealing). Every function may block on the disk.
//
// kExhausted, from any function: this machine is out of something, or a manifest would come too
// soon. Nothing is wrong; the same call, made again later, continues where this one stopped.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_set>
#include <vector>

#include "daemon/ingest/link/limits.h"
#include "daemon/ingest/link/snapshot.h"
#include "daemon/ingest/session/completed_sessions.h"
#include "daemon/ingest/session/event_watch.h"
#include "daemon/ingest/session/lane_buffers.h"
#include "daemon/ingest/session/rate_watch.h"
#include "daemon/ingest/session/session_charges.h"
#include "daemon/ingest/session/session_report.h"
#include "storage/session/session.h"

namespace collect::ingest {

struct ArrivedStalls {
  uint64_t next_number = 0;  // of the agent's numbering, behind these
  std::vector<storage::StreamStall> stalls;
};
// What is looked for among the events from now on; empty: nothing.
struct EventsWanted {
  std::vector<WatchedEvent> events;
  OnSeen on_seen;
};
struct SessionSeal {
  storage::SessionState state{};
  std::string reason;
};

// Whether the error is the disk's, not the agent's.
bool is_storage_fault(Code code);

class StoredSession {
 public:
  struct Dependencies {  // outlive the session
    storage::Fs* fs;
    const storage::SessionOptions* options;
    IngestCounters* counters;
    CompletedSessions* completed;
    IngestObserver* observer;  // for to_be_named()
  };

  // What it takes is charged to the account.
  StoredSession(const Dependencies& dependencies, std::shared_ptr<principal::Account> account);

  // Any thread.
  const SessionCharges& charges() const { return charges_; }

  // One of the two comes first. Without `key` no one comes back for the session.
  Status open(const storage::SessionIdentity& identity,
              const std::optional<storage::ResumeKey>& key);
  // Opens a session again that a former collector left unsealed.
  Status resume(const std::string& directory);
  bool is_open() const { return writer_ != nullptr; }
  // Nothing more is stored, but a seal.
  bool failed() const { return failed_; }
  // Not before it is open.
  storage::Session& writer() { return *writer_; }

  // Pages as they were sent, in their order; encoded ones are decoded with `unpacker`.
  Status store(std::span<const Page> sent, PageUnpacker& unpacker);
  // Whole frames of a stream of another format: the parts, one behind the other.
  Status store_passthrough(storage::PassthroughKind kind, std::span<const Bytes> parts);
  Status add_modules(const std::vector<storage::ModuleInfo>& modules);
  Status open_stream(const storage::StreamInfo& stream);
  Status close_stream(const storage::StreamEnd& end);
  Status add_stalls(const ArrivedStalls& arrived);
  // `mode` is shown, of a repeat too.
  Status change_detail(const storage::DetailStateChange& change, DetailMode mode);
  // Before they are stored. An error: the principal has too much. A stream that is open already is
  // charged already.
  Status charge_thread(uint32_t stream) {
    return writer_->has_stream(stream) ? Status() : charges_.charge_thread();
  }
  Status charge_modules(const std::vector<storage::ModuleInfo>& modules) {
    return charges_.charge_modules(modules);
  }
  void watch(const EventsWanted& wanted);
  // All positions go into the report after the next commit.
  void want_positions(uint64_t ticket) { tickets_.push_back(ticket); }

  // Makes what was stored last, and puts it into the report.
  Status commit();
  // More comes at once: this round need not end with a commit. A commit may be a whole manifest, so
  // a thousand short threads are not to need one each.
  void put_off_commit() { put_off_ = true; }
  // Whether this round may do without: not for longer than kMaxCommitDelay
  // and kMaxUncommittedBytes.
  bool take_put_off();
  // The collector stops, and the next one continues with the session.
  Status suspend(const std::string& why);
  // Stores nothing more after this error.
  void fail(const Error& error);
  // Set by what can only end in a seal: a disk that failed, an old session that can't continue.
  const std::optional<SessionSeal>& must_seal() const { return must_seal_; }
  // A task came to kExhausted.
  void count_held();
  // How long to wait until the next try.
  milliseconds take_wait();
  SessionReport take_report();

  // ---- for SessionSealing
  const std::string& name() const { return name_; }
  const std::string& directory() const { return directory_; }
  const Dependencies& dependencies() const { return dependencies_; }
  // The directory of an old session that can't continue: it is only to be sealed. Else empty.
  const std::string& recover_directory() const { return recover_directory_; }
  void count_totals();
  void set_totals(const storage::SessionTotals& totals) { counted_ = totals; }
  void report_sealed(SessionReport::Sealed sealed) {
    charges_.release();
    report_.sealed = std::move(sealed);
  }
  void close();

 private:
  void opened();
  Status store_run();
  Status check_room() const;
  bool must_wait_for_manifest();
  void answer_tickets();

  // constant after construction
  const Dependencies dependencies_;
  SessionCharges charges_;           // as session_charges.h says
  storage::SessionOptions options_;  // with this session's charges

  std::string name_;  // "session_…/pid_…"; stays when it is sealed
  std::string directory_;
  std::unique_ptr<storage::Session> writer_;
  std::unordered_set<uint32_t, KeyedHash> touched_;  // streams that moved since the last commit
  std::vector<Page> run_of_pages_;
  std::vector<uint64_t> next_before_run_;  // by page, for rate_watch_: record numbers
  std::optional<EventWatch> watch_;
  std::optional<RateWatch> rate_watch_;  // if the agent asks for it
  principal::Lease rate_memory_;
  uint64_t stalls_next_ = 0;       // as in the report, since the last commit
  std::vector<uint64_t> tickets_;  // to be answered after the next commit
  SessionReport report_;
  storage::SessionTotals counted_;
  std::string recover_directory_;
  uint64_t last_detail_change_ns_ = 0;
  bool failed_ = false;
  bool put_off_ = false;
  size_t uncommitted_bytes_ = 0;
  std::chrono::steady_clock::time_point committed_at_{};
  std::optional<SessionSeal> must_seal_;
  std::optional<milliseconds> manifest_wait_;
};

}  // namespace collect::ingest

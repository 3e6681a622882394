// An ATF session built from another format's events: threads, functions by name, events in the
// order of each thread's time. Files are written, sealed and described by storage, as the daemon's
// are. One thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "formats/atf/headers.h"
#include "formats/core/result.h"
#include "storage/fs/posix_fs.h"
#include "storage/session/session.h"

namespace collect::convert {

// What the other format says of the process; what it does not say keeps its default.
struct BuiltProcess {
  std::string name;
  std::string executable;
  uint32_t pid = 0;
  uint64_t start_ns = 0;       // on the clock of the events
  uint64_t start_unix_ns = 0;  // the same moment since the epoch; 0: not known
  atf::Arch arch{};
  atf::Os os{};
  atf::ClockType clock{};
};

class SessionBuilder {
 public:
  // Nothing is made before begin(). The session directory goes to the files' root.
  SessionBuilder(storage::PosixFs files, atf::Version version);
  ~SessionBuilder();

  Status begin(const BuiltProcess& process);
  // Before its first event. Position of the thread, from 0.
  // `end_ns` 0: its last event.
  Result<uint32_t> add_thread(uint32_t thread_id, std::string_view name, uint64_t start_ns,
                              uint64_t end_ns = 0);
  // The id of a function known by name alone: module 0, numbered in the order of appearance.
  uint64_t function_of(std::string_view name);
  // A function that has an id already; ids of function_of() must not be mixed with these.
  void name_function(storage::Symbol symbol) { symbols_.push_back(std::move(symbol)); }
  void add_module(const storage::ModuleInfo& module) { modules_.push_back(module); }

  // After its last event: what it keeps in memory and its files are given back.
  Status end_thread(uint32_t thread);
  // An event; `detail`, when not empty, is the payload of its detail record (FORMAT.md "Payloads").
  // A time before the thread's last one is moved to that, and counted in moved_times().
  Status event(uint32_t thread, uint64_t ns, uint64_t function_id, atf::EventKind kind,
               Bytes detail = {}, uint16_t detail_flags = 0);
  // Events (or, of the other lane, detail records) that are known to be missing here.
  void lost(uint32_t thread, Lane lane, uint64_t count, uint32_t reasons, uint64_t first_ns,
            uint64_t last_ns);
  // A session has each marker once, and at most storage::kMaxMarkers: others are counted in
  // repeated_markers() and more_markers().
  Status marker(uint64_t ns, std::string text);
  // What the capture lacks that the session is built from.
  void input_missing(const storage::MissingInput& missing) { writer_->input_missing(missing); }

  void process_ended(const storage::ProcessEnd& end) { writer_->set_process_end(end); }

  // The capture says so of the session that it was made of.
  void was(storage::SessionState state) { was_ = state; }

  // Seals; where the session is. `whole`: nothing is missing from the capture. The session is
  // complete when it was, and when the capture is whole.
  Result<std::string> finish(bool whole, std::string reason);
  Result<std::string> finish(storage::SessionState state, const std::string& reason);
  uint64_t moved_times() const { return moved_times_; }
  uint64_t repeated_markers() const { return repeated_markers_; }
  uint64_t more_markers() const { return more_markers_; }
  uint64_t events() const { return events_; }

 private:
  struct Thread;
  class BuildClock;

  Status flush(Thread& thread);
  Status end_thread(Thread& thread);
  void put_index_event(Thread& thread, uint64_t ns, uint64_t function_id, atf::EventKind kind,
                       bool has_detail);

  storage::PosixFs fs_;
  const atf::Version version_;
  std::unique_ptr<BuildClock> clock_;
  std::unique_ptr<storage::Session> writer_;
  std::vector<std::unique_ptr<Thread>> threads_;
  std::vector<storage::ModuleInfo> modules_;
  std::vector<storage::Symbol> symbols_;
  std::unordered_map<std::string, uint64_t> ids_;
  storage::SessionState was_ = storage::SessionState::kComplete;
  std::set<std::pair<uint64_t, std::string>> markers_;
  uint64_t moved_times_ = 0, repeated_markers_ = 0, more_markers_ = 0;
  uint64_t events_ = 0;
};

}  // namespace collect::convert

// The SessionWriter that writes files. session_writer.h says what it promises; this is how it is
// made up: threads, each with its files (thread_writer.h), and the manifest, kept in memory and
// written when something in it must not be lost, else once a second.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "storage/container/passthrough_streams.h"
#include "storage/container/rtc_roller.h"
#include "storage/manifest/manifest.h"
#include "storage/model/session_layout.h"
#include "storage/session/live_manifest.h"
#include "storage/session/session_stalls.h"
#include "storage/session/session_symbols.h"
#include "storage/session/session_threads.h"
#include "storage/session/session_writer.h"
#include "storage/session/space_guard.h"
#include "storage/thread/thread_writer.h"

namespace collect::storage {

// A page of one of so many first threads waits for the manifest that names it. Of the later ones,
// the stream journal names them (a manifest for each would cost their number squared).
inline constexpr size_t kThreadsNamedAtOnce = 64;

class Session final : public SessionWriter {
 public:
  Session(Fs& fs, const SessionOptions& options, SessionPath session_path);

  Status begin(SessionIdentity identity, const std::optional<ResumeKey>& key);
  // `may_come_again`: an agent may send what was not acknowledged.
  Status reopen(Manifest manifest, std::vector<std::string>* problems, bool may_come_again);

  const std::string& directory() const override { return session_path_.directory; }
  const std::string& name() const override { return session_path_.name; }
  const SessionIdentity& identity() const override { return manifest_.identity; }
  Status add_modules(std::span<const ModuleInfo> modules) override {
    return live_.add_modules(modules, name());
  }
  Status open_stream(const StreamInfo& stream) override;
  Status append_pages(std::span<const Page> pages) override;
  Status append_passthrough(PassthroughKind kind, std::span<const Bytes> parts) override;
  Status end_passthrough(PassthroughKind kind, uint64_t refused_bytes,
                         const std::string& problem) override;
  Status add_stalls(uint32_t stream_id, std::span<const Stall> stalls) override;
  Status close_stream(const StreamEnd& end) override;
  Status detail_state(const DetailStateChange& change) override {
    return live_.detail_state(change);
  }
  Status function_filter(FunctionFilter filter) override {
    return live_.function_filter(std::move(filter));
  }
  Status clock_sync(const ClockSync& sync) override { return live_.clock_sync(sync); }
  Status note(const std::string& what) override { return live_.note(what); }
  void input_missing(MissingInput missing) override { live_.input_missing(std::move(missing)); }
  void set_lost_without_stream(uint64_t count) override { live_.set_lost_without_stream(count); }
  void set_process_end(const ProcessEnd& end) override { live_.set_process_end(end); }
  Status marker(const Marker& marker) override { return live_.marker(marker); }
  Result<std::string> roll_container() override;
  void adopt_symbols(std::vector<Symbol> symbols, std::vector<ModuleSymbols> modules,
                     SymbolsState state) override {
    symbols_.adopt(std::move(symbols), std::move(modules), state);
  }
  Status commit() override;
  uint64_t manifest_wait_ns() const override { return live_.wait_ns(options_.budget); }
  Result<SessionCut> cut() override;
  Status release_files() override;
  Status suspend(const std::string& why) override;
  bool failed() const override { return !failure_.ok(); }
  bool sealed() const override { return sealed_; }
  std::vector<uint64_t> functions() const override { return symbols_.functions(); }
  std::vector<StreamPosition> positions() const override { return threads_.positions(); }
  SessionTotals totals() const override;
  SessionHealth health() const override { return health_of(manifest_); }
  Status seal(SessionState state, const std::string& reason) override;

  Status reserve_again();
  const Manifest& manifest() const { return manifest_; }
  // By reopen(): that were damaged in the files, and are whole in the containers.
  uint64_t restored_records() const { return restored_records_; }

 private:
  Status append_run(std::span<const Page> pages);
  Result<PassthroughFile*> passthrough_file(PassthroughKind kind);
  // The thread of a stream, whose files can be read. kDamaged: `what` came of a stream that was not
  // opened.
  Result<uint32_t> slot_for(uint32_t stream_id, const char* what) const;
  Status admit(uint64_t bytes, uint64_t pending = 0);
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

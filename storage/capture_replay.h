// RTC containers back into a session: what CaptureWriter wrote is given to a SessionWriter again,
// call by call, so that the thread files come out as they were, byte for byte. Damaged and missing
// parts show as gaps, counted like everything else that is lost.
//
// Containers are borrowed bytes (map them); any run of one session's, in order. Used on one thread.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "formats/core/bytes.h"
#include "formats/rtc/reader.h"
#include "storage/foreign_replay.h"
#include "storage/page_version.h"
#include "storage/session_writer.h"

namespace collect::storage {

struct ReplayReport {
  // What the containers lack, or what of them could not be used; in the manifest too.
  std::vector<MissingInput> missing;
  uint64_t missing_left_out = 0;  // beyond kMaxMissingInput
  // What the version that was asked for has no place for (page_version.h).
  uint64_t left_out_events = 0;
  uint64_t left_out_detail_records = 0;
  uint64_t left_out_depths = 0;
  uint64_t pages = 0;
  uint64_t pages_refused = 0;
  SessionTotals totals;
  SessionState state = SessionState::kRecovered;
  std::string directory;
};

class CaptureReplay {
 public:
  // The new session is made below `options.root`, named after the time that it was recorded at.
  // `options.clock` and `options.symbolize` are not used: time and names are those of the
  // containers. `version` is that of the new files; absent: the containers'.
  CaptureReplay(Fs& fs, SessionOptions options, std::optional<atf::Version> version = {});
  ~CaptureReplay();

  using Progress = std::function<void(uint64_t)>;

  // The next container of the run. `name` is for messages; `progress` gets bytes of this container.
  // One without its head is read with the first manifest that stands later in it, or in a container
  // that is added later. kInvalidArgument: it belongs to another session. kNoSpace, kIo: the
  // target's disk.
  Status add(const std::string& name, Bytes container, const Progress& progress = {});
  // Seals what was built. kNotFound when there is no manifest in any container.
  Result<ReplayReport> finish();

 private:
  class RecordedClock;
  struct Waiting {
    std::string name;
    Bytes container;
    Progress progress;
  };

  Status replay(const std::string& name, Bytes container, const Progress& progress);
  Status take(const rtc::Object& object);
  Status take_manifest(Bytes json, uint64_t offset);
  Status take_change(Bytes json, uint64_t offset);
  Status take_page(Bytes object, uint64_t offset);
  Status take_foreign(ForeignKind kind, Bytes object, uint64_t offset);
  void expect_foreign(const Manifest& manifest);
  Status finish_foreign();
  Status begin(const Manifest& manifest);
  Status explain(const Manifest& manifest);
  Status add_stalls(const std::vector<Stall>& stalls);
  Status end_streams();
  Status end_stream(uint32_t stream, const ManifestThread& thread);
  void count_missing(const Manifest& manifest);
  void say_missing();
  void problem(uint64_t offset, const std::string& sentence);
  void missing(MissingInput missing);

  Fs& fs_;
  SessionOptions options_;
  std::unique_ptr<RecordedClock> clock_;
  const std::optional<atf::Version> version_;
  std::optional<PageVersion> pages_;  // from the session's first manifest on
  std::unique_ptr<SessionWriter> writer_;
  std::vector<Waiting> waiting_;                // containers before the first manifest
  std::string name_;                            // of the present container
  std::optional<Manifest> last_;                // the newest whole manifest that was passed
  std::map<uint32_t, uint32_t> streams_;        // by N of thread_N
  std::map<uint32_t, ManifestThread> threads_;  // newest word on each, by stream
  std::map<ForeignKind, ForeignReplay> foreign_;
  // That the newest manifest counts and the containers up to it do not hold.
  uint64_t missing_events_ = 0;
  uint64_t missing_detail_records_ = 0;
  ReplayReport report_;
};

}  // namespace collect::storage

// A session given to a Session again: its manifests, its pages, its streams of other formats.
// So it is built from containers (capture_replay.h), and in the other ATF version from its own
// files (session_conversion.h). The thread files come out byte for byte as they were, or as the
// other version has them; what is missing shows as gaps, counted like everything else that is lost.
//
// Used on one thread.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/core/bytes.h"
#include "storage/container/page_version.h"
#include "storage/rebuild/passthrough_replay.h"
#include "storage/session/session.h"

namespace collect::storage {

struct ReplayReport {
  // What the input lacks, or what of it could not be used; in the manifest too.
  std::vector<MissingInput> missing;
  uint64_t missing_left_out = 0;  // beyond kMaxMissingInput
  // What the version that was asked for has no place for (page_version.h), in words.
  std::vector<std::pair<std::string_view, uint64_t>> left_out;
  uint64_t pages = 0;
  uint64_t pages_refused = 0;
  SessionTotals totals;
  SessionState state = SessionState::kRecovered;
  std::string directory;
};

// A sentence about what is not stored, or nothing.
using Refusal = std::optional<std::string>;

class SessionRebuild {
 public:
  // The new session is made below `options.root`, named after the time that it was recorded at.
  // `options.clock` and `options.symbolize` are not used: time and names are those of the input,
  // which `input` names in sentences: "the containers". `version` is that of the new files; absent:
  // the input's.
  SessionRebuild(Fs& fs, SessionOptions options, std::string input,
                 std::optional<atf::Version> version);
  ~SessionRebuild();

  bool begun() const { return writer_ != nullptr; }
  // Makes the session. The first call.
  Status begin(const Manifest& manifest);
  // The whole manifest as of now. kInvalidArgument: it is another session's.
  Status manifest(Manifest manifest);
  // Takes what a manifest says of threads, modules and other things that records refer to.
  Status add_metadata(const Manifest& manifest);
  // A manifest that holds only what is new since the last one.
  Status change(const Manifest& delta);
  // kNoSpace, kIo, kLimit: of the target. A damaged page is refused, and counted.
  Result<Refusal> page(const Page& page);
  void refuse_page() { ++report_.pages, ++report_.pages_refused; }  // not even a page
  Result<Refusal> passthrough(PassthroughKind kind, Bytes frames);
  // The input is damaged here: parts of other formats' streams may be missing.
  void doubt();
  void missing(MissingInput missing);
  Status commit() { return writer_->commit(); }
  // Seals what was built. kNotFound: there was no manifest.
  Result<ReplayReport> finish();

 private:
  class RecordedClock;

  Status add_stalls(const std::vector<Stall>& stalls);
  Status add_notes();
  void expect_passthrough(const Manifest& manifest);
  Status finish_passthrough();
  Status end_streams();
  Status end_stream(uint32_t stream, const ManifestThread& thread);
  void count_missing(const Manifest& manifest);
  void say_missing();

  Fs& fs_;
  SessionOptions options_;
  const std::string input_;
  std::unique_ptr<RecordedClock> clock_;
  const std::optional<atf::Version> version_;
  std::optional<PageVersion> pages_;  // from the session's first manifest on
  std::unique_ptr<Session> writer_;
  std::optional<Manifest> last_;                // the newest whole manifest that was passed
  std::vector<ClockSync> newer_clock_syncs_;    // received since, at most as many as a manifest has
  std::vector<Note> newer_notes_;               // likewise
  std::map<uint32_t, uint32_t> streams_;        // by N of thread_N
  std::map<uint32_t, ManifestThread> threads_;  // newest word on each, by stream
  std::map<PassthroughKind, PassthroughReplay> passthrough_;
  // That the newest manifest counts and the input up to it does not hold.
  uint64_t missing_events_ = 0;
  uint64_t missing_detail_records_ = 0;
  ReplayReport report_;
};

}  // namespace collect::storage

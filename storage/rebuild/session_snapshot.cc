#include "storage/rebuild/session_snapshot.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "storage/container/packed_lanes.h"
#include "storage/fs/clock.h"
#include "storage/manifest/manifest_file.h"
#include "storage/session/session.h"

namespace collect::storage {
namespace {

constexpr size_t kCopyBytes = 1u << 20;

Error sealed_meanwhile(const SessionPath& from) {
  return {Code::kUnsupported, from.name + " ended while it was copied: it is sealed itself"};
}

// Before anything of a session's files is changed that was written once, its manifest says that it
// is being sealed; so what was copied before this is true is as it was written.
Result<bool> is_still_written(Fs& fs, const SessionPath& session_path) {
  const auto manifest = read_manifest(fs, session_path.directory);
  if (!manifest.ok()) return manifest.error();
  return manifest->state == SessionState::kRecording && !manifest->sealing;
}

Result<SessionPath> free_session_path(Fs& fs, const std::string& root, const SessionPath& from) {
  for (uint32_t number = 1; number <= kMaxSnapshots; ++number) {
    const std::string session = snapshot_session_name(from.session, number);
    if (fs.exists(fmt::format("{}/{}", root, session))) continue;
    auto session_path =
        parse_session_path(root, fmt::format("{}/{}", session, pid_directory_name(from.pid)));
    if (!session_path) return Error{Code::kUnsupported, from.name + " is not a recorded session"};
    return std::move(*session_path);
  }
  return Error{Code::kLimit, fmt::format("{} has {} snapshots already; delete some first",
                                         from.name, kMaxSnapshots)};
}

// The manifest that the copy is sealed from.
Manifest manifest_of(const SessionCut& cut, const SnapshotMoment& moment) {
  Manifest manifest = cut.manifest;
  manifest.containers.clear();
  manifest.containers_removed = 0;
  for (ManifestThread& thread : manifest.threads) {
    if (!moment.is_whole || thread.ended) continue;
    thread.ended = true;
    thread.end_ns = std::max(moment.at_ns, thread.last_ns);
  }
  return manifest;
}

// The copy takes its time, and its recording ended before.
class MomentClock final : public Clock {
 public:
  explicit MomentClock(uint64_t unix_ns) : unix_ns_(unix_ns) {}
  uint64_t unix_ns() override { return unix_ns_; }
  uint64_t monotonic_ns() override { return system_clock().monotonic_ns(); }

 private:
  const uint64_t unix_ns_;
};

class Snapshot {
 public:
  Snapshot(Fs& fs, const SessionOptions& options, const SessionPath& from, const SessionCut& cut,
           const MakingProgress& progress)
      : fs_(fs), options_(options), from_(from), cut_(cut), progress_(progress) {
    for (const SessionFileInfo& file : cut.files) all_bytes_ += file.bytes;
  }

  uint64_t all_bytes() const { return all_bytes_; }

  Result<ReplayReport> build(const SessionPath& session_path, const SnapshotMoment& moment) {
    COLLECT_TRY(progress_(0, all_bytes_));
    COLLECT_TRY(fs_.make_directories(session_path.directory));
    const Status copied = copy_files(session_path);
    const auto still = is_still_written(fs_, from_);
    if (still.ok() && !*still) return sealed_meanwhile(from_);
    COLLECT_TRY(copied);
    if (!still.ok()) return still.error();
    Session session(fs_, options_, session_path);
    std::vector<std::string> problems;
    COLLECT_TRY(session.reopen(manifest_of(cut_, moment), &problems, false));
    // What was just written has to be there.
    if (!problems.empty())
      return Error{Code::kIo, fmt::format("{}/{}", session_path.directory, problems.front())};
    COLLECT_TRY(session.seal(moment.is_whole ? SessionState::kComplete : SessionState::kRecovered,
                             moment.reason));
    // Sealing is not interrupted, but no one may want the snapshot any more.
    COLLECT_TRY(progress_(all_bytes_, all_bytes_));
    ReplayReport report;
    report.totals = session.totals();
    report.state = session.manifest().state;
    report.directory = session_path.directory;
    return report;
  }

 private:
  Status copy_files(const SessionPath& session_path) {
    std::string made = session_path.directory;  // the directory that was made last
    for (const SessionFileInfo& file : cut_.files) {
      const std::string path = fmt::format("{}/{}", session_path.directory, file.path);
      const std::string directory = path.substr(0, path.rfind('/'));
      if (directory != made) COLLECT_TRY(fs_.make_directory(directory));
      made = directory;
      COLLECT_TRY(copy(file, path));
    }
    return {};
  }

  Status copy(const SessionFileInfo& file, const std::string& path) {
    auto from = open_session_file(fs_, from_, file.path);
    if (!from.ok()) return from.error();
    auto to = fs_.open(path, OpenMode::kCreate);
    if (!to.ok()) return to.error();
    for (uint64_t at = 0; at < file.bytes;) {
      buffer_.resize(static_cast<size_t>(std::min<uint64_t>(kCopyBytes, file.bytes - at)));
      const auto got = (*from)->read_at(at, buffer_);
      if (!got.ok()) return got.error();
      if (*got == 0) return Error{Code::kTruncated, (*from)->path() + ": shorter than it was"};
      const std::array<Bytes, 1> part{Bytes(buffer_).first(*got)};
      COLLECT_TRY((*to)->write_at(at, part));
      at += *got;
      done_bytes_ += *got;
      COLLECT_TRY(progress_(done_bytes_, all_bytes_));
    }
    return {};
  }

  Fs& fs_;
  const SessionOptions& options_;
  const SessionPath& from_;
  const SessionCut& cut_;
  const MakingProgress& progress_;
  std::vector<uint8_t> buffer_;
  uint64_t all_bytes_ = 0;
  uint64_t done_bytes_ = 0;
};

}  // namespace

Result<MadeSession> snapshot_session(Fs& fs, const SessionOptions& options, const SessionPath& from,
                                     const SessionCut& cut, const SnapshotMoment& moment,
                                     const MakingProgress& progress) {
  if (cut.manifest.has_stream_of_others()) {
    return Error{Code::kUnsupported,
                 from.name +
                     " holds a stream of another format: it can be downloaded as far as "
                     "it has come, but no snapshot of it is made"};
  }
  auto session_path = free_session_path(fs, options.root, from);
  if (!session_path.ok()) return session_path.error();
  SessionOptions inner = making_options(options);
  MomentClock clock(moment.unix_ns);
  if (moment.unix_ns != 0) inner.clock = &clock;
  Snapshot snapshot(fs, inner, from, cut, progress);
  COLLECT_TRY(check_room(fs, options, snapshot.all_bytes(), cut.manifest.threads.size()));
  const auto built = parse_session_path(inner.root, session_path->name);
  COLLECT_CHECK(built.has_value());
  return make_session(fs, options, *session_path, [&] { return snapshot.build(*built, moment); });
}

}  // namespace collect::storage

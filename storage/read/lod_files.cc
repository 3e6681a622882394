#include "storage/read/lod_files.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <mutex>
#include <thread>
#include <utility>

#include "formats/atf/session_reader.h"
#include "formats/atf/writer.h"
#include "formats/calls/lod/lod_builder.h"
#include "formats/core/crc32.h"
#include "storage/fs/descriptor.h"
#include "storage/fs/rooted_directory.h"
#include "storage/manifest/manifest.h"
#include "storage/model/session_layout.h"
#include "storage/read/session_manifest.h"
#include "storage/read/thread_breaks.h"
#include "storage/read/workers.h"

namespace collect::read {
namespace {

using storage::RootedDirectory;

// How long another maker is waited for, and how often it is looked at.
constexpr std::chrono::seconds kLodTurnBound{60};
constexpr std::chrono::milliseconds kLodTurnLook{10};

calls::LodSource source_of(const atf::IndexReader& index, const std::vector<calls::Gap>& gaps,
                           const std::vector<calls::Stall>& stalls) {
  calls::LodSource source;
  source.events = index.size();
  if (index.footer()) source.section_checksum = index.footer()->checksum;
  if (index.size() != 0) {
    const Bytes first = index.events(0, 1).bytes();
    const Bytes last = index.events(index.size() - 1, 1).bytes();
    source.edges_checksum = crc32c(last, crc32c(first));
  }
  source.context_checksum = calls::lod_context(gaps, stalls);
  return source;
}

// A file from its front, in blocks; the header is before everything and comes last.
class LodFile final : public ByteSink {
 public:
  LodFile(int fd, std::string path) : fd_(fd), path_(std::move(path)) {}

  Status write(Bytes bytes) override {
    block_.insert(block_.end(), bytes.begin(), bytes.end());
    return block_.size() >= kBlockBytes ? flush() : Status();
  }
  Status put_header(Bytes header) {
    COLLECT_TRY(flush());
    return put(header, 0);
  }

 private:
  static constexpr size_t kBlockBytes = size_t{1} << 20;

  Status flush() {
    COLLECT_TRY(put(block_, offset_));
    offset_ += block_.size();
    block_.clear();
    return {};
  }
  Status put(Bytes bytes, uint64_t offset) {
    for (size_t at = 0; at < bytes.size();) {
      const ssize_t wrote =
          ::pwrite(fd_, bytes.data() + at, bytes.size() - at, static_cast<off_t>(offset + at));
      if (wrote < 0 && errno != EINTR) return errno_error(errno, path_);
      if (wrote > 0) at += static_cast<size_t>(wrote);
    }
    return {};
  }

  const int fd_;
  const std::string path_;
  uint64_t offset_ = calls::kLodHeaderBytes;
  std::vector<uint8_t> block_;
};

// Compares what would be written with what is there.
class LodComparison final : public ByteSink {
 public:
  explicit LodComparison(Bytes file) : file_(file) {}

  Status write(Bytes bytes) override {
    COLLECT_TRY(compare(bytes, offset_));
    offset_ += bytes.size();
    return {};
  }
  Status end(Bytes header) const {
    COLLECT_TRY(compare(header, 0));
    return offset_ == file_.size() ? Status() : differs(offset_);
  }

 private:
  static Status differs(uint64_t offset) {
    return Error{Code::kDamaged,
                 fmt::format("offset {}: does not say what the events say", offset)};
  }
  Status compare(Bytes bytes, uint64_t offset) const {
    const uint64_t left = file_.size() - std::min<uint64_t>(offset, file_.size());
    const size_t there = static_cast<size_t>(std::min<uint64_t>(bytes.size(), left));
    const auto at = std::mismatch(bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(there),
                                  file_.begin() + static_cast<ptrdiff_t>(file_.size() - left));
    const auto same = static_cast<uint64_t>(at.first - bytes.begin());
    return same == bytes.size() ? Status() : differs(offset + same);
  }

  const Bytes file_;
  uint64_t offset_ = calls::kLodHeaderBytes;
};

// Checks what is true of the calls of every thread: cheap, for a figure that is shown without
// reading events.
bool is_credible(const calls::LodSummary& summary, const calls::LodReader& reader,
                 const atf::IndexReader& index) {
  const auto& counts = summary.counts;
  if (counts.events != index.size()) return false;
  if (counts.calls > index.size() || counts.too_deep > index.size()) return false;
  if (!reader.times_ascend() || index.size() == 0) return true;
  const uint64_t first_ns = index.time_of(0);
  const uint64_t last_ns = index.time_of(index.size() - 1);
  if (reader.first_ns() != first_ns || reader.last_ns() != last_ns) return false;
  const uint64_t span_ns = last_ns - first_ns;
  uint64_t calls_left = counts.calls + counts.too_deep;
  uint64_t self_left_ns = span_ns;
  for (const calls::FunctionTimes& times : summary.totals.times()) {
    if (times.calls > calls_left || times.self_ns > self_left_ns) return false;
    if (times.total_ns > span_ns || times.longest_ns > span_ns) return false;
    if (times.self_ns > times.total_ns || times.waited.total_ns > span_ns) return false;
    calls_left -= times.calls;
    self_left_ns -= times.self_ns;
  }
  self_left_ns = span_ns;
  for (const calls::PathNode& node : summary.paths) {
    if (node.times.total_ns > span_ns || node.times.self_ns > self_left_ns) return false;
    self_left_ns -= node.times.self_ns;
  }
  return true;
}

// The pages of a large file that were read leave this process.
struct PagesDropped : calls::CallSink {
  explicit PagesDropped(const FileBytes& dropped) : file(dropped) {}
  void on_call_begin(const calls::Call&) {
    if (++calls % (1u << 22) == 0) file.drop_pages();
  }
  const FileBytes& file;
  uint64_t calls = 0;
};

Status make_file(const RootedDirectory& root, const TraceThread& files,
                 const atf::IndexReader& index, const std::vector<calls::Gap>& gaps,
                 const std::vector<calls::Stall>& stalls) {
  const std::string directory = storage::thread_directory_name(files.n) + "/";
  const std::string temporary = directory + storage::kLodTemporaryFile;
  const Status removed = root.remove_file(temporary);  // of who was interrupted
  if (!removed.ok() && removed.code() != Code::kNotFound) return removed;
  const auto file = root.open_file(temporary, storage::FileUse::kCreate);
  if (!file.ok()) return file.error();
  LodFile body(file->get(), root.path_of(temporary));
  calls::LodBuilder builder(body);
  auto summary = std::make_unique<calls::LodSummary>();
  PagesDropped pages(files.index);
  const auto header = calls::build_lod(index, gaps, stalls, source_of(index, gaps, stalls), builder,
                                       *summary, pages);
  files.index.drop_pages();
  Status made = header.ok() ? body.put_header(*header) : Status(header.error());
  if (made.ok()) made = root.rename(temporary, directory + storage::kLodFile);
  if (!made.ok()) (void)root.remove_file(temporary);
  return made;
}

// Sealed by us: others' directories are left as they are.
bool may_be_written(const Trace& trace, const SessionManifest& manifest) {
  return trace.kind == TraceKind::kSession && !manifest.said_state.empty() &&
         manifest.state != storage::SessionState::kRecording;
}

// Reads the section in parts, so that little of it stays in memory.
bool has_right_checksum(const atf::IndexReader& index, const FileBytes& file) {
  constexpr size_t kPartBytes = size_t{64} << 20;
  const Bytes section = index.section_bytes();
  uint32_t checksum = 0;
  for (size_t at = 0; at < section.size(); at += kPartBytes) {
    checksum = atf::section_checksum(
        index.version(), section.subspan(at, std::min(kPartBytes, section.size() - at)), checksum);
    file.drop_pages();
  }
  const atf::ChecksumState state = index.checksum(checksum);
  return state == atf::ChecksumState::kGood || state == atf::ChecksumState::kOtherAlgorithm;
}

// One maker at a time, in all processes: two would write over each other's temporary file, and one
// of them do the other's work. kUnavailable: another one is still at it.
Result<Descriptor> take_turn(const std::string& session) {
  Descriptor turn(::open(session.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (turn.get() < 0) return errno_error(errno, session);
  const auto until = std::chrono::steady_clock::now() + kLodTurnBound;
  while (::flock(turn.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EINTR) continue;
    if (errno != EWOULDBLOCK) break;  // a file system without locks
    if (std::chrono::steady_clock::now() >= until) {
      return Error{Code::kUnavailable, session + ": another program makes its index.lod"};
    }
    std::this_thread::sleep_for(kLodTurnLook);
  }
  return turn;
}

}  // namespace

std::optional<ThreadLod> find_lod(const TraceThread& files, const atf::IndexReader& index,
                                  const std::vector<calls::Gap>& gaps,
                                  const std::vector<calls::Stall>& stalls) {
  if (!files.lod) return std::nullopt;
  auto reader = calls::LodReader::open(files.lod->bytes());
  if (!reader.ok() || !reader->is_of(source_of(index, gaps, stalls))) return std::nullopt;
  auto summary = reader->summary();
  if (!summary.ok() || (*summary)->gaps.size() != gaps.size()) return std::nullopt;
  if (!is_credible(**summary, *reader, index)) return std::nullopt;
  return ThreadLod{std::move(*reader), std::move(*summary)};
}

std::optional<LodProblem> problem_of_lod(const TraceThread& files, const atf::IndexReader& index,
                                         const std::vector<calls::Gap>& gaps,
                                         const std::vector<calls::Stall>& stalls) {
  if (!files.lod) return std::nullopt;
  const auto reader = calls::LodReader::open(files.lod->bytes());
  if (!reader.ok()) return LodProblem{reader.error().message};
  const calls::LodSource source = source_of(index, gaps, stalls);
  if (!reader->is_of(source)) return LodProblem{"was made of another state of the thread"};
  if (const Status checked = reader->check(); !checked.ok()) {
    return LodProblem{checked.error().message};
  }
  LodComparison comparison(files.lod->bytes());
  calls::LodBuilder builder(comparison, reader->leaf_events());
  auto summary = std::make_unique<calls::LodSummary>();
  PagesDropped pages(files.index);
  const auto header = calls::build_lod(index, gaps, stalls, source, builder, *summary, pages);
  files.index.drop_pages();
  const Status same = header.ok() ? comparison.end(*header) : Status(header.error());
  if (same.ok()) return std::nullopt;
  return LodProblem{same.error().message, find_lod(files, index, gaps, stalls).has_value()};
}

Status make_lods(Trace& trace, const std::function<void(size_t, size_t)>& progress) {
  if (!trace.manifest) return {};
  const auto manifest = SessionManifest::of(trace);
  if (!manifest.ok() || !may_be_written(trace, *manifest)) return {};
  const atf::SessionReader session(trace.files());
  std::vector<size_t> wanted;
  for (size_t i = 0; i < trace.threads.size(); ++i) {
    const auto& index = session.threads()[i].index;
    if (!index || index->size() < calls::kLeastLodEvents) continue;
    const uint32_t n = trace.threads[i].n;
    const bool is_there =
        find_lod(trace.threads[i], *index, call_gaps_of(*manifest, n), call_stalls_of(*manifest, n))
            .has_value();
    if (!is_there && index->state() == atf::FileState::kFinalized) wanted.push_back(i);
  }
  if (wanted.empty()) return {};
  const auto root = RootedDirectory::open(trace.path);
  if (!root.ok()) return root.error();
  const auto turn = take_turn(trace.path);
  if (!turn.ok()) return turn.error();
  const auto reload = [&root](TraceThread& files) {
    auto bytes = FileBytes::open(
        *root, fmt::format("{}/{}", storage::thread_directory_name(files.n), storage::kLodFile));
    if (bytes.ok()) files.lod = std::move(*bytes);
  };
  std::mutex mutex;
  Status first;  // guarded by `mutex`
  share_work(wanted.size(), progress, [&](size_t, size_t piece) {
    TraceThread& files = trace.threads[wanted[piece]];
    const atf::IndexReader& index = *session.threads()[wanted[piece]].index;
    const auto gaps = call_gaps_of(*manifest, files.n);
    const auto stalls = call_stalls_of(*manifest, files.n);
    reload(files);
    if (find_lod(files, index, gaps, stalls)) return;     // who had the turn before made it
    if (!has_right_checksum(index, files.index)) return;  // its reader reports that
    const Status made = make_file(*root, files, index, gaps, stalls);
    if (made.ok()) {
      reload(files);
      return;
    }
    const std::lock_guard lock(mutex);
    if (first.ok()) first = made;
  });
  return first;
}

}  // namespace collect::read

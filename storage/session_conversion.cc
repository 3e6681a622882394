#include "storage/session_conversion.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "formats/atf/writer.h"
#include "storage/session_files.h"
#include "storage/session_pages.h"
#include "storage/space_guard.h"

namespace collect::storage {
namespace {

uint32_t number_of(atf::Version version) {
  return static_cast<uint32_t>(version);
}

Status check_input(const SessionPlace& from, const Manifest& manifest, atf::Version version) {
  if (manifest.state == SessionState::kRecording) {
    return Error{Code::kUnsupported, from.name + " is not sealed yet"};
  }
  if (manifest.threads.empty() && !manifest.foreign_streams.empty()) {
    return Error{Code::kUnsupported,
                 from.name + " is a stream of " +
                     std::string(foreign_kind_name(manifest.foreign_streams.front().kind)) +
                     " and has no ATF files"};
  }
  if (manifest.identity.version == version) {
    return Error{Code::kUnsupported,
                 from.name + " has ATF version " + std::to_string(number_of(version)) + " already"};
  }
  return {};
}

// Positions in the files instead of the agent's numbers, and stream ids that are there in any case:
// threads that were found without a manifest have none.
Manifest manifest_to_tell(const Manifest& manifest) {
  Manifest told = manifest;
  told.containers.clear();
  told.containers_removed = 0;
  told.foreign_streams.clear();
  for (ManifestThread& thread : told.threads) {
    thread.stream_id = thread.id + 1;
    thread.index_next = thread.events;
    thread.detail_next = thread.detail_records;
  }
  return told;
}

class Conversion {
 public:
  Conversion(Fs& fs, const SessionOptions& options, const SessionPlace& from, Manifest manifest,
             atf::Version version, const ConversionProgress& progress)
      : fs_(fs),
        from_(from),
        was_(manifest.identity.version),
        manifest_(std::move(manifest)),
        progress_(progress),
        session_(fs, options, "the session's files", version) {}

  Result<ReplayReport> run() {
    COLLECT_TRY(progress_(0, manifest_.totals.stored_bytes));
    COLLECT_TRY(session_.begin(manifest_));
    COLLECT_TRY(session_.explain(manifest_));
    for (const ManifestThread& thread : manifest_.threads) {
      const std::string directory = thread_directory_name(thread.id);
      COLLECT_TRY(lane(thread, Lane::kIndex, directory + "/" + kIndexFile));
      if (thread.has_detail) {
        COLLECT_TRY(lane(thread, Lane::kDetail, directory + "/" + kDetailFile));
      }
    }
    COLLECT_TRY(session_.manifest(manifest_));
    auto report = session_.finish();
    // Sealing is not interrupted, but nobody may want the session any more.
    if (report.ok()) {
      COLLECT_TRY(progress_(manifest_.totals.stored_bytes, manifest_.totals.stored_bytes));
    }
    return report;
  }

 private:
  // What cannot be read is missing from the new session; what cannot be read now, because this
  // machine is out of something, is an error.
  Status lane(const ManifestThread& thread, Lane lane, const std::string& path) {
    auto input = open_lane(fs_, from_.directory + "/" + path, lane);
    if (!input.ok() && input.code() == Code::kExhausted) return input.error();
    if (!input.ok()) {
      session_.missing({input.error().message});
      return {};
    }
    if (input->version != was_ || input->thread_id != thread.thread_id) {
      session_.missing({path + ": not of this session: of another ATF version, or thread"});
      return {};
    }
    if (!input->checksum) session_.missing({path + ": it has no footer, or a wrong one"});
    input->source.thread = thread.id;
    input->source.stream_id = thread.stream_id;
    LanePages pages(std::move(input->source), manifest_);
    uint32_t checksum = 0;
    while (true) {
      auto page = pages.next(buffer_);
      if (!page.ok() && page.code() == Code::kExhausted) return page.error();
      if (!page.ok()) {
        session_.missing({page.error().message});
        break;
      }
      if (!*page) break;
      checksum = atf::section_checksum(was_, (*page)->bytes, checksum);
      const auto taken = session_.page(**page);
      if (!taken.ok()) return taken.error();
      if (*taken) session_.missing({path + ": " + **taken});
      done_bytes_ += (*page)->bytes.size();
      COLLECT_TRY(progress_(std::min(done_bytes_, manifest_.totals.stored_bytes),
                            manifest_.totals.stored_bytes));
    }
    // 0 stands for: not checked.
    if (input->checksum && *input->checksum != 0 && *input->checksum != checksum) {
      session_.missing({path + ": its checksum does not fit its records"});
    }
    return {};
  }

  Fs& fs_;
  const SessionPlace& from_;
  const atf::Version was_;
  const Manifest manifest_;
  const ConversionProgress& progress_;
  SessionRebuild session_;
  std::vector<uint8_t> buffer_;
  uint64_t done_bytes_ = 0;
};

Status check_room(Fs& fs, const SessionOptions& options, const Manifest& manifest) {
  SpaceGuard space(fs, options.root,
                   {options.max_session_bytes, options.keep_free_bytes, options.keep_free_files});
  COLLECT_TRY(space.admit(0, manifest.totals.stored_bytes));
  return space.admit_files(kFilesPerSession + kFilesPerThread * manifest.threads.size());
}

// From the directory that it was built in to its own name.
Status publish(Fs& fs, const std::string& built, const std::string& root,
               const SessionPlace& place) {
  const std::string target = root + "/" + place.session;
  // Nobody else gives such a name; and a directory with something in it is never replaced.
  if (fs.exists(target)) return Error{Code::kAlreadyExists, target + " is there already"};
  COLLECT_TRY(fs.rename(built, target));
  return fs.sync_directory(root);
}

}  // namespace

Result<ConvertedSession> convert_session(Fs& fs, const SessionOptions& options,
                                         const SessionPlace& from, atf::Version version,
                                         const ConversionProgress& progress) {
  auto manifest = read_manifest(fs, from.directory);
  if (!manifest.ok()) return manifest.error();
  COLLECT_TRY(check_input(from, *manifest, version));
  ConvertedSession converted;
  const std::string name =
      converted_session_name(from.session, number_of(version)) + "/" + pid_directory_name(from.pid);
  auto place = parse_place(options.root, name);
  COLLECT_CHECK(place.has_value());
  converted.place = std::move(*place);
  if (fs.exists(options.root + "/" + converted.place.session)) {
    return Error{Code::kAlreadyExists, name + " is there already; use it, or delete it first"};
  }
  COLLECT_TRY(check_room(fs, options, *manifest));
  COLLECT_TRY(remove_unfinished_conversions(fs, options.root));
  SessionOptions inner = options;
  inner.root = options.root + "/" + kConvertingDirectory;
  inner.capture.enabled = false;
  auto report = Conversion(fs, inner, from, manifest_to_tell(*manifest), version, progress).run();
  Status done = report.ok() ? Status() : Status(report.error());
  if (done.ok()) {
    const std::string& built = report->directory;
    done = publish(fs, built.substr(0, built.rfind('/')), options.root, converted.place);
  }
  const Status removed = remove_unfinished_conversions(fs, options.root);
  COLLECT_TRY(done);
  COLLECT_TRY(removed);
  converted.report = std::move(*report);
  converted.report.directory = converted.place.directory;
  auto written = read_manifest(fs, converted.place.directory);
  if (!written.ok()) return written.error();
  converted.manifest = std::move(*written);
  return converted;
}

Status remove_unfinished_conversions(Fs& fs, const std::string& root) {
  const std::string directory = root + "/" + kConvertingDirectory;
  if (!fs.exists(directory)) return {};
  auto places = list_sessions(fs, directory);
  if (!places.ok()) return places.error();
  for (const SessionPlace& place : *places) {
    const auto removed = remove_session(fs, place);
    if (!removed.ok()) return removed.error();
  }
  // One that was just being made has no pid directory yet.
  const auto sessions = fs.list_directory(directory);
  if (!sessions.ok()) return sessions.error();
  for (const std::string& session : *sessions) {
    if (is_session_name(session)) COLLECT_TRY(fs.remove_directory(directory + "/" + session));
  }
  return fs.remove_directory(directory);
}

}  // namespace collect::storage

#include "storage/rebuild/session_conversion.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "formats/atf/writer.h"
#include "storage/model/switch_times.h"
#include "storage/rebuild/session_pages.h"

namespace collect::storage {
namespace {

uint32_t number_of(atf::Version version) {
  return static_cast<uint32_t>(version);
}

Status check_input(const SessionPath& from, const Manifest& manifest, atf::Version version) {
  if (manifest.state == SessionState::kRecording) {
    return Error{Code::kUnsupported, from.name + " is not sealed yet"};
  }
  if (manifest.threads.empty() && manifest.has_stream_of_others()) {
    return Error{Code::kUnsupported,
                 fmt::format("{} is a stream of {} and has no ATF files", from.name,
                             passthrough_kind_name(PassthroughKind::kDial9))};
  }
  if (manifest.identity.version == version) {
    return Error{Code::kUnsupported,
                 fmt::format("{} has ATF version {} already", from.name, number_of(version))};
  }
  return {};
}

class Conversion {
 public:
  Conversion(Fs& fs, const SessionOptions& options, const SessionPath& from, Manifest manifest,
             atf::Version version, const MakingProgress& progress)
      : fs_(fs),
        from_(from),
        was_(manifest.identity.version),
        manifest_(std::move(manifest)),
        progress_(progress),
        session_(fs, options, "the session's files", version) {}

  Result<ReplayReport> run() {
    COLLECT_TRY(progress_(0, manifest_.totals.stored_bytes));
    COLLECT_TRY(session_.begin(manifest_));
    COLLECT_TRY(session_.add_metadata(manifest_));
    for (const ManifestThread& thread : manifest_.threads) {
      COLLECT_TRY(lane(thread, Lane::kIndex));
      if (thread.has_detail) COLLECT_TRY(lane(thread, Lane::kDetail));
    }
    COLLECT_TRY(session_.manifest(manifest_));
    auto report = session_.finish();
    // Sealing is not interrupted, but no one may want the session any more.
    if (report.ok()) {
      COLLECT_TRY(progress_(manifest_.totals.stored_bytes, manifest_.totals.stored_bytes));
    }
    return report;
  }

 private:
  // What cannot be read is missing from the new session; what cannot be read now, because this
  // machine is out of something, is an error.
  Status lane(const ManifestThread& thread, Lane lane) {
    const std::string path = thread_file_name(thread.id, lane);
    auto input = open_lane(fs_, fmt::format("{}/{}", from_.directory, path), lane);
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
      if (*taken) session_.missing({fmt::format("{}: {}", path, **taken)});
      done_bytes_ += (*page)->bytes.size();
      COLLECT_TRY(progress_(std::min(done_bytes_, manifest_.totals.stored_bytes),
                            manifest_.totals.stored_bytes));
    }
    // 0 means: not checked.
    if (input->checksum && *input->checksum != 0 && *input->checksum != checksum) {
      session_.missing({path + ": its checksum does not fit its records"});
    }
    return {};
  }

  Fs& fs_;
  const SessionPath& from_;
  const atf::Version was_;
  const Manifest manifest_;
  const MakingProgress& progress_;
  SessionRebuild session_;
  std::vector<uint8_t> buffer_;
  uint64_t done_bytes_ = 0;
};

}  // namespace

Result<MadeSession> convert_session(Fs& fs, const SessionOptions& options, const SessionPath& from,
                                    atf::Version version, const MakingProgress& progress) {
  auto manifest = read_manifest(fs, from.directory);
  if (!manifest.ok()) return manifest.error();
  COLLECT_TRY(check_input(from, *manifest, version));
  // What a damaged file has no more is counted as missing at the end.
  const Status switches = read_switches(fs, from.directory, manifest->stalls);
  if (!switches.ok() && switches.code() != Code::kDamaged) return switches.error();
  const std::string name =
      fmt::format("{}/{}", converted_session_name(from.session, number_of(version)),
                  pid_directory_name(from.pid));
  const auto session_path = parse_session_path(options.root, name);
  COLLECT_CHECK(session_path.has_value());
  if (fs.exists(fmt::format("{}/{}", options.root, session_path->session))) {
    return Error{Code::kAlreadyExists, name + " is there already; use it, or delete it first"};
  }
  COLLECT_TRY(check_room(fs, options, manifest->totals.stored_bytes, manifest->threads.size()));
  const SessionOptions inner = making_options(options);
  return make_session(fs, options, *session_path, [&] {
    return Conversion(fs, inner, from, manifest_of_files(*manifest), version, progress).run();
  });
}

}  // namespace collect::storage

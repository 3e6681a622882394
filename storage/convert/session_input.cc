#include "storage/convert/session_input.h"

#include <fmt/core.h>

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <utility>

#include "formats/atf/session_reader.h"
#include "formats/atf/writer.h"
#include "storage/convert/ordered_thread.h"
#include "storage/manifest/manifest.h"
#include "storage/manifest/session_health.h"
#include "storage/read/lod_files.h"
#include "storage/read/session_manifest.h"
#include "storage/read/thread_breaks.h"

namespace collect::convert {
namespace {

constexpr std::string_view kEvents = "events that the manifest counts and the files do not have";
constexpr std::string_view kDetails =
    "detail records that the manifest counts and the files do not have";

uint64_t less_than(uint64_t counted, uint64_t found) {
  return counted - std::min(counted, found);
}

// A part at a time, so that of a large file little stays in memory. Parts are whole events.
void each_part(Bytes section, const read::FileBytes& file, const std::function<void(Bytes)>& read) {
  constexpr size_t kPartBytes = size_t{64} << 20;
  for (size_t at = 0; at < section.size(); at += kPartBytes) {
    read(section.subspan(at, std::min(kPartBytes, section.size() - at)));
    file.drop_pages();
  }
}

bool is_open(const auto& file) {
  return file.state() != atf::FileState::kFinalized;
}

// What was checked when index.lod was made.
std::optional<read::ThreadLod> lod_of(const atf::SessionThread& thread,
                                      const read::TraceThread& files,
                                      const std::optional<read::SessionManifest>& manifest) {
  if (!thread.index || !manifest) return std::nullopt;
  return read::find_lod(files, *thread.index, read::call_gaps_of(*manifest, thread.n),
                        read::call_stalls_of(*manifest, thread.n));
}

void check_events(const atf::IndexReader& index, const read::TraceThread& files,
                  const std::string& name, ConvertLog& log) {
  uint32_t checksum = 0;
  uint64_t unknown = 0;
  each_part(index.section_bytes(), files.index, [&](Bytes part) {
    checksum = atf::section_checksum(index.version(), part, checksum);
    const atf::EventSpan events(index.version(),
                                part.first(part.size() / atf::kEventBytes * atf::kEventBytes), 0);
    events.for_each(
        [&](uint64_t, const atf::IndexEvent& event) { unknown += is_known(event) ? 0 : 1; });
  });
  log.missing("events of an unknown kind", unknown);
  if (index.checksum(checksum) == atf::ChecksumState::kBad) {
    log.missing(name + "the checksum of the events does not fit them");
  }
}

void check_thread(const atf::SessionThread& thread, const read::TraceThread& files,
                  const std::optional<read::SessionManifest>& manifest, ConvertLog& log) {
  const std::string name = fmt::format("thread_{}: ", thread.n);
  for (const atf::Finding& finding : thread.findings.list()) {
    if (finding.severity == Severity::kError) log.missing(name + finding.sentence);
  }
  if (!thread.index) {
    log.missing("threads that cannot be read", 1);
    return;
  }
  const atf::IndexReader& index = *thread.index;
  if (const auto lod = lod_of(thread, files, manifest)) {
    log.missing("events of an unknown kind", lod->summary->counts.unknown_kinds);
  } else {
    check_events(index, files, name, log);
  }
  if (is_open(index)) log.missing("events that were cut off", index.trailing_bytes() != 0 ? 1 : 0);
  if (!thread.detail) return;
  const atf::DetailReader& detail = *thread.detail;
  uint32_t checksum = 0;
  each_part(detail.section(), *files.detail, [&](Bytes part) {
    checksum = atf::section_checksum(detail.version(), part, checksum);
  });
  if (detail.checksum(checksum) == atf::ChecksumState::kBad) {
    log.missing(name + "the checksum of the detail records does not fit them");
  }
}

void compare_counts(const storage::Manifest& manifest, const atf::SessionReader& session,
                    ConvertLog& log) {
  std::map<uint32_t, const atf::SessionThread*> found;
  for (const atf::SessionThread& thread : session.threads()) found[thread.n] = &thread;
  for (const storage::ManifestThread& counted : manifest.threads) {
    const auto thread = found.find(counted.id);
    if (thread == found.end()) {
      log.missing("threads that the manifest names and that are not there", 1);
      log.missing(kEvents, counted.events);
      log.missing(kDetails, counted.detail_records);
      continue;
    }
    const auto& [n, files] = *thread;
    log.missing(kEvents, less_than(counted.events, files->index ? files->index->size() : 0));
    log.missing(kDetails,
                less_than(counted.detail_records, files->detail ? files->detail->size() : 0));
  }
}

// Whether the manifest says that the session is complete; what it says is missing goes to `log`.
bool is_said_to_be_complete(const read::Trace& trace, const atf::SessionReader& session,
                            ConvertLog& log) {
  if (!trace.manifest) {
    log.missing(read::session_health(trace, nullptr)->missing);
    return false;
  }
  const auto manifest = storage::manifest_from_json(*trace.manifest);
  if (!manifest.ok()) {
    log.missing(fmt::format("{}: {}", trace.manifest_path, manifest.error().message));
    return false;
  }
  compare_counts(*manifest, session, log);
  if (manifest->state == storage::SessionState::kRecording) {
    log.missing("the end of the session: it is not sealed (collectctl recover seals it)");
    return false;
  }
  const storage::SessionHealth health = storage::health_of(*manifest);
  if (!health.is_complete()) log.missing("the session is not complete: " + health.missing);
  return health.is_complete();
}

uint64_t open_files(const atf::SessionReader& session) {
  uint64_t open = 0;
  for (const atf::SessionThread& thread : session.threads()) {
    if (thread.index && is_open(*thread.index)) ++open;
    if (thread.detail && is_open(*thread.detail)) ++open;
  }
  return open;
}

}  // namespace

void check_session_input(const read::Trace& trace, ConvertLog& log) {
  for (const std::string& sentence : trace.unopened()) log.missing(sentence);
  const atf::SessionReader session(trace.files());
  std::optional<read::SessionManifest> manifest;
  if (trace.manifest) {
    auto parsed = read::SessionManifest::parse(*trace.manifest);
    if (parsed.ok()) manifest = std::move(*parsed);
  }
  for (size_t i = 0; i < trace.threads.size(); ++i) {
    check_thread(session.threads()[i], trace.threads[i], manifest, log);
  }
  // A single thread, or a single file, may have no session around it.
  const bool has_manifest = trace.kind == read::TraceKind::kSession;
  if (has_manifest && !is_said_to_be_complete(trace, session, log)) return;
  log.missing("files that were never finalized", open_files(session));
}

storage::Manifest converted_manifest(const read::Trace& trace, const ConvertLog& log) {
  using storage::SessionState;
  storage::Manifest manifest;
  manifest.state = SessionState::kComplete;
  if (trace.manifest) {
    auto parsed = storage::manifest_from_json(*trace.manifest);
    if (parsed.ok()) manifest = std::move(*parsed);
  }
  if (manifest.state == SessionState::kRecording) {
    manifest.state = SessionState::kRecovered;
    manifest.reason = "the session was not sealed when it was converted";
  }
  for (const storage::MissingInput& missing : log.missing()) {
    const auto& said = manifest.input_missing;
    if (std::find(said.begin(), said.end(), missing) == said.end()) {
      storage::add_missing_input(manifest, missing);
    }
  }
  manifest.input_missing_left_out += log.missing_left_out();
  if (!log.is_input_whole() && manifest.state == SessionState::kComplete) {
    manifest.state = SessionState::kRecovered;
  }
  return manifest;
}

}  // namespace collect::convert

#include "daemon/ctl/convert/session_input.h"

#include <algorithm>
#include <map>

#include "daemon/ctl/names.h"
#include "formats/atf/session_reader.h"
#include "formats/atf/writer.h"
#include "storage/manifest.h"
#include "storage/session_health.h"

namespace collect::ctl {
namespace {

constexpr std::string_view kEvents = "events that the manifest counts and the files do not have";
constexpr std::string_view kDetails =
    "detail records that the manifest counts and the files do not have";

uint64_t less_than(uint64_t counted, uint64_t found) {
  return counted - std::min(counted, found);
}

// A part at a time, so that of a large file little stays in memory.
uint32_t checksum_of(atf::Version version, Bytes section, const FileBytes& file) {
  constexpr size_t kPartBytes = size_t{64} << 20;
  uint32_t checksum = 0;
  for (size_t at = 0; at < section.size(); at += kPartBytes) {
    const Bytes part = section.subspan(at, std::min(kPartBytes, section.size() - at));
    checksum = atf::section_checksum(version, part, checksum);
    file.drop_pages();
  }
  return checksum;
}

void check_thread(const atf::SessionThread& thread, const TraceThread& files, ConvertLog& log) {
  const std::string name = "thread_" + std::to_string(thread.n) + ": ";
  for (const atf::Finding& finding : thread.findings.list()) {
    if (finding.severity == Severity::kError) log.missing(name + finding.sentence);
  }
  if (!thread.index) {
    log.missing("threads that cannot be read", 1);
    return;
  }
  const atf::IndexReader& index = *thread.index;
  const uint32_t events = checksum_of(index.version(), index.section_bytes(), files.index);
  if (index.checksum(events) == atf::ChecksumState::kBad) {
    log.missing(name + "the checksum of the events does not fit them");
  }
  if (!thread.detail) return;
  const atf::DetailReader& detail = *thread.detail;
  const uint32_t records = checksum_of(detail.version(), detail.section(), *files.detail);
  if (detail.checksum(records) == atf::ChecksumState::kBad) {
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

}  // namespace

void check_session_input(const Trace& trace, ConvertLog& log) {
  for (const std::string& sentence : trace.unopened()) log.missing(sentence);
  const atf::SessionReader session(trace.files());
  for (size_t i = 0; i < trace.threads.size(); ++i) {
    check_thread(session.threads()[i], trace.threads[i], log);
  }
  // One thread, or one file, was asked for: its session may be missing.
  if (trace.kind != TraceKind::kSession) return;
  if (!trace.manifest) {
    log.missing(session_health(trace, nullptr)->missing);
    return;
  }
  const auto manifest = storage::manifest_from_json(*trace.manifest);
  if (!manifest.ok()) {
    log.missing(trace.manifest_path + ": " + manifest.error().message);
    return;
  }
  compare_counts(*manifest, session, log);
  if (manifest->state == storage::SessionState::kRecording) {
    log.missing("the end of the session: it is not sealed (collectctl recover seals it)");
    return;
  }
  const storage::SessionHealth health = storage::health_of(*manifest);
  if (!health.is_complete()) log.missing("the session is not complete: " + health.missing);
}

}  // namespace collect::ctl

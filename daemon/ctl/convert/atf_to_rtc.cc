// An ATF session into one RTC container, as the daemon would have written it: whoever has it can
// build the session again, byte for byte.
#include <algorithm>
#include <map>
#include <queue>
#include <utility>

#include "daemon/ctl/convert/convert.h"
#include "daemon/ctl/convert/output_file.h"
#include "formats/core/crc32.h"
#include "storage/capture_writer.h"
#include "storage/session_layout.h"
#include "storage/session_pages.h"

namespace collect::ctl {
namespace {

using storage::LanePages;

// The session's own manifest as far as there is one, made true for what is read here: files of
// others have none, or say less.
storage::Manifest manifest_of(const Trace& trace, const atf::SessionReader& session,
                              const ConvertLog& log) {
  storage::Manifest manifest;
  if (trace.manifest) {
    auto parsed = storage::manifest_from_json(*trace.manifest);
    if (parsed.ok()) manifest = std::move(*parsed);
  }
  std::map<uint32_t, storage::ManifestThread> known;
  for (storage::ManifestThread& thread : manifest.threads) known[thread.id] = std::move(thread);
  manifest.threads.clear();
  const storage::SessionTotals before = std::exchange(manifest.totals, {});
  manifest.totals.first_ns = before.first_ns;
  manifest.totals.last_ns = before.last_ns;
  manifest.totals.stalls = before.stalls;
  manifest.containers.clear();
  manifest.containers_removed = 0;
  for (const atf::SessionThread& thread : session.threads()) {
    if (!thread.index) continue;
    const atf::IndexHeader& header = thread.index->header();
    if (manifest.threads.empty()) {
      manifest.identity.version = header.version;
      manifest.identity.arch = header.arch;
      manifest.identity.os = header.os;
      manifest.identity.clock = header.clock;
    }
    storage::ManifestThread& ours = manifest.threads.emplace_back(std::move(known[thread.n]));
    ours.id = thread.n;
    ours.stream_id = thread.n + 1;
    ours.thread_id = header.thread_id;
    ours.ended = true;
    ours.has_detail = thread.detail.has_value();
    ours.events = ours.index_next = thread.index->size();
    ours.detail_records = ours.detail_next = thread.detail ? thread.detail->size() : 0;
    ++manifest.totals.threads;
    manifest.totals.events += ours.events;
    manifest.totals.detail_records += ours.detail_records;
    manifest.totals.lost_events += ours.lost_events;
    manifest.totals.lost_detail_records += ours.lost_detail_records;
  }
  if (manifest.state == storage::SessionState::kRecording) {
    manifest.state = storage::SessionState::kRecovered;
    manifest.reason = "the session was not sealed when it was converted";
  }
  for (const storage::MissingInput& missing : log.missing()) {
    storage::add_missing_input(manifest, missing);
  }
  manifest.input_missing_left_out += log.missing_left_out();
  if (!log.is_input_whole() && manifest.state == storage::SessionState::kComplete) {
    manifest.state = storage::SessionState::kRecovered;
  }
  return manifest;
}

// Streams of other formats, each as one object: the file is whole frames.
Status write_foreign(const Trace& trace, const storage::Manifest& manifest,
                     storage::CaptureWriter& capture, ConvertLog& log) {
  if (trace.kind != TraceKind::kSession) return {};
  const auto directory = storage::RootedDirectory::open(trace.path);
  if (!directory.ok()) return directory.error();
  for (const storage::ForeignStream& stream : manifest.foreign_streams) {
    const auto file = FileBytes::open(*directory, storage::foreign_file_name(stream.kind));
    if (!file.ok()) {
      log.missing(to_string(file.error()));
      continue;
    }
    const Bytes bytes = file->bytes();
    COLLECT_TRY(capture.foreign(stream.kind, {&bytes, 1}));
  }
  return {};
}

}  // namespace

Result<uint64_t> write_container(const Trace& trace, ByteSink& out, ConvertLog& log) {
  const atf::SessionReader session(trace.files());
  const storage::Manifest manifest = manifest_of(trace, session, log);
  if (manifest.threads.empty() && !trace.threads.empty()) {
    return Error{Code::kDamaged, trace.path + ": no thread of it can be read"};
  }
  std::vector<LanePages> lanes;
  const auto add_lane = [&](const atf::SessionThread& thread, Lane lane, Bytes records) {
    lanes.emplace_back(storage::LaneSource{thread.n, thread.n + 1, lane, records.size(),
                                           std::make_unique<storage::MappedRecords>(records)},
                       manifest);
  };
  for (const atf::SessionThread& thread : session.threads()) {
    if (!thread.index) continue;
    if (thread.index->version() != manifest.identity.version) {
      log.leave_out("threads of another ATF version than the first one");
      continue;
    }
    add_lane(thread, Lane::kIndex, thread.index->events().bytes());
    if (thread.detail) add_lane(thread, Lane::kDetail, thread.detail->section());
  }
  // A manifest stands behind what it counts of these; of pages, the end tells.
  storage::Manifest first = manifest;
  first.foreign_streams.clear();
  auto capture = storage::CaptureWriter::create(out, first);
  if (!capture.ok()) return capture.error();
  // In the order of time, page by page, so that a search by time finds its place.
  using Next = std::pair<uint64_t, size_t>;
  std::priority_queue<Next, std::vector<Next>, std::greater<>> order;
  const auto put_in_order = [&](size_t at) {
    const auto ns = lanes[at].next_ns();
    if (!ns.ok()) return Status(ns.error());
    if (*ns) order.emplace(**ns, at);
    return Status();
  };
  for (size_t i = 0; i < lanes.size(); ++i) COLLECT_TRY(put_in_order(i));
  const uint64_t all = session.events();
  uint64_t done = 0;
  std::vector<uint8_t> buffer;
  while (!order.empty()) {
    const size_t at = order.top().second;
    order.pop();
    auto page = lanes[at].next(buffer);
    if (!page.ok()) return page.error();
    if (!*page) continue;
    (*page)->bytes_crc32c = crc32c((*page)->bytes);
    COLLECT_TRY((*capture)->page(**page));
    if ((*page)->lane == Lane::kIndex) {
      done += (*page)->record_count;
      log.progress(done, all);
    }
    COLLECT_TRY(put_in_order(at));
  }
  COLLECT_TRY(write_foreign(trace, manifest, **capture, log));
  COLLECT_TRY((*capture)->finish(manifest));
  return done;
}

Status atf_to_rtc(const Trace& trace, const std::string& output, ConvertLog& log) {
  auto file = OutputFile::create(output, true);
  if (!file.ok()) return file.error();
  const auto events = write_container(trace, *file, log);
  if (!events.ok()) return events.error();
  COLLECT_TRY(file->commit());
  log.count("events", *events);
  log.wrote(output, file->size());
  return {};
}

}  // namespace collect::ctl

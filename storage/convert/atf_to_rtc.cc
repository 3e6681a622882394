// Converts an ATF session into one RTC container, as the daemon would have written it: the session
// can be built again from it, byte for byte.
#include <map>
#include <utility>

#include "storage/container/capture_writer.h"
#include "storage/convert/conversions.h"
#include "storage/convert/ordered_thread.h"
#include "storage/convert/session_input.h"
#include "storage/fs/output_file.h"
#include "storage/model/session_layout.h"
#include "storage/rebuild/session_pages.h"

namespace collect::convert {
namespace {

using storage::LanePages;

// Those of one ATF version, which is the first one's.
Result<std::vector<OrderedThread>> ordered_threads(const read::Trace& trace,
                                                   const std::string& directory, ConvertLog& log) {
  const std::vector<atf::ThreadFiles> files = trace.files();
  const atf::SessionReader session(files);
  std::vector<OrderedThread> threads;
  for (size_t i = 0; i < files.size(); ++i) {
    const auto& index = session.threads()[i].index;
    if (!index) continue;
    if (!threads.empty() && index->version() != threads.front().header().version) {
      log.leave_out("threads of another ATF version than the first one");
      continue;
    }
    auto thread = OrderedThread::of(files[i], directory, log);
    if (!thread.ok()) return thread.error();
    threads.push_back(std::move(*thread));
  }
  return threads;
}

// Made true for what is read here: the manifests of others say less.
storage::Manifest manifest_of(const read::Trace& trace, const std::vector<OrderedThread>& threads,
                              const ConvertLog& log) {
  storage::Manifest manifest = converted_manifest(trace, log);
  std::map<uint32_t, storage::ManifestThread> known;
  for (storage::ManifestThread& thread : manifest.threads) known[thread.id] = std::move(thread);
  manifest.threads.clear();
  const storage::SessionTotals before = std::exchange(manifest.totals, {});
  manifest.totals.first_ns = before.first_ns;
  manifest.totals.last_ns = before.last_ns;
  manifest.totals.stalls = before.stalls;
  manifest.containers.clear();
  manifest.containers_removed = 0;
  if (!threads.empty()) {
    const atf::IndexHeader& header = threads.front().header();
    manifest.identity.version = header.version;
    manifest.identity.arch = header.arch;
    manifest.identity.os = header.os;
    manifest.identity.clock = header.clock;
  }
  for (const OrderedThread& thread : threads) {
    storage::ManifestThread& ours = manifest.threads.emplace_back(std::move(known[thread.n()]));
    ours.id = thread.n();
    ours.stream_id = thread.n() + 1;
    ours.thread_id = thread.header().thread_id;
    ours.ended = true;
    ours.has_detail = thread.details().has_value();
    ours.events = ours.index_next = thread.event_count();
    ours.detail_records = ours.detail_next = thread.record_count();
    ++manifest.totals.threads;
    manifest.totals.events += ours.events;
    manifest.totals.detail_records += ours.detail_records;
    manifest.totals.lost_events += ours.lost_events;
    manifest.totals.lost_detail_records += ours.lost_detail_records;
  }
  return manifest;
}

// Streams of other formats, each as one object: the file is whole frames.
Status write_passthrough(const read::Trace& trace, const storage::Manifest& manifest,
                         storage::CaptureWriter& capture, ConvertLog& log) {
  if (trace.kind != read::TraceKind::kSession) return {};
  const auto directory = storage::RootedDirectory::open(trace.path);
  if (!directory.ok()) return directory.error();
  for (const storage::PassthroughStream& stream : manifest.passthrough_streams) {
    const auto file =
        read::FileBytes::open(*directory, storage::passthrough_file_name(stream.kind));
    if (!file.ok()) {
      log.missing(to_string(file.error()));
      continue;
    }
    const Bytes bytes = file->bytes();
    COLLECT_TRY(capture.passthrough(stream.kind, {&bytes, 1}));
  }
  return {};
}

}  // namespace

Result<uint64_t> write_container(const read::Trace& trace, ByteSink& out,
                                 const std::string& directory, ConvertLog& log) {
  const auto threads = ordered_threads(trace, directory, log);
  if (!threads.ok()) return threads.error();
  if (threads->empty() && !trace.threads.empty()) {
    return Error{Code::kDamaged, trace.path + ": no thread of it can be read"};
  }
  const storage::Manifest manifest = manifest_of(trace, *threads, log);
  std::vector<LanePages> lanes;
  const auto add_lane = [&](uint32_t n, Lane lane, Bytes records) {
    lanes.emplace_back(storage::LaneSource{n, n + 1, lane, records.size(),
                                           std::make_unique<storage::MappedRecords>(records)},
                       manifest);
  };
  for (const OrderedThread& thread : *threads) {
    add_lane(thread.n(), Lane::kIndex, thread.events());
    if (thread.details()) add_lane(thread.n(), Lane::kDetail, *thread.details());
  }
  // A manifest is behind what it counts of these; of pages, the end decides.
  storage::Manifest first = manifest;
  first.passthrough_streams.clear();
  auto capture = storage::CaptureWriter::create(out, first);
  if (!capture.ok()) return capture.error();
  const uint64_t all = manifest.totals.events;
  uint64_t done = 0;
  const auto take = [&](const Page& page) {
    if (page.lane == Lane::kIndex) log.progress(done += page.record_count, all);
    return (*capture)->page(page);
  };
  COLLECT_TRY(storage::take_in_time_order(lanes, take));
  COLLECT_TRY(write_passthrough(trace, manifest, **capture, log));
  COLLECT_TRY((*capture)->finish(manifest));
  return done;
}

Status atf_to_rtc(const read::Trace& trace, const std::string& output, ConvertLog& log) {
  auto file = storage::OutputFile::create(output, true);
  if (!file.ok()) return file.error();
  const auto events = write_container(trace, *file, directory_of(output), log);
  if (!events.ok()) return events.error();
  COLLECT_TRY(file->commit());
  log.count("events", *events);
  log.wrote(output, file->size());
  return {};
}

}  // namespace collect::convert

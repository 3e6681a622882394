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

namespace collect::ctl {
namespace {

using storage::Lane;

constexpr uint64_t kPageEvents = 2048;
constexpr size_t kPageDetailBytes = 64 << 10;

// What is missing before a record, from the manifest's gaps.
struct Loss {
  uint64_t count = 0;
  uint32_t reasons = 0;
  uint64_t first_ns = 0;
  uint64_t last_ns = 0;
};
using Losses = std::map<uint64_t, Loss>;  // by the position of the record behind them

// One lane of one thread, cut into pages. Numbers are positions in the file: what was lost has
// none.
class LanePages {
 public:
  LanePages(uint32_t stream_id, Lane lane, const atf::SessionThread& thread, Losses losses)
      : lane_(lane), thread_(thread), losses_(std::move(losses)) {
    page_.stream_id = stream_id;
    page_.lane = lane;
    if (lane == Lane::kDetail) records_.emplace(thread.detail->records());
  }

  // The next page, with borrowed or own bytes; false at the end.
  bool next() {
    page_.first_seq += page_.record_count;
    page_.record_count = 0;
    page_.lost_reasons = 0;
    const auto loss = losses_.find(page_.first_seq);
    if (loss != losses_.end()) {
      page_.lost_total += loss->second.count;
      page_.lost_reasons = loss->second.reasons;
      page_.lost_first_ns = loss->second.first_ns;
      page_.lost_last_ns = loss->second.last_ns;
      losses_.erase(loss);
    }
    const auto after = losses_.upper_bound(page_.first_seq);
    const uint64_t stop = after == losses_.end() ? UINT64_MAX : after->first;
    if (lane_ == Lane::kIndex) {
      take_events(stop);
    } else {
      take_details(stop);
    }
    page_.bytes_crc32c = crc32c(page_.bytes);
    return page_.record_count != 0 || page_.lost_reasons != 0;
  }
  const storage::Page& page() const { return page_; }

 private:
  void take_events(uint64_t stop) {
    const atf::IndexReader& index = *thread_.index;
    const uint64_t left = index.size() - std::min(index.size(), page_.first_seq);
    const uint64_t count = std::min({kPageEvents, left, stop - page_.first_seq});
    page_.bytes = index.events(page_.first_seq, count).bytes();
    page_.record_count = static_cast<uint32_t>(count);
    if (count == 0) return;
    page_.first_ns = index.time_of(page_.first_seq);
    page_.last_ns = index.time_of(page_.first_seq + count - 1);
  }

  void take_details(uint64_t stop) {
    const uint8_t* begin = nullptr;
    size_t size = 0;
    while (page_.first_seq + page_.record_count < stop && size < kPageDetailBytes) {
      const auto record = records_->next();
      if (!record) break;
      // The payload lies in the file behind its header.
      const uint8_t* at = record->payload.data() - atf::kDetailHeaderBytes;
      if (begin == nullptr) begin = at;
      size += atf::kDetailHeaderBytes + record->payload.size();
      if (page_.record_count++ == 0) page_.first_ns = record->timestamp_ns;
      page_.last_ns = record->timestamp_ns;
    }
    page_.bytes = Bytes(begin, size);
  }

  const Lane lane_;
  const atf::SessionThread& thread_;
  Losses losses_;
  std::optional<atf::DetailCursor> records_;
  storage::Page page_;
};

Losses losses_of(const storage::Manifest& manifest, uint32_t thread, Lane lane) {
  Losses losses;
  for (const storage::Gap& gap : manifest.gaps) {
    if (gap.thread != thread || gap.lane != lane) continue;
    Loss& loss = losses[gap.before_seq];
    if (loss.count == 0) loss.first_ns = gap.first_ns;
    loss.count += gap.lost;
    loss.reasons |= gap.reasons;
    loss.last_ns = gap.last_ns;
  }
  return losses;
}

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
  for (const atf::SessionThread& thread : session.threads()) {
    if (!thread.index) continue;
    if (thread.index->version() != manifest.identity.version) {
      log.leave_out("threads of another ATF version than the first one");
      continue;
    }
    lanes.emplace_back(thread.n + 1, Lane::kIndex, thread,
                       losses_of(manifest, thread.n, Lane::kIndex));
    if (!thread.detail) continue;
    lanes.emplace_back(thread.n + 1, Lane::kDetail, thread,
                       losses_of(manifest, thread.n, Lane::kDetail));
  }
  // A manifest stands behind what it counts of these; of pages, the end tells.
  storage::Manifest first = manifest;
  first.foreign_streams.clear();
  auto capture = storage::CaptureWriter::create(out, first);
  if (!capture.ok()) return capture.error();
  // In the order of time, page by page, so that a search by time finds its place.
  using Next = std::pair<uint64_t, size_t>;
  std::priority_queue<Next, std::vector<Next>, std::greater<>> order;
  for (size_t i = 0; i < lanes.size(); ++i) {
    if (lanes[i].next()) order.emplace(lanes[i].page().first_ns, i);
  }
  const uint64_t all = session.events();
  uint64_t done = 0;
  while (!order.empty()) {
    const size_t at = order.top().second;
    order.pop();
    const storage::Page& page = lanes[at].page();
    COLLECT_TRY((*capture)->page(page));
    if (page.lane == Lane::kIndex) done += page.record_count;
    if (page.lane == Lane::kIndex) log.progress(done, all);
    if (lanes[at].next()) order.emplace(lanes[at].page().first_ns, at);
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

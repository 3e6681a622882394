// An ATF session into WTF-trace files that the published viewer loads: one zone per thread, one
// scope type per function.
#include <fmt/core.h>

#include <algorithm>
#include <optional>

#include "storage/convert/conversions.h"
#include "storage/convert/ordered_thread.h"
#include "storage/convert/session_input.h"
#include "storage/convert/session_kinds.h"
#include "storage/convert/wtf/wtf_events.h"
#include "storage/convert/wtf/wtf_scopes.h"
#include "storage/manifest/manifest.h"
#include "storage/read/session_manifest.h"

namespace collect::convert {
namespace {

// Events that are written thread by thread: changing the zone costs more than an event.
constexpr size_t kBatchEvents = 65536;
constexpr uint32_t kNone = UINT32_MAX;

constexpr std::string_view kFine =
    "times finer than a microsecond: a WTF-trace counts microseconds";
constexpr std::string_view kLeftOutDetails =
    "detail records: a WTF-trace has no place for registers and stack bytes";

class AtfToWtf {
 public:
  AtfToWtf(const read::Trace& trace, const std::string& output, ConvertLog& log)
      : log_(log),
        path_(trace.path),
        session_(trace.files()),
        about_(read_manifest(trace)),
        names_(lenient_),
        scopes_(about_, names_, output, log) {}

  Status run();

 private:
  enum class Kind : uint8_t { kCall, kReturn, kException, kMarker, kGap };
  struct Item {
    uint64_t ns;
    uint64_t what;  // slot of the function; position of the marker or the gap
    uint32_t next;  // of the same thread, as a position in batch_
    Kind kind;
  };
  struct Thread {
    uint32_t position = kNone;              // in scopes_
    std::vector<const storage::Gap*> gaps;  // from the last to the first
    uint32_t first = kNone, last = kNone;   // in batch_
  };

  storage::Manifest read_manifest(const read::Trace& trace);
  void prepare_threads();
  Status take(const atf::MergedEvent& event);
  Status define(uint32_t slot, uint64_t ns);
  Status add(uint32_t thread, Kind kind, uint64_t what, uint64_t ns);
  Status fit(uint64_t ns);
  Status flush();
  Status write(const Item& item);
  Status write_gap(const storage::Gap& gap, uint64_t ns);
  Status finish();

  ConvertLog& log_;
  const std::string path_;
  const atf::SessionReader session_;
  read::SessionManifest lenient_;
  const storage::Manifest about_;
  const read::NameTable names_;
  WtfScopes scopes_;
  std::vector<Thread> threads_;  // as in session_
  std::vector<const storage::Marker*> markers_;
  size_t next_marker_ = 0;
  uint32_t marker_thread_ = kNone;  // whose zone has the markers
  std::vector<Item> batch_;
  std::vector<uint32_t> touched_;  // threads with something in batch_
  uint64_t done_ = 0, all_ = 0;
  uint64_t fine_ = 0, details_ = 0, unknown_ = 0, zoneless_ = 0, lost_ = 0;
};

// Two readings: storage's knows everything, but wants JSON as it should be.
storage::Manifest AtfToWtf::read_manifest(const read::Trace& trace) {
  storage::Manifest manifest = converted_manifest(trace, log_);
  if (!trace.manifest) return manifest;
  auto parsed = read::SessionManifest::parse(*trace.manifest);
  if (parsed.ok()) lenient_ = std::move(*parsed);
  if (manifest.identity.process_name.empty()) {
    manifest.identity.process_name = lenient_.identity.process_name;
  }
  return manifest;
}

// ---- before the first event

void AtfToWtf::prepare_threads() {
  threads_.resize(session_.threads().size());
  uint32_t readable = 0;
  std::vector<const storage::Gap*> gaps;
  for (const storage::Gap& gap : about_.gaps) {
    if (gap.lane == Lane::kIndex) gaps.push_back(&gap);
  }
  std::sort(gaps.begin(), gaps.end(), [](const auto* a, const auto* b) {
    if (a->thread != b->thread) return a->thread < b->thread;
    return a->before_seq != b->before_seq ? a->before_seq > b->before_seq : a > b;
  });
  for (size_t i = 0; i < threads_.size(); ++i) {
    const atf::SessionThread& thread = session_.threads()[i];
    if (!thread.index) continue;
    const read::ManifestThread* said = lenient_.thread(thread.n);
    threads_[i].position = readable++;
    scopes_.add_thread(thread.n, thread.index->header().thread_id,
                       said == nullptr ? "" : said->name);
    if (marker_thread_ == kNone) marker_thread_ = static_cast<uint32_t>(i);
    const auto first =
        std::lower_bound(gaps.begin(), gaps.end(), thread.n,
                         [](const storage::Gap* gap, uint32_t n) { return gap->thread < n; });
    for (auto gap = first; gap != gaps.end() && (*gap)->thread == thread.n; ++gap) {
      threads_[i].gaps.push_back(*gap);
    }
    remark_put_in_order(thread.n, session_.time_order(i).backward_steps(), log_);
  }
  for (const storage::Marker& marker : about_.markers) {
    markers_.push_back(&marker);
    if (marker.at_ns % 1000 != 0) ++fine_;
  }
  std::sort(markers_.begin(), markers_.end(), [](const auto* a, const auto* b) {
    return a->at_ns != b->at_ns ? a->at_ns < b->at_ns : a < b;
  });
  // Detail records are counted where an event leads to one.
  leave_out_kinds(about_, ~uint32_t{kMarkersKind | kDetailRecordsKind}, {}, log_);
}

// ---- events into the batch, in the order of time

Status AtfToWtf::run() {
  prepare_threads();
  if (marker_thread_ == kNone && !threads_.empty()) {
    return Error{Code::kDamaged, path_ + ": no thread of it can be read"};
  }
  all_ = session_.events();
  atf::MergedCursor events = session_.merged();
  for (atf::MergedEvent event; events.next(event);) {
    while (next_marker_ < markers_.size() &&
           markers_[next_marker_]->at_ns <= event.event.timestamp_ns) {
      COLLECT_TRY(add(marker_thread_, Kind::kMarker, next_marker_, markers_[next_marker_]->at_ns));
      ++next_marker_;
    }
    COLLECT_TRY(take(event));
  }
  return finish();
}

Status AtfToWtf::take(const atf::MergedEvent& merged) {
  const atf::IndexEvent& event = merged.event;
  const auto position = static_cast<uint32_t>(merged.thread);
  Thread& thread = threads_[position];
  const uint64_t ns = event.timestamp_ns;
  ++done_;
  while (!thread.gaps.empty() && thread.gaps.back()->before_seq <= merged.seq) {
    const storage::Gap* gap = thread.gaps.back();
    thread.gaps.pop_back();
    COLLECT_TRY(add(position, Kind::kGap, static_cast<uint64_t>(gap - about_.gaps.data()), ns));
  }
  if (ns % 1000 != 0) ++fine_;
  if (event.detail_seq != atf::kNoDetail && session_.threads()[position].detail) ++details_;
  const uint32_t slot = scopes_.slot_of(event.function_id);
  switch (event.kind) {
    case atf::EventKind::kCall:
      COLLECT_TRY(fit(ns));
      COLLECT_TRY(define(slot, ns));
      return add(position, Kind::kCall, slot, ns);
    case atf::EventKind::kReturn:
      return add(position, Kind::kReturn, slot, ns);
    case atf::EventKind::kException:
      return add(position, Kind::kException, slot, ns);
  }
  ++unknown_;  // said among what is missing
  return {};
}

Status AtfToWtf::add(uint32_t position, Kind kind, uint64_t what, uint64_t ns) {
  COLLECT_TRY(fit(ns));
  Thread& thread = threads_[position];
  const auto at = static_cast<uint32_t>(batch_.size());
  batch_.push_back({ns, what, kNone, kind});
  if (thread.first == kNone) {
    thread.first = at;
    touched_.push_back(position);
  } else {
    batch_[thread.last].next = at;
  }
  thread.last = at;
  return batch_.size() < kBatchEvents ? Status() : flush();
}

// Makes sure of a file that takes an event at `ns`.
Status AtfToWtf::fit(uint64_t ns) {
  if (!scopes_.is_open()) return scopes_.begin(ns);
  if (scopes_.takes(ns)) return {};
  COLLECT_TRY(flush());
  return scopes_.next_file(ns, false);
}

Status AtfToWtf::define(uint32_t slot, uint64_t ns) {
  const Status defined = scopes_.define(slot);
  if (defined.ok() || defined.code() != Code::kLimit) return defined;
  COLLECT_TRY(flush());
  COLLECT_TRY(scopes_.next_file(ns, true));
  return scopes_.define(slot);
}

// ---- out of the batch, thread by thread

Status AtfToWtf::flush() {
  for (const uint32_t position : touched_) {
    Thread& thread = threads_[position];
    const auto selected = scopes_.select(thread.position);
    if (!selected.ok()) return selected.error();
    for (uint32_t at = thread.first; at != kNone; at = batch_[at].next) {
      if (*selected) {
        COLLECT_TRY(write(batch_[at]));
      } else {
        ++zoneless_;
      }
    }
    thread.first = kNone;
  }
  batch_.clear();
  touched_.clear();
  log_.progress(done_, all_);
  return {};
}

Status AtfToWtf::write(const Item& item) {
  const auto slot = static_cast<uint32_t>(item.what);
  switch (item.kind) {
    case Kind::kCall:
      return scopes_.call(item.ns, slot);
    case Kind::kReturn:
      return scopes_.give_back(item.ns, slot);
    case Kind::kException:
      return scopes_.exception(item.ns, slot);
    case Kind::kMarker:
      return scopes_.mark(
          item.ns, std::string_view(markers_[item.what]->text).substr(0, storage::kMaxTextBytes));
    case Kind::kGap:
      break;
  }
  return write_gap(about_.gaps[item.what], item.ns);
}

Status AtfToWtf::write_gap(const storage::Gap& gap, uint64_t ns) {
  std::string name = fmt::format("{} events are missing", gap.lost);
  const char* between = " (";
  for (const std::string& reason : storage::lost_reason_names(gap.reasons)) {
    name += between + reason;
    between = ", ";
  }
  if (*between == ',') name += ")";
  lost_ += gap.lost;
  return scopes_.mark(ns, name,
                      fmt::format("{{\"{}\":{},\"{}\":{}}}", kLostEventsKey, gap.lost,
                                  kLostReasonsKey, gap.reasons));
}

Status AtfToWtf::finish() {
  if (!scopes_.is_open()) COLLECT_TRY(fit(markers_.empty() ? 0 : markers_.front()->at_ns));
  COLLECT_TRY(flush());
  for (uint32_t i = 0; i < threads_.size(); ++i) {
    for (; !threads_[i].gaps.empty(); threads_[i].gaps.pop_back()) {
      const auto gap = static_cast<uint64_t>(threads_[i].gaps.back() - about_.gaps.data());
      COLLECT_TRY(add(i, Kind::kGap, gap,
                      std::max(scopes_.last_ns(threads_[i].position), scopes_.epoch_ns())));
    }
  }
  if (marker_thread_ == kNone) {
    log_.leave_out("markers: there is no thread to put them in", markers_.size());
    next_marker_ = markers_.size();
  }
  for (; next_marker_ < markers_.size(); ++next_marker_) {
    COLLECT_TRY(add(marker_thread_, Kind::kMarker, next_marker_, markers_[next_marker_]->at_ns));
  }
  COLLECT_TRY(flush());
  COLLECT_TRY(scopes_.finish());
  log_.count("events", done_ - unknown_);
  if (lost_ != 0) log_.count("lost_events", lost_);
  log_.leave_out(kFine, fine_);
  log_.leave_out(kLeftOutDetails, details_);
  log_.leave_out("events of threads past the 65535 zones of a WTF-trace", zoneless_);
  return {};
}

}  // namespace

Status atf_to_wtf(const read::Trace& trace, const std::string& output, ConvertLog& log) {
  return AtfToWtf(trace, output, log).run();
}

}  // namespace collect::convert

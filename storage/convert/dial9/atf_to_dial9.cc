// An ATF session into one dial9 stream; dial9_session.h says what is in it. Streams: what is kept
// is the manifest, the names, and a limited set of the functions that were explained already.
#include <algorithm>
#include <memory>
#include <unordered_map>
#include <unordered_set>

#include "storage/convert/conversions.h"
#include "storage/convert/dial9/dial9_session_writer.h"
#include "storage/convert/ordered_thread.h"
#include "storage/convert/session_input.h"
#include "storage/convert/session_kinds.h"
#include "storage/fs/output_file.h"
#include "storage/manifest/manifest.h"
#include "storage/read/session_manifest.h"

namespace collect::convert {
namespace {

// Functions beyond this many are explained again: an explanation more costs a few bytes, a set of
// all of them would grow with the capture.
constexpr size_t kMaxDescribed = size_t{1} << 20;
constexpr uint64_t kProgressEvents = 1 << 16;

// The names of a session's functions, and which of them are symbols.
class FunctionNames {
 public:
  explicit FunctionNames(const read::Trace& trace) {
    read::SessionManifest manifest;
    if (trace.manifest) {
      auto parsed = read::SessionManifest::parse(*trace.manifest);
      if (parsed.ok()) manifest = std::move(*parsed);
    }
    for (const storage::Symbol& symbol : manifest.symbols) symbols_.push_back(symbol.function_id);
    std::sort(symbols_.begin(), symbols_.end());
    symbols_.erase(std::unique(symbols_.begin(), symbols_.end()), symbols_.end());
    table_ = std::make_unique<read::NameTable>(manifest);
  }

  std::string_view name_of(uint64_t function_id) const { return table_->name_of(function_id); }
  // Null where it is not known.
  const read::SourceLocation* source_of(uint64_t function_id) const {
    return table_->source_of(function_id);
  }
  bool is_symbol(uint64_t function_id) const {
    return std::binary_search(symbols_.begin(), symbols_.end(), function_id);
  }
  const std::vector<uint64_t>& symbols() const { return symbols_; }

 private:
  std::unique_ptr<read::NameTable> table_;
  std::vector<uint64_t> symbols_;  // ids, sorted
};

// The elements in the order of `key`; where it is equal, in the order that they have.
template <class T>
std::vector<const T*> sorted_by(const std::vector<T>& list, uint64_t T::* key) {
  std::vector<const T*> sorted;
  sorted.reserve(list.size());
  for (const T& element : list) sorted.push_back(&element);
  std::sort(sorted.begin(), sorted.end(), [key](const T* a, const T* b) {
    return a->*key != b->*key ? a->*key < b->*key : a < b;
  });
  return sorted;
}

// What one thread still has to say besides its events.
struct ThreadState {
  // Sorted by before_seq; `next` is the first that was not written.
  struct Gaps {
    std::vector<const storage::Gap*> list;
    size_t next = 0;
  };
  Gaps gaps[2];  // by Lane
  // Records go front to back with their events: looking each up by its number would keep a table
  // that grows with the file.
  std::optional<atf::DetailCursor> records;
  uint64_t written_records = 0;
};

class SessionStream {
 public:
  SessionStream(const read::Trace& trace, ByteSink& sink, ConvertLog& log)
      : session_(trace.files()),
        manifest_(converted_manifest(trace, log)),
        names_(trace),
        out_(sink, log),
        log_(log) {}

  Status write();
  // Whether any thread of it is.
  bool is_readable() const {
    return std::any_of(session_.threads().begin(), session_.threads().end(),
                       [](const auto& thread) { return thread.index.has_value(); });
  }
  uint64_t events() const { return events_; }

 private:
  Status head();
  Status threads();
  Status event(const atf::MergedEvent& merged);
  Status detail(size_t position, const atf::IndexEvent& event);
  Status gaps_before(size_t position, Lane lane, uint64_t seq, uint64_t ns);
  Status markers_before(uint64_t ns);
  Status describe_function(uint64_t ns, uint64_t function_id);
  Status function(uint64_t ns, uint64_t function_id, bool is_symbol);
  Status rest();

  const atf::SessionReader session_;
  storage::Manifest manifest_;
  const FunctionNames names_;
  Dial9SessionWriter out_;
  ConvertLog& log_;
  std::vector<ThreadState> states_;  // by position in session_.threads()
  std::unordered_set<uint64_t> described_;
  std::vector<const storage::Marker*> markers_;  // in the order of time
  size_t next_marker_ = 0;
  uint64_t events_ = 0;
  uint64_t last_ns_ = 0;
};

Status SessionStream::write() {
  COLLECT_TRY(out_.define_all());
  COLLECT_TRY(head());
  COLLECT_TRY(threads());
  const uint64_t all = session_.events();
  uint64_t done = 0;
  atf::MergedCursor merged = session_.merged();
  for (atf::MergedEvent next; merged.next(next);) {
    COLLECT_TRY(event(next));
    if (++done % kProgressEvents == 0) log_.progress(done, all);
  }
  COLLECT_TRY(rest());
  return out_.flush();
}

Status SessionStream::head() {
  storage::SessionIdentity& identity = manifest_.identity;
  const auto first = std::find_if(session_.threads().begin(), session_.threads().end(),
                                  [](const auto& thread) { return thread.index.has_value(); });
  if (first != session_.threads().end()) {
    // Files of others say less in the manifest than in their headers.
    const atf::IndexHeader& header = first->index->header();
    identity.version = header.version;
    identity.arch = header.arch;
    identity.os = header.os;
    identity.clock = header.clock;
  }
  if (identity.start_ns == 0 && identity.start_unix_ns == 0) {
    const auto range = session_.time_range();
    if (range) identity.start_ns = range->first_ns;
  }
  COLLECT_TRY(out_.process(manifest_));
  for (const storage::ModuleInfo& module : manifest_.modules) COLLECT_TRY(out_.module(module));
  markers_ = sorted_by(manifest_.markers, &storage::Marker::at_ns);
  return {};
}

Status SessionStream::threads() {
  states_.resize(session_.threads().size());
  std::unordered_map<uint32_t, const storage::ManifestThread*> listed;
  for (const storage::ManifestThread& thread : manifest_.threads) listed[thread.id] = &thread;
  std::unordered_map<uint32_t, size_t> positions;
  for (size_t position = 0; position < states_.size(); ++position) {
    const atf::SessionThread& thread = session_.threads()[position];
    if (!thread.index) continue;
    positions[thread.n] = position;
    remark_put_in_order(thread.n, session_.time_order(position).backward_steps(), log_);
    const auto known = listed.find(thread.n);
    const atf::IndexHeader& header = thread.index->header();
    if (known != listed.end()) {
      const storage::ManifestThread& said = *known->second;
      COLLECT_TRY(out_.thread(said.start_ns, thread.n, header.thread_id, said.name,
                              said.ended ? said.end_ns : 0));
    } else {
      COLLECT_TRY(out_.thread(header.time_start_ns, thread.n, header.thread_id, "", 0));
    }
    if (thread.detail) states_[position].records.emplace(thread.detail->records());
  }
  leave_out_kinds(
      manifest_,
      kStallsKind | kSwitchesKind | kLockWaitsKind | kSamplesKind | kFiltersKind | kStreamsKind, {},
      log_);
  for (const storage::Gap* next : sorted_by(manifest_.gaps, &storage::Gap::before_seq)) {
    const storage::Gap& gap = *next;
    const auto of = positions.find(gap.thread);
    // A gap of a thread that was not asked for, or whose absence is already reported.
    if (of == positions.end()) continue;
    states_[of->second].gaps[static_cast<size_t>(gap.lane)].list.push_back(next);
  }
  return {};
}

Status SessionStream::event(const atf::MergedEvent& merged) {
  const atf::IndexEvent& event = merged.event;
  COLLECT_TRY(markers_before(event.timestamp_ns));
  COLLECT_TRY(gaps_before(merged.thread, Lane::kIndex, merged.seq, event.timestamp_ns));
  last_ns_ = event.timestamp_ns;
  if (!is_known(event)) return {};  // said among what is missing
  const bool has_detail = event.detail_seq != atf::kNoDetail;
  if (has_detail) {
    COLLECT_TRY(gaps_before(merged.thread, Lane::kDetail, event.detail_seq, event.timestamp_ns));
  }
  COLLECT_TRY(describe_function(event.timestamp_ns, event.function_id));
  COLLECT_TRY(out_.event(session_.threads()[merged.thread].n, event));
  ++events_;
  return has_detail ? detail(merged.thread, event) : Status();
}

Status SessionStream::detail(size_t position, const atf::IndexEvent& event) {
  ThreadState& state = states_[position];
  if (state.records && event.detail_seq >= state.records->seq()) {
    while (auto record = state.records->next()) {
      if (state.records->seq() <= event.detail_seq) continue;
      ++state.written_records;
      return out_.detail(session_.threads()[position].n, *record);
    }
  }
  log_.missing("detail records that events lead to, in the order of the events", 1);
  return {};
}

Status SessionStream::describe_function(uint64_t ns, uint64_t function_id) {
  if (described_.contains(function_id)) return {};
  if (described_.size() == kMaxDescribed) described_.clear();
  described_.insert(function_id);
  return function(ns, function_id, names_.is_symbol(function_id));
}

Status SessionStream::function(uint64_t ns, uint64_t function_id, bool is_symbol) {
  const read::SourceLocation* source = names_.source_of(function_id);
  const std::string_view file = source == nullptr ? std::string_view() : source->file;
  return out_.function(ns, function_id, names_.name_of(function_id), is_symbol, file,
                       source == nullptr ? 0 : source->line);
}

Status SessionStream::gaps_before(size_t position, Lane lane, uint64_t seq, uint64_t ns) {
  ThreadState::Gaps& gaps = states_[position].gaps[static_cast<size_t>(lane)];
  for (; gaps.next < gaps.list.size() && gaps.list[gaps.next]->before_seq <= seq; ++gaps.next) {
    COLLECT_TRY(out_.gap(ns, *gaps.list[gaps.next]));
  }
  return {};
}

Status SessionStream::markers_before(uint64_t ns) {
  for (; next_marker_ < markers_.size() && markers_[next_marker_]->at_ns <= ns; ++next_marker_) {
    COLLECT_TRY(out_.marker(*markers_[next_marker_]));
  }
  return {};
}

// What is behind the last event, and what was counted on the way.
Status SessionStream::rest() {
  COLLECT_TRY(markers_before(UINT64_MAX));
  for (size_t position = 0; position < states_.size(); ++position) {
    for (const Lane lane : {Lane::kIndex, Lane::kDetail}) {
      COLLECT_TRY(gaps_before(position, lane, UINT64_MAX, last_ns_));
    }
    ThreadState& state = states_[position];
    if (!state.records) continue;
    while (state.records->next()) continue;
    log_.leave_out("detail records that no event leads to",
                   state.records->seq() - state.written_records);
  }
  // Names that no event uses; after so many functions that some were forgotten, some of them twice.
  for (const uint64_t symbol : names_.symbols()) {
    if (!described_.contains(symbol)) {
      COLLECT_TRY(function(last_ns_, symbol, true));
    }
  }
  return {};
}

}  // namespace

Status atf_to_dial9(const read::Trace& trace, const std::string& output, ConvertLog& log) {
  auto file = storage::OutputFile::create(output, true);
  if (!file.ok()) return file.error();
  SessionStream stream(trace, *file, log);
  if (!trace.threads.empty() && !stream.is_readable()) {
    return Error{Code::kDamaged, trace.path + ": no thread of it can be read"};
  }
  COLLECT_TRY(stream.write());
  COLLECT_TRY(file->commit());
  log.count("events", stream.events());
  log.wrote(output, file->size());
  return {};
}

}  // namespace collect::convert

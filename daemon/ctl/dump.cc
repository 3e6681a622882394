#include "daemon/ctl/dump.h"

#include <algorithm>
#include <ostream>

#include "daemon/ctl/captures/capture_format.h"
#include "daemon/ctl/event_text.h"
#include "daemon/ctl/function_filter.h"
#include "daemon/ctl/names.h"
#include "daemon/ctl/session_files.h"
#include "daemon/ctl/text_out.h"

namespace collect::ctl {
namespace {

// Detail records of one thread, followed in step with its events: no offset table, so memory stays
// constant. Only a link out of order makes the reader build one.
class DetailFollower {
 public:
  explicit DetailFollower(const atf::SessionThread& thread) : thread_(thread) {
    if (thread.detail) cursor_ = thread.detail->records();
  }

  std::optional<atf::DetailRecord> record_of(const atf::IndexEvent& event) {
    if (event.detail_seq == atf::kNoDetail || !cursor_) return std::nullopt;
    // Walking forward over what the filters left out is a read of each header.
    while (cursor_->seq() <= event.detail_seq) {
      auto record = cursor_->next();
      if (!record) return std::nullopt;
      if (cursor_->seq() == event.detail_seq + 1) return record;
    }
    return thread_.detail->get(event.detail_seq);
  }

 private:
  const atf::SessionThread& thread_;
  std::optional<atf::DetailCursor> cursor_;
};

class Dump {
 public:
  Dump(const DumpOptions& options, const atf::SessionReader& session, const NameTable& names,
       FunctionFilter& filter, std::vector<PrintedThread> threads, std::ostream& out)
      : options_(options),
        session_(session),
        filter_(filter),
        out_(out),
        json_(out_, names, threads),
        text_(out_, names, std::move(threads), origin_ns(session), options.merged) {
    for (const atf::SessionThread& thread : session.threads()) details_.emplace_back(thread);
  }

  void run() {
    if (!options_.json) print_origin();
    if (options_.merged) {
      run_merged();
    } else {
      run_by_thread();
    }
  }

 private:
  // A nearby zero for the text form: headers or first events, without reading the files. Where
  // times step back some lines are negative.
  static uint64_t origin_ns(const atf::SessionReader& session) {
    uint64_t origin = std::numeric_limits<uint64_t>::max();
    for (const atf::SessionThread& thread : session.threads()) {
      if (thread.index && thread.index->size() != 0) {
        origin = std::min(origin, thread.index->time_of(0));
      }
    }
    return origin == std::numeric_limits<uint64_t>::max() ? 0 : origin;
  }

  void print_origin() {
    out_.put("# microseconds since ");
    out_.dec(origin_ns(session_));
    out_.put(" ns; duration at each return\n");
  }

  bool done() const { return printed_ >= options_.limit || !out_.ok(); }

  void run_by_thread() {
    for (size_t i = 0; i < session_.threads().size() && !done(); ++i) {
      if (!session_.threads()[i].index) continue;
      const atf::IndexReader& index = *session_.threads()[i].index;
      if (!options_.json) text_.begin_thread(i, index.size());
      for (uint64_t seq = 0; seq < index.size() && !done(); ++seq) {
        take(i, seq, index.event(seq));
      }
    }
  }

  void run_merged() {
    // Text needs the calls before the window for depth and durations; JSON does not.
    const uint64_t from = options_.json ? options_.from_ns : 0;
    atf::MergedCursor cursor = session_.merged(from, options_.to_ns);
    for (atf::MergedEvent event; !done() && cursor.next(event);) {
      take(event.thread, event.seq, event.event);
    }
  }

  void take(size_t thread, uint64_t seq, const atf::IndexEvent& event) {
    const bool wanted = event.timestamp_ns >= options_.from_ns &&
                        event.timestamp_ns <= options_.to_ns && filter_.wants(event.function_id);
    if (!wanted) {
      if (!options_.json) text_.pass(thread, event);
      return;
    }
    std::optional<atf::DetailRecord> record;
    if (options_.detail) record = details_[thread].record_of(event);
    if (options_.json) {
      json_.print(thread, seq, event, record);
    } else {
      text_.print(thread, seq, event, record);
    }
    ++printed_;
  }

  const DumpOptions& options_;
  const atf::SessionReader& session_;
  FunctionFilter& filter_;
  TextOut out_;
  JsonEvents json_;
  TextEvents text_;
  std::vector<DetailFollower> details_;
  uint64_t printed_ = 0;
};

// A detail file without its index beside it: its records are all there is.
int dump_detail_alone(const DumpOptions& options, const Trace& trace, std::ostream& out,
                      std::ostream& err) {
  atf::Findings findings;
  const auto reader = atf::DetailReader::open(trace.threads[0].detail->bytes(), findings);
  if (!reader) {
    err << "dump: " << trace.path << ": " << findings.list().front().sentence << "\n";
    return 1;
  }
  TextOut text(out);
  atf::DetailCursor cursor = reader->records();
  for (uint64_t printed = 0; printed < options.limit && text.ok();) {
    const uint64_t seq = cursor.seq();
    const auto record = cursor.next();
    if (!record) break;
    if (record->timestamp_ns < options.from_ns || record->timestamp_ns > options.to_ns) continue;
    if (options.json) {
      print_detail_json(text, seq, *record);
    } else {
      print_detail_text(text, seq, *record);
    }
    ++printed;
  }
  return 0;
}

std::vector<PrintedThread> printed_threads(const atf::SessionReader& session,
                                           const SessionManifest& manifest) {
  std::vector<PrintedThread> threads;
  for (const atf::SessionThread& thread : session.threads()) {
    PrintedThread printed;
    printed.n = thread.n;
    if (thread.index) printed.tid = thread.index->header().thread_id;
    const ManifestThread* said = manifest.thread(thread.n);
    if (said != nullptr) printed.name = said->name;
    threads.push_back(std::move(printed));
  }
  return threads;
}

// Threads asked for that are not there, and threads that cannot be read.
bool complain(const DumpOptions& options, const atf::SessionReader& session, std::ostream& err) {
  bool unreadable = false;
  for (const atf::SessionThread& thread : session.threads()) {
    if (thread.index) continue;
    unreadable = true;
    err << "dump: thread " << thread.n << ": " << thread.findings.list().front().sentence
        << "; left out\n";
  }
  for (const uint32_t n : options.threads) {
    const auto& threads = session.threads();
    if (std::none_of(threads.begin(), threads.end(),
                     [&](const atf::SessionThread& thread) { return thread.n == n; })) {
      unreadable = true;
      err << "dump: there is no thread " << n << "\n";
    }
  }
  return unreadable;
}

}  // namespace

int dump(const DumpOptions& options, std::ostream& out, std::ostream& err) {
  auto trace = open_trace(options.path);
  if (!trace) {
    err << "dump: " << to_string(trace.error()) << "\n";
    return 2;
  }
  if (!trace->choice.empty()) err << "dump: " << trace->choice << "\n";
  if (trace->kind == TraceKind::kUnknownFile) {
    if (const CaptureFormat* format = capture_format_of(trace->file())) {
      return dump_capture(*format, options, trace->path, trace->file(), out, err);
    }
  }
  if (trace->kind == TraceKind::kDetailFile) return dump_detail_alone(options, *trace, out, err);
  SessionManifest manifest;
  if (trace->manifest) {
    auto parsed = SessionManifest::parse(*trace->manifest);
    if (parsed) {
      manifest = std::move(parsed).value();
    } else {
      err << "dump: " << trace->manifest_path << ": " << parsed.error().message
          << "; functions stay unnamed\n";
    }
  }
  const NameTable names(manifest);
  auto filter = FunctionFilter::make(options.functions, names);
  if (!filter) {
    err << "dump: " << filter.error().message << "\n";
    return 2;
  }
  const atf::SessionReader session(trace->files(options.threads));
  const bool unreadable = complain(options, session, err);
  Dump(options, session, names, *filter, printed_threads(session, manifest), out).run();
  return unreadable ? 1 : 0;
}

}  // namespace collect::ctl

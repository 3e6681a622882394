#include "daemon/ctl/check/trace_check.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <ostream>
#include <vector>

#include "daemon/ctl/check/ordered_work.h"
#include "daemon/ctl/terminal/terminal.h"
#include "formats/atf/thread_check.h"
#include "formats/core/text/printable.h"
#include "storage/manifest/forgiven_json.h"
#include "storage/model/session_layout.h"
#include "storage/model/switch_times.h"
#include "storage/read/lod_files.h"
#include "storage/read/thread_breaks.h"
#include "storage/read/workers.h"

namespace collect::ctl {
namespace {

class ManifestCheck {
 public:
  ManifestCheck(const read::Trace& trace, TraceReport& report) : trace_(trace), report_(report) {}

  void run() {
    report_.is_session = trace_.kind == read::TraceKind::kSession;
    report_.health = read::session_health(trace_, nullptr);
    if (!trace_.manifest) {
      // A thread or a file may be anywhere; only a session is expected to have one.
      const bool is_session = report_.is_session;
      const auto& error = trace_.manifest_error;
      const bool refused = error && error->code != Code::kNotFound;
      if (!is_session && !refused) return;
      add(is_session && refused ? Severity::kError : Severity::kWarning, "",
          refused ? sentence_of(*error) : "there is no manifest");
      return;
    }
    auto manifest = read::SessionManifest::of(trace_);
    if (!manifest) {
      add(Severity::kWarning, "", manifest.error().message);
      return;
    }
    report_.manifest = std::move(manifest).value();
    // Published writers leave control characters in their texts; ours never did.
    if (const auto fault = storage::fault_of_json_text(*trace_.manifest)) {
      const bool is_ours = !report_.manifest->said_state.empty();
      add(is_ours ? Severity::kError : Severity::kWarning, "", *fault);
    }
    for (const storage::ManifestProblem& problem : report_.manifest->problems) {
      add(Severity::kError, problem.place, problem.sentence);
    }
    if (trace_.kind != read::TraceKind::kSession) return;
    report_.health = read::session_health(trace_, &*report_.manifest);
    check_list();
    for (size_t i = 0; i < report_.manifest->threads.size(); ++i) check_thread(i);
    check_times();
    if (is_live()) {
      add(Severity::kNote, "/state", "the session is still recording, or was never sealed");
      return;  // counts on disk run behind the files
    }
    check_totals();
    check_gaps();
    check_switches();
  }

 private:
  void add(Severity severity, std::string place, std::string sentence) {
    report_.manifest_findings.push_back({severity, std::move(place), std::move(sentence)});
  }
  bool is_live() const { return report_.manifest->state == storage::SessionState::kRecording; }

  void check_list() {
    std::vector<uint32_t> listed, there;
    for (const read::ManifestThread& thread : report_.manifest->threads)
      listed.push_back(thread.id);
    for (const read::TraceThread& thread : trace_.threads) there.push_back(thread.n);
    std::sort(listed.begin(), listed.end());
    if (listed != there) {
      add(Severity::kWarning, "/threads",
          fmt::format("lists other threads than the directory holds ({} listed, {} there)",
                      listed.size(), there.size()));
    }
  }

  void compare(uint64_t said, uint64_t found, const std::string& place, const char* what) {
    if (said == found) return;
    add(Severity::kError, place, fmt::format("says {} {}, the files have {}", said, what, found));
  }

  void check_thread(size_t position) {
    const read::ManifestThread& said = report_.manifest->threads[position];
    const auto found =
        std::lower_bound(report_.threads.begin(), report_.threads.end(), said.id,
                         [](const atf::ThreadReport& a, uint32_t n) { return a.n < n; });
    if (found == report_.threads.end() || found->n != said.id) return;
    const std::string place = fmt::format("/threads/{}", position);
    if (said.has_detail != found->detail.present) {
      add(Severity::kWarning, place + "/has_detail",
          fmt::format("is wrong for thread {}", said.id));
    }
    if (found->rejected) return;
    if (said.says(storage::kThreadIdKey)) {
      compare(said.thread_id, found->header->thread_id, place + "/thread_id", "as the thread id");
    }
    if (is_live()) return;
    if (said.says(storage::kEventsKey)) {
      compare(said.events, found->events, place + "/events", "events");
    }
    if (found->detail.rejected || !said.says(storage::kDetailRecordsKey)) return;
    compare(said.detail_records, found->detail.records, place + "/detail_records",
            "detail records");
  }

  void check_times() {
    const read::SessionManifest& manifest = *report_.manifest;
    const auto first = report_.first_ns();
    if (!first || manifest.time_end_ns == 0 || is_live()) return;
    if (*first < manifest.time_start_ns || *report_.last_ns() > manifest.time_end_ns) {
      add(Severity::kWarning, "/time_start_ns", "the events are outside the manifest's time range");
    }
  }

  void check_totals() {
    const read::SessionManifest& manifest = *report_.manifest;
    const uint8_t unsaid = manifest.totals_unsaid;
    if ((unsaid & storage::kEventsKey) == 0) {
      compare(manifest.totals.events, report_.events(), "/totals/events", "events");
    }
    if ((unsaid & storage::kDetailRecordsKey) == 0) {
      compare(manifest.totals.detail_records, report_.detail_records(), "/totals/detail_records",
              "detail records");
    }
    uint64_t events = 0, records = 0;
    for (const read::ManifestThread& thread : manifest.threads) {
      events += thread.lost_events;
      records += thread.lost_detail_records;
    }
    const auto compare_lost = [&](storage::ManifestKey key, uint64_t said, uint64_t sum,
                                  const char* place) {
      if ((unsaid & key) != 0 || said == sum) return;
      add(Severity::kError, place, fmt::format("says {} lost, the threads say {}", said, sum));
    };
    compare_lost(storage::kLostEventsKey, manifest.totals.lost_events, events,
                 "/totals/lost_events");
    compare_lost(storage::kLostDetailRecordsKey, manifest.totals.lost_detail_records, records,
                 "/totals/lost_detail_records");
  }

  // What the threads say of their times off the processor is what switches.bin has.
  void check_switches() {
    const read::SessionManifest& manifest = *report_.manifest;
    const bool is_open = manifest.state == storage::SessionState::kRecording;
    const storage::StallTotals& sums = manifest.totals.stalls;
    const bool has_file = manifest.identity.switches || sums.lock_waits + sums.samples != 0;
    if (is_open || !has_file) return;
    std::map<uint32_t, storage::StallTotals> listed;
    uint64_t count = 0;
    for (const storage::Stall& stall : manifest.stalls) {
      if (!storage::is_in_switches_file(stall.kind) || !stall.thread) continue;
      listed[*stall.thread].add(stall);
      ++count;
    }
    if (count >= storage::kMaxSwitchesListed) return;
    for (size_t i = 0; i < manifest.threads.size(); ++i) {
      const storage::StallTotals& said = manifest.threads[i].stalls;
      const storage::StallTotals& has = listed[manifest.threads[i].id];
      if (said.samples != has.samples) {
        add(Severity::kError, fmt::format("/threads/{}/samples", i),
            fmt::format("says {} samples; {} has {}", said.samples, storage::kSwitchesFile,
                        has.samples));
      }
      if (said.lock_waits != has.lock_waits || said.lock_wait_ns != has.lock_wait_ns) {
        add(Severity::kError, fmt::format("/threads/{}/lock_waits", i),
            fmt::format("says {} waits for locks, of {} ns; {} has {}, of {} ns", said.lock_waits,
                        said.lock_wait_ns, storage::kSwitchesFile, has.lock_waits,
                        has.lock_wait_ns));
      }
      if (said.switches == has.switches && said.blocked_ns == has.blocked_ns &&
          said.preempted_ns == has.preempted_ns) {
        continue;
      }
      add(Severity::kError, fmt::format("/threads/{}/switches", i),
          fmt::format("says {} times off the processor, {} ns blocked and {} ns preempted; {} has "
                      "{}, {} ns and {} ns",
                      said.switches, said.blocked_ns, said.preempted_ns, storage::kSwitchesFile,
                      has.switches, has.blocked_ns, has.preempted_ns));
    }
  }

  // What is missing is explained by a gap each: their sum is the thread's loss.
  void check_gaps() {
    const read::SessionManifest& manifest = *report_.manifest;
    std::map<uint32_t, std::array<uint64_t, 2>> sums;
    for (const storage::Gap& gap : manifest.gaps)
      sums[gap.thread][gap.lane == Lane::kDetail ? 1 : 0] += gap.lost;
    for (size_t i = 0; i < manifest.threads.size(); ++i) {
      const read::ManifestThread& thread = manifest.threads[i];
      const auto& sum = sums[thread.id];
      const std::string place = fmt::format("/threads/{}", i);
      const auto compare_gaps = [&](storage::ManifestKey key, uint64_t said, uint64_t gaps,
                                    const char* name) {
        if (!thread.says(key) || said == gaps) return;
        add(Severity::kError, place + name,
            fmt::format("says {} lost, the gaps explain {}", said, gaps));
      };
      compare_gaps(storage::kLostEventsKey, thread.lost_events, sum[0], "/lost_events");
      compare_gaps(storage::kLostDetailRecordsKey, thread.lost_detail_records, sum[1],
                   "/lost_detail_records");
    }
  }

  // Without the path, which is before every finding.
  std::string sentence_of(const Error& error) const {
    const std::string path = trace_.manifest_path + ": ";
    return error.message.starts_with(path) ? error.message.substr(path.size()) : error.message;
  }

  const read::Trace& trace_;
  TraceReport& report_;
};

}  // namespace

uint64_t TraceReport::events() const {
  uint64_t sum = 0;
  for (const atf::ThreadReport& thread : threads) sum += thread.events;
  return sum;
}

uint64_t TraceReport::detail_records() const {
  uint64_t sum = 0;
  for (const atf::ThreadReport& thread : threads) sum += thread.detail.records;
  return sum;
}

uint64_t TraceReport::lost_events() const {
  if (!manifest) return 0;
  uint64_t sum = 0;
  if (is_session) {
    sum = manifest->lost_without_stream;
    for (const read::ManifestThread& thread : manifest->threads) sum += thread.lost_events;
    return sum;
  }
  for (const atf::ThreadReport& here : threads) {
    if (const read::ManifestThread* said = manifest->thread(here.n)) sum += said->lost_events;
  }
  return sum;
}

bool TraceReport::is_complete() const {
  return grade == atf::Grade::kOk && (!health || health->is_complete());
}

std::string_view TraceReport::result() const {
  if (!health || health->is_complete()) return atf::to_text(grade);
  // Files that were never finalized are what such a session is expected to have.
  const bool is_open = health->state == storage::SessionState::kFailed ||
                       health->state == storage::SessionState::kRecording;
  const bool by_state = grade == atf::Grade::kOk || (grade == atf::Grade::kRecovered && is_open);
  return by_state ? storage::session_state_name(health->state) : atf::to_text(grade);
}

std::optional<uint64_t> TraceReport::first_ns() const {
  std::optional<uint64_t> first;
  for (const atf::ThreadReport& thread : threads) {
    if (thread.min_ns) first = std::min(first.value_or(*thread.min_ns), *thread.min_ns);
  }
  return first;
}

std::optional<uint64_t> TraceReport::last_ns() const {
  std::optional<uint64_t> last;
  for (const atf::ThreadReport& thread : threads) {
    if (thread.max_ns) last = std::max(last.value_or(0), *thread.max_ns);
  }
  return last;
}

uint64_t TraceReport::count(Severity severity) const {
  uint64_t sum = 0;
  for (const atf::ThreadReport& thread : threads) {
    if (severity == Severity::kError) sum += thread.findings.errors();
    if (severity == Severity::kWarning) sum += thread.findings.warnings();
    if (severity == Severity::kNote) sum += thread.findings.notes();
  }
  for (const ManifestFinding& finding : manifest_findings) {
    if (finding.severity == severity) ++sum;
  }
  return sum;
}

namespace {

// What it says is in the events too, so one that views leave alone is no fault of the capture.
void check_lods(const read::Trace& trace, TraceReport& report) {
  const read::SessionManifest none;
  const read::SessionManifest& manifest = report.manifest ? *report.manifest : none;
  std::vector<std::optional<read::LodProblem>> problems(trace.threads.size());
  const auto look = [&](size_t, size_t piece) {
    const read::TraceThread& files = trace.threads[piece];
    if (!files.lod) return;
    atf::Findings ignored;
    const auto index = atf::IndexReader::open(files.index.bytes(), ignored);
    if (!index) return;
    problems[piece] = read::problem_of_lod(files, *index, read::call_gaps_of(manifest, files.n),
                                           read::call_stalls_of(manifest, files.n));
  };
  read::share_work(problems.size(), [](size_t, size_t) {}, look);
  for (size_t i = 0; i < problems.size(); ++i) {
    if (!problems[i]) continue;
    const std::string& index_path = trace.threads[i].index_path;
    report.manifest_findings.push_back(
        {problems[i]->is_used ? Severity::kError : Severity::kWarning, "",
         problems[i]->sentence + (problems[i]->is_used ? ": remove the file, and it is made again"
                                                       : ": views read the events instead"),
         index_path.substr(0, index_path.rfind('/') + 1) + storage::kLodFile});
  }
}

// The check of a session's threads as pieces of work: the ranges of one after the other, and behind
// those of each a piece without a range, which ends it.
class SessionCheck {
 public:
  struct Piece {
    size_t thread = 0;
    std::shared_ptr<atf::ThreadCheck> check;
    std::optional<atf::CheckRange> range;
    atf::RangeTally tally;
  };

  explicit SessionCheck(const read::Trace& trace) : trace_(trace) {}

  // At most that many can work at once.
  size_t pieces() const {
    uint64_t pieces = trace_.threads.size();
    for (const read::TraceThread& thread : trace_.threads) {
      pieces += thread.index.bytes().size() / atf::ThreadCheck::kRangeBytes;
      if (thread.detail) pieces += thread.detail->bytes().size() / atf::ThreadCheck::kRangeBytes;
    }
    return pieces;
  }

  bool make(Piece& piece) {
    if (thread_ == trace_.threads.size()) return false;
    if (!check_) check_ = checked(trace_.threads[thread_]);
    piece.thread = thread_;
    piece.check = check_;
    piece.range = check_->next();
    if (!piece.range) {
      check_.reset();
      ++thread_;
    }
    return true;
  }

 private:
  std::shared_ptr<atf::ThreadCheck> checked(const read::TraceThread& thread) const {
    std::optional<Bytes> index, detail;
    if (trace_.kind != read::TraceKind::kDetailFile) index = thread.index.bytes();
    if (thread.detail) detail = thread.detail->bytes();
    return std::make_shared<atf::ThreadCheck>(thread.n, index, detail,
                                              atf::ThreadCheck::kRangeBytes, thread.index.fill());
  }

  const read::Trace& trace_;
  size_t thread_ = 0;                        // the one that is divided
  std::shared_ptr<atf::ThreadCheck> check_;  // of it
};

}  // namespace

bool say_unopened(const read::Trace& trace, std::ostream& err) {
  for (const std::string& sentence : trace.unopened()) {
    err << "collectctl: " << printable_sentence(sentence) << "\n";
  }
  return std::any_of(
      trace.threads.begin(), trace.threads.end(), [](const read::TraceThread& thread) {
        const bool is_cut =
            !thread.index.missing().empty() || (thread.detail && !thread.detail->missing().empty());
        return is_cut || (thread.error && thread.error->code != Code::kNotFound);
      });
}

TraceReport check_trace(const read::Trace& trace,
                        const std::function<void(size_t, size_t)>& progress) {
  TraceReport report;
  const size_t count = trace.threads.size();
  report.threads.reserve(count);
  SessionCheck session(trace);
  using Piece = SessionCheck::Piece;
  progress(0, count);
  work_in_order<Piece>(
      read::workers_for(session.pieces()), [&](Piece& piece) { return session.make(piece); },
      [](size_t, Piece& piece) {
        if (piece.range) piece.tally = piece.check->look(*piece.range);
      },
      [&](Piece& piece) {
        if (piece.range) {
          piece.check->add(std::move(piece.tally));
          return true;
        }
        report.threads.push_back(piece.check->finish());
        if (const auto& error = trace.threads[piece.thread].error) {
          report.threads.back().findings.add(Severity::kError, Lane::kIndex, atf::Check::kHeader, 0,
                                             error->message);
        }
        piece.check.reset();
        progress(piece.thread + 1, count);
        return true;
      });
  ManifestCheck(trace, report).run();
  check_lods(trace, report);
  report.grade = atf::grade_of(report.threads);
  // A program that recorded nothing: the manifest alone is the whole, readable session.
  if (trace.threads.empty() && report.manifest && report.manifest->threads.empty()) {
    const bool is_open = report.manifest->state == storage::SessionState::kRecording;
    report.grade = is_open ? atf::Grade::kRecovered : atf::Grade::kOk;
  }
  const bool contradicted = std::any_of(
      report.manifest_findings.begin(), report.manifest_findings.end(),
      [](const ManifestFinding& finding) { return finding.severity == Severity::kError; });
  if (contradicted && (report.grade == atf::Grade::kOk || report.grade == atf::Grade::kRecovered)) {
    report.grade = atf::Grade::kDamaged;
  }
  return report;
}

std::function<void(size_t, size_t)> progress_line(std::ostream& err, bool wanted) {
  if (!wanted) return [](size_t, size_t) {};
  return [&err](size_t done, size_t all) {
    if (all < 2) return;
    if (done == all) {
      restart_line(err);
      err.flush();
    } else if (done % 16 == 0 || all < 256) {
      restart_line(err);
      err << "checking thread " << done + 1 << " of " << all << std::flush;
    }
  };
}

}  // namespace collect::ctl

#include "daemon/ctl/report.h"

#include <algorithm>
#include <ostream>

#include "daemon/ctl/call_stack.h"
#include "daemon/ctl/captures/capture_format.h"
#include "daemon/ctl/names.h"
#include "daemon/ctl/running_time.h"
#include "daemon/ctl/session_files.h"
#include "daemon/ctl/text_out.h"
#include "daemon/ctl/thread_choice.h"
#include "daemon/ctl/trace_check.h"
#include "daemon/ctl/workers.h"

namespace collect::ctl {
namespace {

struct FunctionTimes {
  uint64_t calls = 0;
  uint64_t total_ns = 0;  // recursive calls count once, in the outermost
  uint64_t self_ns = 0;
  uint64_t exceptions = 0;
  uint64_t open = 0;            // still open at the end of their thread
  uint64_t without_return = 0;  // closed by the return of an outer call

  void add(const FunctionTimes& other) {
    calls += other.calls;
    total_ns += other.total_ns;
    self_ns += other.self_ns;
    exceptions += other.exceptions;
    open += other.open;
    without_return += other.without_return;
  }
};

// Of all threads together.
struct Counts {
  uint64_t threads = 0;
  uint64_t events = 0;
  uint64_t open = 0;
  uint64_t without_return = 0;
  uint64_t unmatched_returns = 0;
  uint64_t too_deep = 0;
  uint64_t unknown_kinds = 0;
  uint64_t stalls = 0;
  uint64_t stalled_ns = 0;  // left out of the times

  void add(const Counts& other) {
    threads += other.threads;
    events += other.events;
    open += other.open;
    without_return += other.without_return;
    unmatched_returns += other.unmatched_returns;
    too_deep += other.too_deep;
    unknown_kinds += other.unknown_kinds;
    stalls += other.stalls;
    stalled_ns += other.stalled_ns;
  }
};

struct Row {
  uint64_t function_id = 0;
  std::string name;
  FunctionTimes times;
};

class Profile {
 public:
  void add(const atf::IndexReader& index, const std::vector<storage::Stall>& stalls) {
    ++counts_.threads;
    counts_.events += index.size();
    RunningTime time(stalls);
    uint64_t first_ns = UINT64_MAX;
    uint64_t last_ns = 0;
    index.events().for_each([&](uint64_t, const atf::IndexEvent& event) {
      first_ns = std::min(first_ns, event.timestamp_ns);
      last_ns = std::max(last_ns, event.timestamp_ns);
      add_event(event, time.at(event.timestamp_ns));
    });
    for (const storage::Stall& stall : stalls) {
      if (stall.first_ns < last_ns && stall.last_ns > first_ns) counts_.stalls += stall.count;
    }
    if (first_ns < last_ns)
      counts_.stalled_ns += time.stalled_until(last_ns) - time.stalled_until(first_ns);
    stack_.finish(time.at(last_ns), [&](const CallStack::Ended& ended) {
      count(ended);
      ++times_[ended.slot].open;
      ++counts_.open;
    });
  }

  void add(const Profile& other) {
    for (uint32_t slot = 0; slot < other.times_.size(); ++slot) {
      times_of(slots_.slot_of(other.slots_.function_of(slot))).add(other.times_[slot]);
    }
    counts_.add(other.counts_);
  }

  std::vector<Row> rows(const NameTable& names, ReportSort sort) const {
    std::vector<Row> rows;
    for (uint32_t slot = 0; slot < times_.size(); ++slot) {
      const uint64_t id = slots_.function_of(slot);
      rows.push_back(
          {id,
           id == FunctionSlots::kOther ? "(all other functions)" : std::string(names.name_of(id)),
           times_[slot]});
    }
    const auto by = [&](auto value) {
      // The id breaks ties, so that two runs print the same.
      std::sort(rows.begin(), rows.end(), [&](const Row& a, const Row& b) {
        return value(a) != value(b) ? value(a) > value(b) : a.function_id < b.function_id;
      });
    };
    switch (sort) {
      case ReportSort::kTotal:
        by([](const Row& row) { return row.times.total_ns; });
        break;
      case ReportSort::kSelf:
        by([](const Row& row) { return row.times.self_ns; });
        break;
      case ReportSort::kCalls:
        by([](const Row& row) { return row.times.calls; });
        break;
      case ReportSort::kName:
        std::sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) {
          return a.name != b.name ? a.name < b.name : a.function_id < b.function_id;
        });
        break;
    }
    return rows;
  }

  const Counts& counts() const { return counts_; }

 private:
  void add_event(const atf::IndexEvent& event, uint64_t running_ns) {
    const uint32_t slot = slots_.slot_of(event.function_id);
    FunctionTimes& times = times_of(slot);
    switch (event.kind) {
      case atf::EventKind::kCall:
        ++times.calls;
        if (!stack_.call(slot, running_ns)) ++counts_.too_deep;
        break;
      case atf::EventKind::kException:
        ++times.exceptions;
        [[fallthrough]];  // the end of its call, as a return
      case atf::EventKind::kReturn:
        if (!stack_.leave(slot, running_ns, [&](const CallStack::Ended& ended) {
              count(ended);
              if (ended.returned) return;
              ++times_[ended.slot].without_return;
              ++counts_.without_return;
            })) {
          ++counts_.unmatched_returns;
        }
        break;
      default:
        ++counts_.unknown_kinds;
    }
  }

  FunctionTimes& times_of(uint32_t slot) {
    if (slot >= times_.size()) times_.resize(slot + 1);
    return times_[slot];
  }

  void count(const CallStack::Ended& ended) {
    FunctionTimes& times = times_[ended.slot];
    times.self_ns += ended.self_ns;
    if (ended.outermost) times.total_ns += ended.total_ns;
  }

  FunctionSlots slots_;
  CallStack stack_;
  std::vector<FunctionTimes> times_;  // by slot
  Counts counts_;
};

// "12.345 ms": three decimals of the largest unit that keeps a digit before the point.
void put_time(TextOut& out, uint64_t ns, size_t width) {
  struct Unit {
    uint64_t ns;
    const char* name;
  };
  constexpr Unit kUnits[] = {{1'000'000'000, " s"}, {1'000'000, " ms"}, {1'000, " us"}};
  const Unit* unit = &kUnits[2];
  for (const Unit& candidate : kUnits) {
    if (ns >= candidate.ns) {
      unit = &candidate;
      break;
    }
  }
  // In thousandths of the unit, which micros() prints with three decimals.
  out.micros(static_cast<int64_t>(ns / (unit->ns / 1000)), width);
  out.put(unit->name);
}

// The same in a column.
void put_time_cell(TextOut& out, uint64_t ns) {
  constexpr size_t kDigits = 9;
  put_time(out, ns, kDigits);
  if (ns >= 1'000'000'000) out.put(' ');  // as wide as the other units
}

using Health = std::optional<storage::SessionHealth>;

void print_text(TextOut& out, const std::vector<Row>& rows, const Counts& counts, uint64_t lost,
                const Health& health, bool color) {
  if (color) out.control("\x1b[1m");
  out.put("  Total time     Self time         Calls  Function");
  if (color) out.control("\x1b[0m");
  out.put('\n');
  for (const Row& row : rows) {
    put_time_cell(out, row.times.total_ns);
    out.put("  ");
    put_time_cell(out, row.times.self_ns);
    out.dec(row.times.calls, 14);
    out.put("  ");
    out.printable(row.name);
    out.put('\n');
  }
  const auto remark = [&](uint64_t count, std::string_view what) {
    if (count == 0) return;
    out.put("# ");
    out.dec(count);
    out.put(what);
    out.put('\n');
  };
  remark(counts.open, " calls were open at the end: counted up to their thread's last event");
  remark(counts.without_return, " calls have no return: counted up to the return of an outer call");
  remark(counts.unmatched_returns, " returns without a call: not counted");
  remark(counts.too_deep, " calls too deep to be timed");
  remark(counts.unknown_kinds, " events of unknown kind: not counted");
  remark(lost, " events were lost while recording: times around them are estimates");
  if (counts.stalls != 0) {
    out.put("# ");
    out.dec(counts.stalls);
    out.put(counts.stalls == 1 ? " stall, " : " stalls, ");
    put_time(out, counts.stalled_ns, 0);
    out.put(", subtracted from the times\n");
  }
  if (!health || health->is_complete()) return;
  out.put("# the session is not complete: ");
  out.put(storage::session_state_name(health->state));
  out.put(": ");
  out.sentence(health->missing);
  out.put('\n');
}

void print_json(TextOut& out, const Trace& trace, const std::vector<Row>& rows,
                const Counts& counts, uint64_t lost, const Health& health) {
  const auto field = [&](std::string_view key, uint64_t value) {
    out.put(",\"");
    out.put(key);
    out.put("\":");
    out.dec(value);
  };
  out.put("{\"path\":");
  out.json_string(trace.path);
  field("threads", counts.threads);
  field("events", counts.events);
  field("lost_events", lost);
  if (health) {
    out.put(",\"state\":");
    out.json_string(storage::session_state_name(health->state));
    out.put(health->losses_known ? ",\"losses_known\":true" : ",\"losses_known\":false");
    out.put(",\"missing\":");
    out.json_string(health->missing);
  }
  field("open_calls", counts.open);
  field("calls_without_return", counts.without_return);
  field("unmatched_returns", counts.unmatched_returns);
  field("untimed_calls", counts.too_deep);
  field("unknown_kinds", counts.unknown_kinds);
  field("stalls", counts.stalls);
  field("stalled_ns", counts.stalled_ns);
  out.put(",\"functions\":[");
  const char* comma = "";
  for (const Row& row : rows) {
    out.put(comma);
    comma = ",";
    out.put("{\"function_id\":\"");
    out.hex(row.function_id);
    out.put("\",\"name\":");
    out.json_string(row.name);
    field("calls", row.times.calls);
    field("total_ns", row.times.total_ns);
    field("self_ns", row.times.self_ns);
    field("exceptions", row.times.exceptions);
    field("open_calls", row.times.open);
    field("calls_without_return", row.times.without_return);
    out.put('}');
  }
  out.put("]}\n");
}

}  // namespace

int report(const ReportOptions& options, std::ostream& out, std::ostream& err) {
  auto trace = open_trace(options.path);
  if (!trace) {
    err << "report: " << to_string(trace.error()) << "\n";
    return 2;
  }
  if (!trace->choice.empty()) err << "report: " << printable_sentence(trace->choice) << "\n";
  bool unreadable = say_unopened("report", *trace, err);
  if (trace->kind == TraceKind::kUnknownFile) {
    const CaptureFormat* format = capture_format_of(trace->file());
    const std::string why =
        format == nullptr ? to_string(not_a_capture(trace->path, trace->file()))
                          : trace->path + ": " + std::string(format->title) +
                                ": report reads ATF; collectctl convert --to atf makes a session "
                                "of it";
    err << "report: " << printable_sentence(why) << "\n";
    return 2;
  }
  SessionManifest manifest;
  if (trace->manifest) {
    auto parsed = SessionManifest::parse(*trace->manifest);
    if (parsed) {
      manifest = std::move(parsed).value();
    } else {
      err << "report: " << printable_sentence(trace->manifest_path + ": " + parsed.error().message)
          << "; functions stay unnamed\n";
    }
  }
  const auto threads = chosen_threads(options.threads, *trace, manifest);
  if (!threads.ok()) {
    err << "report: " << printable_sentence(threads.error().message) << "\n";
    return threads.code() == Code::kNotFound ? 1 : 2;
  }
  const NameTable names(manifest);
  const atf::SessionReader session(trace->files(*threads));
  uint64_t lost = manifest.lost_without_stream;
  std::vector<const atf::SessionThread*> readable;
  for (const atf::SessionThread& thread : session.threads()) {
    if (!thread.index) {
      unreadable = true;
      err << "report: thread " << thread.n << ": "
          << printable_sentence(thread.findings.list().front().sentence) << "; left out\n";
      continue;
    }
    readable.push_back(&thread);
    const ManifestThread* said = manifest.thread(thread.n);
    if (said != nullptr) lost += said->lost_events.value_or(0);
  }
  std::vector<Profile> profiles(workers_for(readable.size()));
  share_work(readable.size(), progress_line(err, options.progress), [&](size_t worker, size_t i) {
    profiles[worker].add(*readable[i]->index, stalls_of(manifest, readable[i]->n));
  });
  Profile& profile = profiles.front();
  for (size_t i = 1; i < profiles.size(); ++i) profile.add(profiles[i]);
  std::vector<Row> rows = profile.rows(names, options.sort);
  if (rows.size() > options.limit) rows.resize(options.limit);
  TextOut text(out);
  if (options.json) {
    print_json(text, *trace, rows, profile.counts(), lost, manifest.health());
  } else {
    print_text(text, rows, profile.counts(), lost, manifest.health(), options.color);
  }
  return unreadable ? 1 : 0;
}

}  // namespace collect::ctl

#include "storage/export/page/page_export.h"

#include <fmt/core.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "formats/calls/call_tree.h"
#include "formats/calls/function_totals.h"
#include "formats/calls/sinks.h"
#include "formats/core/text/figures.h"
#include "formats/html/writer.h"
#include "storage/export/function_names.h"
#include "storage/export/page/page_lane.h"
#include "storage/export/page/page_names.h"
#include "storage/read/lod_files.h"

namespace collect::exports {
namespace {

// Bars of the functions that are wanted; the others leave their place empty.
class WantedBars : public calls::CallSink {
 public:
  WantedBars(calls::CallBars& bars, const std::function<bool(uint32_t)>& wants)
      : bars_(bars), wants_(wants) {}
  void on_call_end(const calls::EndedCall& call) {
    if (!wants_ || wants_(call.slot)) bars_.on_call_end(call);
  }

 private:
  calls::CallBars& bars_;
  const std::function<bool(uint32_t)>& wants_;
};

class PageExport {
 public:
  PageExport(ExportedSessions& sessions, const PageOptions& options, convert::ConvertLog& log)
      : sessions_(sessions), options_(options), log_(log), names_(page_) {
    page_.can_refresh = options.can_refresh;
    page_.is_recording = options.is_recording;
    page_.can_ask = options.can_ask;
  }

  Status write(ByteSink& out) {
    find_time();
    choose_threads();
    for (const auto& session : sessions_) add(*session);
    std::sort(page_.functions.begin(), page_.functions.end(),
              [](const auto& a, const auto& b) { return a.self_ns > b.self_ns; });
    say();
    return options_.as_data ? html::write_page_data(page_, out) : html::write_page(page_, out);
  }

 private:
  void find_time() {
    bool is_first = true;
    for (const auto& session : sessions_) {
      const auto range = session->time_range(session->window());
      if (!range) continue;
      const uint64_t first_ns = session->line_ns(range->first_ns);
      const uint64_t last_ns = session->line_ns(range->last_ns);
      page_.first_ns = is_first ? first_ns : std::min(page_.first_ns, first_ns);
      page_.last_ns = is_first ? last_ns : std::max(page_.last_ns, last_ns);
      is_first = false;
    }
  }

  // The least that a thread must have to be shown, and how many of those with just as much are.
  void choose_threads() {
    std::vector<uint64_t> events;
    for (const auto& session : sessions_) {
      for (const atf::SessionThread& thread : session->reader.threads()) {
        if (thread.index) events.push_back(thread.index->size());
      }
    }
    if (events.size() <= kMaxPageThreads) return;
    const auto last = events.begin() + static_cast<ptrdiff_t>(kMaxPageThreads - 1);
    std::nth_element(events.begin(), last, events.end(), std::greater<>());
    least_events_ = *last;
    const auto more =
        std::count_if(events.begin(), last, [&](uint64_t count) { return count > least_events_; });
    just_enough_ = kMaxPageThreads - static_cast<size_t>(more);
  }
  bool shows(const atf::IndexReader& index) {
    if (index.size() != least_events_) return index.size() > least_events_;
    return just_enough_ != 0 && just_enough_-- != 0;
  }

  void add(ExportedSession& session) {
    if (session.manifest.identity.switches) page_.has_waits = true;
    for (const storage::Marker& marker : session.about.markers) {
      const uint64_t ns = session.line_ns(marker.at_ns);
      if (ns >= page_.first_ns && ns <= page_.last_ns) page_.markers.push_back({ns, marker.text});
    }
    calls::FunctionSlots slots;
    calls::FunctionTotals totals;
    const size_t count = session.reader.threads().size();
    for (size_t i = 0; i < count; ++i) {
      log_.progress(i, count);
      const atf::SessionThread& thread = session.reader.threads()[i];
      if (!thread.index) continue;
      add_thread(session, thread, slots, totals);
      session.drop_pages(thread.n);
    }
    if (options_.bars_only) return;
    const FunctionNames names(session.names, slots);
    for (uint32_t slot = 0; slot < totals.times().size(); ++slot) {
      const calls::FunctionTimes& times = totals.times()[slot];
      if (!times.is_seen() || !session.functions.wants(names.id_of(slot))) continue;
      page_.functions.push_back({names_.number_of(session, names, slot), times.calls,
                                 times.total_ns, times.self_ns, times.percentile(500).value_or(0),
                                 times.percentile(990).value_or(0), times.longest_ns,
                                 times.waited.self_ns});
    }
  }

  void add_thread(ExportedSession& session, const atf::SessionThread& thread,
                  calls::FunctionSlots& slots, calls::FunctionTotals& totals) {
    ThreadPart part{session, thread, {}, session.stalls_of(thread.n), std::nullopt};
    std::vector<uint32_t> reasons;
    part.gaps = session.gaps_of(thread.n, reasons);
    if (const read::TraceThread* files = session.trace.thread(thread.n)) {
      part.lod = read::find_lod(*files, *thread.index, part.gaps, part.stalls);
    }
    if (!shows(*thread.index)) {
      ++threads_left_out_;
      if (!options_.bars_only) add_totals(part, slots, totals);
      return;
    }
    html::Thread shown;
    const std::string name = session.name_of_thread(thread.n);
    shown.name =
        fmt::format("{}{} ({})", sessions_.size() == 1 ? "" : session.name_of_process() + ": ",
                    name.empty() ? "thread" : name, thread.index->header().thread_id);
    shown.number = thread.n;
    if (!show_from_lod(part, shown, slots, totals)) show_from_calls(part, shown, slots, totals);
    for (const calls::Stall& stall : part.stalls) {
      if (stall.last_ns < session.window().first_ns || stall.first_ns > session.window().last_ns) {
        continue;
      }
      (stall.is_off_processor ? shown.waits : shown.stalls)
          .emplace_back(session.line_ns(stall.first_ns), session.line_ns(stall.last_ns));
    }
    intervals_ += keep_longest(shown.gaps) + keep_longest(shown.stalls);
    (void)keep_longest(shown.waits);  // the others are in the sums
    page_.threads.push_back(std::move(shown));
  }

  struct ThreadPart {
    ExportedSession& session;
    const atf::SessionThread& thread;
    std::vector<calls::Gap> gaps;
    std::vector<calls::Stall> stalls;
    std::optional<read::ThreadLod> lod;
  };

  // The page's time on the device's clock.
  calls::Window window_of(const ExportedSession& session) const {
    if (!session.clock) return {page_.first_ns, page_.last_ns};
    const uint64_t first_ns = session.clock->device_ns(page_.first_ns);
    return {first_ns, std::max(first_ns, session.clock->device_ns(page_.last_ns))};
  }
  size_t threads() const {
    size_t threads = 0;
    for (const auto& session : sessions_) threads += session->reader.threads().size();
    return std::clamp<size_t>(threads, 1, kMaxPageThreads);
  }
  size_t most_bars() const { return std::max(kLeastPageBars, kMaxPageBars / threads()); }
  size_t most_nodes() const {
    return std::clamp(kMaxPageNodesOfAll / threads(), kLeastPageNodes, kMaxPageNodes);
  }
  uint32_t columns() const {
    return static_cast<uint32_t>(std::min<size_t>(kPageColumns, most_bars()));
  }

  // For a thread that is not shown.
  void add_totals(ThreadPart& part, calls::FunctionSlots& slots, calls::FunctionTotals& totals) {
    if (part.lod && part.session.functions.everything() && part.session.window().is_everything()) {
      totals.add(slots, part.lod->summary->totals, part.lod->summary->slots);
      counts_.add(part.lod->summary->counts);
      return;
    }
    calls::ThreadCalls calls(slots, totals, part.stalls, part.session.window());
    read::read_calls(part.session.trace.thread(part.thread.n), *part.thread.index, part.gaps,
                     part.stalls, part.session.window(), calls);
    counts_.add(calls.counts());
  }

  // False: it cannot say what is wanted, and nothing was added.
  bool show_from_lod(ThreadPart& part, html::Thread& shown, calls::FunctionSlots& slots,
                     calls::FunctionTotals& totals) {
    if (!part.lod || !part.session.functions.everything()) return false;
    const calls::LodReader& lod = part.lod->reader;
    const calls::Window window = window_of(part.session);
    const bool is_whole = part.session.window().is_everything();
    if (!is_whole) {
      const auto events = calls::events_in(lod, window);
      if (!options_.bars_only || !events.ok() || *events <= kMaxReadEvents / threads()) {
        return false;
      }
    }
    calls::CallBars bars(window, columns());
    Activity activity(part.session, page_);
    if (!bars.add(lod).ok() || !activity.add(lod, window.last_ns).ok()) return false;
    for (const calls::Gap& gap : part.gaps) {
      const bool is_behind = gap.before_seq != 0 && gap.before_seq <= part.thread.index->size();
      activity.add(gap, is_behind ? part.thread.index->time_of(gap.before_seq - 1) : 0);
    }
    const calls::LodSummary& summary = *part.lod->summary;
    const FunctionNames functions(part.session.names, summary.slots);
    finish(shown, bars, activity, part.session, functions);
    if (options_.bars_only) return true;
    shown.tree =
        page_tree(part.session, functions, names_, calls::fewer_paths(summary.paths, most_nodes()));
    totals.add(slots, summary.totals, summary.slots);
    counts_.add(summary.counts);
    return true;
  }

  void show_from_calls(ThreadPart& part, html::Thread& shown, calls::FunctionSlots& slots,
                       calls::FunctionTotals& totals) {
    calls::CallTree tree;
    calls::CallBars bars(window_of(part.session), columns());
    Activity activity(part.session, page_);
    const FunctionNames functions(part.session.names, slots);
    const auto read = [&](auto& sink) {
      calls::ThreadCalls calls(slots, sink, part.stalls, part.session.window());
      read::read_calls(part.session.trace.thread(part.thread.n), *part.thread.index, part.gaps,
                       part.stalls, part.session.window(), calls);
      counts_.add(calls.counts());
    };
    std::function<bool(uint32_t)> wants;
    if (!part.session.functions.everything()) {
      wants = [&](uint32_t slot) { return part.session.functions.wants(functions.id_of(slot)); };
    }
    WantedBars wanted(bars, wants);
    if (options_.bars_only) {
      calls::Sinks sinks(activity, wanted);
      read(sinks);
    } else {
      calls::Sinks sinks(tree, totals, activity, wanted);
      read(sinks);
    }
    shown.has_all_calls = true;
    finish(shown, bars, activity, part.session, functions);
    if (options_.bars_only) return;
    shown.tree =
        page_tree(part.session, functions, names_, calls::path_tree(tree, most_nodes(), wants));
  }

  void finish(html::Thread& shown, calls::CallBars& bars, Activity& activity,
              const ExportedSession& session, const FunctionNames& functions) {
    shown.activity = activity.take_parts();
    shown.gaps = activity.take_gaps();
    shown.deeper_calls = bars.deeper_calls();
    shown.deeper_calls +=
        put_bars(bars.take(), most_bars(), session, functions, names_, shown.bars);
  }

  void say() {
    for (const auto& session : sessions_) {
      page_.title += fmt::format("{}{} ({})", page_.title.empty() ? "" : ", ",
                                 session->name_of_process(), session->about.identity.pid);
      if (!session->device().empty()) page_.facts.emplace_back("device", session->device());
    }
    page_.facts.emplace_back("time", milliseconds(page_.last_ns - page_.first_ns));
    page_.facts.emplace_back("events", with_thousands(counts_.events));
    page_.facts.emplace_back("calls", with_thousands(counts_.calls));
    page_.facts.emplace_back("threads", with_thousands(page_.threads.size() + threads_left_out_));
    page_.facts.emplace_back("functions", with_thousands(page_.functions.size()));
    if (counts_.stalled_ns != 0) {
      page_.facts.emplace_back("stalled, left out of the times", milliseconds(counts_.stalled_ns));
    }
    log_.count("events", counts_.events);
    log_.count("calls", counts_.calls);
    if (counts_.lost_events != 0) {
      log_.count("lost_events", counts_.lost_events);
      log_.remark(with_thousands(counts_.lost_events) +
                  " events were lost while recording: times around them are estimates");
    }
    log_.leave_out("returns without a call", counts_.lone_ends);
    log_.leave_out("calls nested deeper than can be followed", counts_.too_deep);
    log_.leave_out("events of an unknown kind", counts_.unknown_kinds);
    log_.leave_out("short stalls and gaps on the time line", intervals_);
    log_.leave_out(
        fmt::format(
            "threads with fewer events than the {} that a page shows: --thread chooses others",
            with_thousands(kMaxPageThreads)),
        threads_left_out_);
    for (const storage::MissingInput& one : log_.missing()) {
      page_.missing.push_back(
          one.what + (one.count == 0 ? "" : fmt::format(" ({})", with_thousands(one.count))));
    }
    for (const std::string& remark : log_.remarks()) page_.missing.push_back(remark);
    for (const auto& [what, count] : log_.left_out()) {
      page_.missing.push_back(fmt::format("left out: {} ({})", what, with_thousands(count)));
    }
  }

  static std::string milliseconds(uint64_t ns) {
    return fmt::format("{}.{} ms", with_thousands(ns / 1'000'000), ns / 100'000 % 10);
  }

  ExportedSessions& sessions_;
  const PageOptions options_;
  convert::ConvertLog& log_;
  html::Page page_;
  PageNames names_;
  calls::ThreadCounts counts_;
  uint64_t intervals_ = 0;  // that are not shown
  uint64_t threads_left_out_ = 0;
  uint64_t least_events_ = 0;      // of a thread that is shown
  size_t just_enough_ = SIZE_MAX;  // threads of exactly these that are still to be shown
};

}  // namespace

Status export_page(ExportedSessions& sessions, const PageOptions& options, ByteSink& out,
                   convert::ConvertLog& log) {
  return PageExport(sessions, options, log).write(out);
}

}  // namespace collect::exports

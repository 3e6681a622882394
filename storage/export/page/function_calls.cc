#include "storage/export/page/function_calls.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "formats/calls/duration_histogram.h"
#include "formats/calls/wait_stack.h"
#include "storage/export/page/page_lane.h"
#include "storage/read/lod_files.h"
#include "storage/read/workers.h"

namespace collect::exports {
namespace {

struct FoundCall {
  calls::EndedCall call;
  const ExportedSession* session = nullptr;
  uint32_t thread = 0;  // N of thread_N
  uint64_t waited_ns = 0;
};

// A total order, so that the same are kept whichever thread is read first.
bool is_slower(const FoundCall& one, const FoundCall& other) {
  if (one.call.total_ns != other.call.total_ns) return one.call.total_ns > other.call.total_ns;
  if (one.call.begin.ns != other.call.begin.ns) return one.call.begin.ns < other.call.begin.ns;
  return one.thread < other.thread;
}

// What is kept of any number of calls.
class FoundCalls {
 public:
  void add(const FoundCall& found) {
    ++calls_;
    if (found.call.is_whole) {
      Duration& duration = durations_[calls::DurationHistogram::bucket_of(found.call.total_ns)];
      if (duration.calls++ == 0 || is_slower(found, duration.longest)) duration.longest = found;
    }
    keep(found);
  }
  void add(const FoundCalls& other) {
    calls_ += other.calls_;
    for (size_t i = 0; i < durations_.size(); ++i) {
      Duration& own = durations_[i];
      const Duration& more = other.durations_[i];
      if (more.calls == 0) continue;
      if (own.calls == 0 || is_slower(more.longest, own.longest)) own.longest = more.longest;
      own.calls += more.calls;
    }
    for (const FoundCall& found : other.slowest_) keep(found);
  }

  struct Duration {
    uint64_t calls = 0;
    FoundCall longest;
  };
  uint64_t calls() const { return calls_; }
  const std::vector<Duration>& durations() const { return durations_; }  // by bucket
  std::vector<FoundCall> slowest() const {
    std::vector<FoundCall> sorted = slowest_;
    std::sort(sorted.begin(), sorted.end(), is_slower);
    return sorted;
  }

 private:
  // A heap with the fastest of the slowest in front.
  void keep(const FoundCall& found) {
    if (slowest_.size() == kSlowestCalls) {
      if (!is_slower(found, slowest_.front())) return;
      std::pop_heap(slowest_.begin(), slowest_.end(), is_slower);
      slowest_.pop_back();
    }
    slowest_.push_back(found);
    std::push_heap(slowest_.begin(), slowest_.end(), is_slower);
  }

  uint64_t calls_ = 0;
  std::vector<Duration> durations_{calls::DurationHistogram::kMaxBuckets};
  std::vector<FoundCall> slowest_;
};

// Which functions of a session have the name.
class WantedFunctions {
 public:
  WantedFunctions(const read::NameTable& names, std::string_view name)
      : names_(names), wanted_(name) {}

  bool has(uint64_t function_id) {
    if (function_id == calls::FunctionSlots::kOther) return false;
    name_.clear();
    names_.append_name(name_, function_id);
    return name_ == wanted_;
  }

 private:
  const read::NameTable& names_;
  const std::string_view wanted_;
  std::string name_;
};

// One thread.
class FunctionCallSink : public calls::CallSink {
 public:
  FunctionCallSink(const ExportedSession& session, uint32_t thread,
                   const calls::FunctionSlots& slots, std::string_view name, FoundCalls& found)
      : session_(session),
        thread_(thread),
        slots_(slots),
        wanted_(session.names, name),
        found_(found) {}

  void on_wait(uint64_t ns, size_t depth) { waits_.wait(ns, depth); }
  void on_call_end(const calls::EndedCall& call) {
    const calls::WaitedTimes off = waits_.end(call.depth);
    if (is_wanted(call.slot)) found_.add({call, &session_, thread_, off.total_ns});
  }

 private:
  enum class Known : uint8_t { kNot, kNo, kYes };

  bool is_wanted(uint32_t slot) {
    if (slot >= known_.size()) known_.resize(slot + 1, Known::kNot);
    Known& known = known_[slot];
    if (known == Known::kNot) {
      known = wanted_.has(slots_.function_of(slot)) ? Known::kYes : Known::kNo;
    }
    return known == Known::kYes;
  }

  const ExportedSession& session_;
  const uint32_t thread_;
  const calls::FunctionSlots& slots_;
  WantedFunctions wanted_;
  FoundCalls& found_;
  calls::WaitStack waits_;
  std::vector<Known> known_;  // by slot
};

// False where index.lod says that the thread has no call of it.
bool may_call(const ExportedSession& session, const read::ThreadLod& lod, std::string_view name) {
  WantedFunctions wanted(session.names, name);
  const auto& times = lod.summary->totals.times();
  for (uint32_t slot = 0; slot < times.size(); ++slot) {
    if (times[slot].calls == 0) continue;
    const uint64_t id = lod.summary->slots.function_of(slot);
    if (id == calls::FunctionSlots::kOther || wanted.has(id)) return true;
  }
  return false;
}

void find_in_thread(const ExportedSession& session, const atf::SessionThread& thread,
                    std::string_view name, FoundCalls& found) {
  if (!thread.index) return;
  std::vector<uint32_t> reasons;
  const std::vector<calls::Gap> gaps = session.gaps_of(thread.n, reasons);
  const std::vector<calls::Stall> stalls = session.stalls_of(thread.n);
  const read::TraceThread* files = session.trace.thread(thread.n);
  if (files != nullptr) {
    const auto lod = read::find_lod(*files, *thread.index, gaps, stalls);
    if (lod && !may_call(session, *lod, name)) return;
  }
  calls::FunctionSlots slots;
  FunctionCallSink sink(session, thread.n, slots, name, found);
  calls::ThreadCalls calls(slots, sink, stalls, session.window());
  read::read_calls(files, *thread.index, gaps, stalls, session.window(), calls);
  session.drop_pages(thread.n);
}

html::FoundCall shown(const FoundCall& found) {
  const ExportedSession& session = *found.session;
  const calls::EndedCall& call = found.call;
  html::FoundCall one;
  one.thread = found.thread;
  one.waited_ns = found.waited_ns;
  one.bar.depth = call.depth;
  one.bar.first_ns = session.line_ns(std::max(call.begin.ns, session.window().first_ns));
  one.bar.last_ns = std::max(one.bar.first_ns, session.line_ns(call.end.ns));
  one.bar.calls = 1;
  one.bar.covered_ns = one.bar.last_ns - one.bar.first_ns;
  one.bar.is_call = true;
  one.bar.is_whole = call.is_whole;
  one.bar.begin_ns = session.line_ns(call.begin.ns);
  one.bar.total_ns = call.total_ns;
  one.bar.self_ns = call.self_ns;
  one.bar.end = calls::to_text(call.reason);
  one.bar.record_of_begin = shown_record(call.begin.detail_seq);
  one.bar.record_of_end = shown_record(call.end.detail_seq);
  return one;
}

}  // namespace

html::FunctionCalls find_function_calls(ExportedSessions& sessions, std::string_view name,
                                        convert::ConvertLog& log) {
  std::vector<std::pair<const ExportedSession*, const atf::SessionThread*>> threads;
  for (const auto& session : sessions) {
    for (const atf::SessionThread& thread : session->reader.threads()) {
      threads.emplace_back(session.get(), &thread);
    }
  }
  std::vector<FoundCalls> of_workers(read::workers_for(threads.size()));
  read::share_work(
      threads.size(), [&log](size_t done, size_t all) { log.progress(done, all); },
      [&](size_t worker, size_t piece) {
        find_in_thread(*threads[piece].first, *threads[piece].second, name, of_workers[worker]);
      });
  FoundCalls& found = of_workers.front();
  for (size_t i = 1; i < of_workers.size(); ++i) found.add(of_workers[i]);

  html::FunctionCalls page;
  page.calls = found.calls();
  for (uint32_t bucket = 0; bucket < found.durations().size(); ++bucket) {
    const FoundCalls::Duration& duration = found.durations()[bucket];
    if (duration.calls == 0) continue;
    const auto range = calls::DurationHistogram::range_of(bucket);
    page.durations.push_back(
        {range.first_ns, range.last_ns, duration.calls, shown(duration.longest)});
  }
  for (const FoundCall& call : found.slowest()) page.slowest.push_back(shown(call));
  return page;
}

Status export_function_calls(ExportedSessions& sessions, std::string_view name, ByteSink& out,
                             convert::ConvertLog& log) {
  return html::write_function_calls(find_function_calls(sessions, name, log), out);
}

}  // namespace collect::exports

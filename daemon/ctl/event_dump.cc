#include "daemon/ctl/event_dump.h"

#include <algorithm>
#include <chrono>
#include <ctime>

#include "daemon/ctl/running_time.h"

namespace collect::ctl {
namespace {

constexpr uint64_t kNever = std::numeric_limits<uint64_t>::max();

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

std::vector<PrintedThread> printed_threads(const DumpedSession& session) {
  std::vector<PrintedThread> threads;
  for (const atf::SessionThread& thread : session.reader.threads()) {
    PrintedThread printed;
    printed.n = thread.n;
    if (thread.index) {
      printed.tid = thread.index->header().thread_id;
      printed.has_depth = thread.index->version() == atf::Version::kV1;
    }
    const ManifestThread* said = session.manifest.thread(thread.n);
    if (said != nullptr) printed.name = said->name;
    threads.push_back(std::move(printed));
  }
  return threads;
}

// A nearby zero for the text form: headers or first events, without reading the files. Where times
// step back some lines are negative.
uint64_t first_ns(const DumpedSession& session) {
  uint64_t first = kNever;
  for (const atf::SessionThread& thread : session.reader.threads()) {
    if (thread.index && thread.index->size() != 0) {
      first = std::min(first, thread.index->time_of(0));
    }
  }
  if (first == kNever) return kNever;
  return session.clock ? session.clock->line_ns(first) : first;
}

std::string utc_text(uint64_t unix_ns) {
  const std::time_t seconds = static_cast<std::time_t>(unix_ns / 1'000'000'000);
  std::tm utc{};
  gmtime_r(&seconds, &utc);
  char day[32];
  std::strftime(day, sizeof day, "%Y-%m-%d %H:%M:%S", &utc);
  const std::string fraction = std::to_string(1'000'000'000 + unix_ns % 1'000'000'000);
  return std::string(day) + "." + fraction.substr(1) + " UTC";
}

// Prints one session's events.
class SessionPrinter {
 public:
  SessionPrinter(const DumpOptions& options, DumpedSession& session, size_t number,
                 uint64_t origin_ns, TextOut& out)
      : options_(options),
        session_(session),
        json_(out, session.names, printed_threads(session),
              session.clock ? &*session.clock : nullptr,
              session.clock ? session.trace.path : std::string()),
        text_(out, session.names, printed_threads(session), origin_ns,
              {options.merged, session.clock ? number : 0}) {
    for (const atf::SessionThread& thread : session.reader.threads()) details_.emplace_back(thread);
    if (!options.merged) return;
    for (size_t i = 0; i < details_.size(); ++i) add_stalls(i);
    std::stable_sort(stalls_.begin(), stalls_.end(), [](const Placed& a, const Placed& b) {
      return a.stall.first_ns < b.stall.first_ns;
    });
  }

  uint64_t time_of(uint64_t device_ns) const {
    return session_.clock ? session_.clock->line_ns(device_ns) : device_ns;
  }

  void begin_thread(size_t thread, uint64_t events) {
    stalls_.clear();
    next_stall_ = 0;
    add_stalls(thread);
    if (!options_.json) text_.begin_thread(thread, events);
  }

  // Those that began before a time on the line, of the thread or, when merged, of all of them.
  void print_stalls(uint64_t before_ns) {
    for (; next_stall_ < stalls_.size(); ++next_stall_) {
      const auto& [thread, stall] = stalls_[next_stall_];
      const uint64_t time_ns = time_of(stall.first_ns);
      if (time_ns >= before_ns) return;
      if (time_ns > options_.to_ns || time_of(stall.last_ns) < options_.from_ns) continue;
      if (options_.json) {
        json_.print(thread, stall, time_ns);
      } else {
        text_.print(thread, stall, time_ns);
      }
    }
  }

  // True: it was printed.
  bool take(size_t thread, uint64_t seq, const atf::IndexEvent& event, uint64_t time_ns) {
    // Asked first, so that it has seen every function.
    const bool wanted = session_.filter->wants(event.function_id) && time_ns >= options_.from_ns &&
                        time_ns <= options_.to_ns;
    if (!wanted) {
      if (!options_.json) text_.pass(thread, event);
      return false;
    }
    std::optional<atf::DetailRecord> record;
    if (options_.detail) record = details_[thread].record_of(event);
    if (options_.json) {
      json_.print(thread, seq, event, time_ns, record);
    } else {
      text_.print(thread, event, time_ns, record);
    }
    return true;
  }

 private:
  struct Placed {
    size_t thread = 0;  // position
    storage::Stall stall;
  };

  // A stall is of no function: who asks for some gets none.
  void add_stalls(size_t thread) {
    if (!options_.functions.empty() || !session_.reader.threads()[thread].index) return;
    for (const storage::Stall& stall :
         stalls_of(session_.manifest, session_.reader.threads()[thread].n)) {
      stalls_.push_back({thread, stall});
    }
  }

  const DumpOptions& options_;
  DumpedSession& session_;
  JsonEvents json_;
  TextEvents text_;
  std::vector<DetailFollower> details_;
  std::vector<Placed> stalls_;  // in order of time
  size_t next_stall_ = 0;
};

class Dump {
 public:
  Dump(const DumpOptions& options, const std::vector<std::unique_ptr<DumpedSession>>& sessions,
       std::ostream& out)
      : options_(options), sessions_(sessions), out_(out) {
    for (const auto& session : sessions) {
      const uint64_t first = first_ns(*session);
      origins_.push_back(first == kNever ? 0 : first);
      if (first != kNever) first_ = std::min(first_, first);
    }
    if (first_ == kNever) first_ = 0;
  }

  // False: the limit, or the reader, ended it.
  bool run() {
    if (options_.merged) {
      run_merged();
    } else {
      for (size_t i = 0; i < sessions_.size() && !done(); ++i) run_by_thread(i);
    }
    return !done();
  }

 private:
  bool done() const { return printed_ >= options_.limit || !out_.ok(); }

  void run_by_thread(size_t number) {
    DumpedSession& session = *sessions_[number];
    if (!options_.json) {
      if (sessions_.size() > 1) print_session(number);
      print_origin(session, origins_[number]);
    }
    SessionPrinter printer(options_, session, number + 1, origins_[number], out_);
    const auto& threads = session.reader.threads();
    for (size_t i = 0; i < threads.size() && !done(); ++i) {
      if (!threads[i].index) continue;
      const atf::IndexReader& index = *threads[i].index;
      printer.begin_thread(i, index.size());
      for (uint64_t seq = 0; seq < index.size() && !done(); ++seq) {
        const atf::IndexEvent event = index.event(seq);
        const uint64_t time_ns = printer.time_of(event.timestamp_ns);
        printer.print_stalls(time_ns);
        if (printer.take(i, seq, event, time_ns)) ++printed_;
      }
      if (!done()) printer.print_stalls(kNever);
    }
  }

  // The next event of each session; the earliest of them is printed.
  struct Next {
    atf::MergedCursor cursor;
    atf::MergedEvent event{};
    uint64_t time_ns = 0;
    bool there = false;

    void step(const SessionPrinter& printer) {
      there = cursor.next(event);
      if (there) time_ns = printer.time_of(event.event.timestamp_ns);
    }
  };

  void run_merged() {
    if (!options_.json) {
      for (size_t i = 0; sessions_.size() > 1 && i < sessions_.size(); ++i) print_session(i);
      print_origin(*sessions_.front(), first_);
    }
    std::vector<SessionPrinter> printers;
    std::vector<Next> next;
    printers.reserve(sessions_.size());
    for (size_t i = 0; i < sessions_.size(); ++i) {
      const std::optional<DeviceClock>& clock = sessions_[i]->clock;
      // Text needs the calls before the window for depth and durations; JSON does not.
      uint64_t from = options_.json ? options_.from_ns : 0;
      if (clock && from != 0) from = clock->device_ns(from);
      printers.emplace_back(options_, *sessions_[i], i + 1, first_, out_);
      next.push_back({sessions_[i]->reader.merged(from)});
      next.back().step(printers[i]);
    }
    while (!done()) {
      size_t earliest = next.size();
      for (size_t i = 0; i < next.size(); ++i) {
        if (!next[i].there) continue;
        if (earliest == next.size() || next[i].time_ns < next[earliest].time_ns) earliest = i;
      }
      if (earliest == next.size() || next[earliest].time_ns > options_.to_ns) break;
      const Next& now = next[earliest];
      for (SessionPrinter& printer : printers) printer.print_stalls(now.time_ns);
      if (printers[earliest].take(now.event.thread, now.event.seq, now.event.event, now.time_ns)) {
        ++printed_;
      }
      next[earliest].step(printers[earliest]);
    }
    for (size_t i = 0; i < printers.size() && !done(); ++i) printers[i].print_stalls(kNever);
  }

  void print_session(size_t number) {
    out_.put("# session ");
    out_.dec(number + 1);
    out_.put(": ");
    out_.printable(sessions_[number]->trace.path);
    if (!sessions_[number]->where_from.empty()) {
      out_.put(", ");
      out_.sentence(sessions_[number]->where_from);
    }
    out_.put('\n');
  }

  void print_origin(const DumpedSession& session, uint64_t origin) {
    out_.put("# microseconds since ");
    if (session.clock) {
      out_.put(utc_text(origin));
      out_.put(", collector's clock");
    } else {
      out_.dec(origin);
      out_.put(" ns");
    }
    out_.put("; duration at each return\n");
  }

  const DumpOptions& options_;
  const std::vector<std::unique_ptr<DumpedSession>>& sessions_;
  TextOut out_;
  std::vector<uint64_t> origins_;  // of each session
  uint64_t first_ = kNever;        // of all of them
  uint64_t printed_ = 0;
};

}  // namespace

bool dump_events(const DumpOptions& options,
                 const std::vector<std::unique_ptr<DumpedSession>>& sessions, std::ostream& out) {
  return Dump(options, sessions, out).run();
}

}  // namespace collect::ctl

#include "daemon/ctl/dump/dump_blocks.h"

#include <algorithm>

#include "storage/read/thread_breaks.h"

namespace collect::ctl {
class DumpBlocks::Source {
  // Detail records of one thread, followed in step with its events: no offset table, so memory
  // stays constant. Only a link out of order makes the reader build one.
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

 public:
  Source(const DumpOptions& options, const DumpedSession& session, size_t number)
      : options_(options),
        session_(session),
        number_(number),
        places_(session.reader.threads().size()) {
    for (const atf::SessionThread& thread : session.reader.threads()) details_.emplace_back(thread);
    if (!options.merged) return;
    for (size_t i = 0; i < details_.size(); ++i) add_stalls(i);
    sort_stalls();
    // Text needs the calls before the window for depth and durations; JSON does not.
    uint64_t from = options.json ? session.window.first_ns : 0;
    if (session.clock && from != 0) from = session.clock->device_ns(from);
    cursor_ = session.reader.merged(from);
    step();
  }

  // The next block of a thread; false behind the last thread.
  bool next_of_threads(DumpBlock& block, size_t max_events) {
    const auto& threads = session_.reader.threads();
    block.session = number_;
    block.begins_session = begins_;
    block.begins_thread = false;
    block.events = 0;
    block.index = nullptr;
    if (std::exchange(begins_, false)) return true;  // its header alone
    while (thread_ < threads.size() && !threads[thread_].index) ++thread_;
    if (thread_ == threads.size()) return false;
    const atf::IndexReader& index = *threads[thread_].index;
    block.thread = thread_;
    block.index = &index;
    block.first_seq = next_seq_;
    block.events = std::min<uint64_t>(max_events, index.size() - next_seq_);
    block.begins_thread = next_seq_ == 0;
    if (block.begins_thread) {
      stalls_.clear();
      next_stall_ = 0;
      add_stalls(thread_);
      sort_stalls();
    }
    next_seq_ += block.events;
    const bool is_looked_at = !options_.json || options_.detail || next_stall_ < stalls_.size();
    for (size_t i = 0; is_looked_at && i < block.events; ++i) {
      const DumpedEvent event = block.event(i);
      place_stalls(block, i, event.time_ns);
      add(block, i, event);
    }
    if (next_seq_ == index.size()) {
      place_stalls(block, block.events, kNever);
      ++thread_;
      next_seq_ = 0;
    }
    return true;
  }

  // The next merged event, where there is one.
  bool is_there() const { return is_there_; }
  const DumpedEvent& event() const { return event_; }
  void step() {
    atf::MergedEvent merged;
    is_there_ = cursor_->next(merged);
    if (!is_there_) return;
    event_ = {number_, merged.thread, merged.seq, time_of(merged.event.timestamp_ns), merged.event};
  }

  // What belongs to the event at position `i` of the block.
  void add(DumpBlock& block, size_t i, const DumpedEvent& event) {
    if (!options_.json) block.places.push_back(places_.move(event.thread, event.event));
    if (!options_.detail || !is_in_window(event.time_ns, event.time_ns)) {
      return;
    }
    if (auto record = details_[event.thread].record_of(event.event)) {
      block.records.push_back({i, std::move(*record)});
    }
  }

  // Those that began before a time on the line, of the thread or, when merged, of all of them.
  void place_stalls(DumpBlock& block, size_t before, uint64_t before_ns) {
    for (; next_stall_ < stalls_.size(); ++next_stall_) {
      const auto& [thread, stall] = stalls_[next_stall_];
      const uint64_t time_ns = time_of(stall.first_ns);
      if (time_ns >= before_ns) return;
      if (!is_in_window(time_ns, time_of(stall.last_ns))) continue;
      block.stalls.push_back({before, number_, thread, stall, time_ns, places_.depth(thread)});
    }
  }

 private:
  struct Placed {
    size_t thread = 0;  // position
    storage::Stall stall;
  };

  bool is_in_window(uint64_t first_ns, uint64_t last_ns) const {
    return first_ns <= session_.window.last_ns && last_ns >= session_.window.first_ns;
  }

  uint64_t time_of(uint64_t device_ns) const {
    return session_.clock ? session_.clock->line_ns(device_ns) : device_ns;
  }

  // A stall is of no function: who asks for some gets none.
  void add_stalls(size_t thread) {
    if (!options_.functions.empty() || !session_.reader.threads()[thread].index) return;
    const uint32_t n = session_.reader.threads()[thread].n;
    const auto place = [&](const std::vector<storage::Stall>& stalls) {
      for (const storage::Stall& stall : stalls) stalls_.push_back({thread, stall});
    };
    for (const auto kind : {storage::StallKind::kLock, storage::StallKind::kSample}) {
      place(read::times_of(session_.manifest, n, kind));
    }
    place(read::idle_times_of(session_.manifest, n));
  }

  void sort_stalls() {
    std::ranges::stable_sort(stalls_, {},
                             [](const Placed& placed) { return placed.stall.first_ns; });
  }

  const DumpOptions& options_;
  const DumpedSession& session_;
  const size_t number_;
  CallPlaces places_;
  std::vector<DetailFollower> details_;
  std::vector<Placed> stalls_;  // in order of time
  size_t next_stall_ = 0;
  // By thread.
  bool begins_ = true;
  size_t thread_ = 0;
  uint64_t next_seq_ = 0;
  // Merged.
  std::optional<atf::MergedCursor> cursor_;
  DumpedEvent event_;
  bool is_there_ = false;
};

DumpBlocks::DumpBlocks(const DumpOptions& options,
                       const std::vector<std::unique_ptr<DumpedSession>>& sessions)
    : options_(options), sessions_(sessions) {
  for (size_t i = 0; i < sessions.size(); ++i) {
    sources_.push_back(std::make_unique<Source>(options, *sessions[i], i));
  }
}

DumpBlocks::~DumpBlocks() = default;

uint64_t DumpBlocks::events() const {
  uint64_t sum = 0;
  for (const auto& session : sessions_) sum += session->reader.events();
  return sum;
}

size_t DumpBlocks::block_events() {
  const size_t events = grown_;
  grown_ = std::min(2 * grown_, DumpBlock::kEvents);
  return events;
}

bool DumpBlocks::next(DumpBlock& block) {
  block.merged.clear();
  block.places.clear();
  block.stalls.clear();
  block.records.clear();
  return options_.merged ? next_merged(block) : next_of_threads(block);
}

bool DumpBlocks::next_of_threads(DumpBlock& block) {
  for (; session_ < sources_.size(); ++session_) {
    if (sources_[session_]->next_of_threads(block, block_events())) return true;
  }
  return false;
}

// The next event of each session; the earliest of them is printed.
bool DumpBlocks::next_merged(DumpBlock& block) {
  if (is_ended_) return false;
  const size_t max_events = block_events();
  block.index = nullptr;
  block.begins_session = block.begins_thread = false;
  while (block.merged.size() < max_events) {
    Source* earliest = nullptr;
    for (const auto& source : sources_) {
      if (!source->is_there()) continue;
      if (earliest == nullptr || source->event().time_ns < earliest->event().time_ns) {
        earliest = source.get();
      }
    }
    const size_t i = block.merged.size();
    is_ended_ =
        earliest == nullptr || earliest->event().time_ns > sessions_.front()->window.last_ns;
    const uint64_t now_ns = is_ended_ ? kNever : earliest->event().time_ns;
    for (const auto& source : sources_) source->place_stalls(block, i, now_ns);
    if (is_ended_) break;
    block.merged.push_back(earliest->event());
    earliest->add(block, i, earliest->event());
    earliest->step();
  }
  block.events = block.merged.size();
  return true;
}

}  // namespace collect::ctl

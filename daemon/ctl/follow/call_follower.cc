#include "daemon/ctl/follow/call_follower.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "daemon/ctl/follow/limits.h"
#include "formats/calls/read_thread.h"
#include "formats/calls/wait_stack.h"
#include "formats/core/text/printable.h"
#include "formats/core/text/utf8.h"

namespace collect::ctl::follow {

namespace api = control::v1;

namespace {

// Fields of messages are UTF-8.
std::string valid_text(std::string_view text) {
  text = text.substr(0, kMaxNameBytes);
  return is_utf8(text) ? std::string(text) : printable(text);
}

}  // namespace

void find_recent_names(const FollowedSession& session, LiveNames& names) {
  for (const auto& [n, thread] : session.threads()) {
    if (!thread.index) continue;
    const uint64_t first = thread.index->size() - std::min(thread.index->size(), kSeedEvents);
    thread.index->events(first, thread.index->size() - first)
        .for_each([&](uint64_t, const auto& event) { (void)names.name_of(event.function_id); });
  }
  names.finish(session.manifest(), session.said());
}

// One thread's events, from where the follower came on.
class CallFollower::Thread : public calls::CallSink {
 public:
  Thread(CallFollower& owner, FollowedThread& files)
      : owner_(owner), files_(files), calls_(owner.slots_, *this) {}

  // Behind what is there.
  void begin_at_end() {
    gaps_until_ = next_ = files_.index->size();
    lost_ = files_.lost;
  }
  uint64_t unread() const { return files_.settled > next_ ? files_.settled - next_ : 0; }
  const FollowedThread& files() const { return files_; }
  uint64_t events() const { return events_; }
  const std::vector<uint32_t>& stack() const { return stack_; }
  uint64_t take_lost() { return files_.lost - std::exchange(lost_, files_.lost); }
  void begin_message() { events_ = 0; }

  void read_part() {
    if (unread() == 0) return;
    calls_.add_waits(std::exchange(files_.waits, {}));
    const atf::IndexReader& index = *files_.index;
    uint64_t last = std::min(files_.settled, next_ + kPartEvents);
    const auto gap =
        std::find_if(files_.gaps.begin(), files_.gaps.end(),
                     [&](const calls::Gap& one) { return one.before_seq > gaps_until_; });
    if (gap != files_.gaps.end() && gap->before_seq <= last) {
      // Known too late if it is before what was read: from here on, then.
      last = std::max(next_, gap->before_seq);
    }
    index.events(next_, last - next_).for_each([&](uint64_t seq, const auto& event) {
      newest_ns_ = std::max(newest_ns_, event.timestamp_ns);
      calls_.event(seq, event);
    });
    events_ += last - next_;
    next_ = last;
    owner_.newest_ns_ = std::max(owner_.newest_ns_, newest_ns_);
    if (gap != files_.gaps.end() && gap->before_seq <= last) {
      gaps_until_ = gap->before_seq;
      put_gap(*gap);
    }
  }

  uint64_t skip() {
    const uint64_t skipped = unread();
    if (skipped == 0) return 0;
    calls::Gap gap;
    gap.before_seq = next_ = files_.settled;
    gap.lost = skipped;
    gaps_until_ = std::max(gaps_until_, next_);
    put_gap(gap);
    return skipped;
  }

  void on_call_begin(const calls::Call& call) {
    charge(call.begin.ns);
    stack_.push_back(call.slot);
  }
  void on_call_end(const calls::EndedCall& call) {
    charge(call.end.ns);
    stack_.pop_back();
    const calls::WaitedTimes waited = waits_.end(call.depth);
    if (!call.has_own_end()) return;
    SeenCall seen;
    seen.slot = call.slot;
    seen.caller = stack_.empty() || call.depth == 0 ? SeenCall::kNoCaller : stack_.back();
    seen.thread = files_.n;
    seen.depth = call.depth;
    seen.start_ns = call.begin.ns;
    seen.end_ns = call.end.ns;
    seen.waited_ns = waited.total_ns;
    seen.unwound = call.reason == calls::EndReason::kUnwound;
    FunctionSums& sums = owner_.functions_.at(call.slot);
    ++sums.calls;
    sums.total_ns += call.function_ns;
    sums.longest_ns = std::max(sums.longest_ns, seen.duration_ns());
    owner_.on_call(seen);
  }
  void on_lone_end(uint32_t, calls::EndReason, const calls::Moment& moment) { charge(moment.ns); }
  void on_wait(uint64_t ns, size_t depth) {
    waited_ns_ += ns;
    waits_.wait(ns, depth);
  }
  // What happened meanwhile no one knows.
  void on_gap(const calls::Gap&, const calls::Moment&) { charged_ns_ = 0; }

 private:
  void put_gap(const calls::Gap& gap) {
    const atf::IndexReader& index = *files_.index;
    const uint64_t until = std::min(index.size(), next_ + kAheadEvents);
    calls_.gap(gap,
               calls::survivors_of_gap(index, next_, until, calls_.open_calls(), owner_.slots_));
  }

  // The time since the last event is the innermost call's, as far as it is this message's.
  void charge(uint64_t ns) {
    const uint64_t from = std::max(charged_ns_, owner_.boundary_ns_);
    const uint64_t waited_ns = std::exchange(waited_ns_, 0);
    if (charged_ns_ != 0 && !stack_.empty() && ns > from) {
      FunctionSums& sums = owner_.functions_.at(stack_.back());
      sums.self_ns += ns - from;
      // Of what is this message's the same share as of all.
      sums.waited_self_ns +=
          static_cast<uint64_t>(static_cast<double>(waited_ns) * static_cast<double>(ns - from) /
                                static_cast<double>(ns - charged_ns_));
    }
    charged_ns_ = std::max(charged_ns_, ns);
  }

  CallFollower& owner_;
  FollowedThread& files_;
  calls::ThreadCalls<Thread> calls_;
  std::vector<uint32_t> stack_;  // slots of the open calls
  uint64_t next_ = 0;            // event that is read next
  uint64_t gaps_until_ = 0;      // gaps before that event are done
  uint64_t events_ = 0;          // in this message
  uint64_t lost_ = 0;            // of those that were reported
  uint64_t newest_ns_ = 0;
  uint64_t charged_ns_ = 0;  // 0: from the next event on
  uint64_t waited_ns_ = 0;   // off the processor, since the last event
  calls::WaitStack waits_;
};

Result<std::unique_ptr<CallFollower>> CallFollower::make(FollowedSession& session, LiveNames& names,
                                                         const FollowOptions& options) {
  auto filter = select::NameFilter::make(options.functions);
  if (!filter.ok()) return filter.error();
  return std::unique_ptr<CallFollower>(
      new CallFollower(session, names, options, std::move(*filter)));
}

CallFollower::CallFollower(FollowedSession& session, LiveNames& names, const FollowOptions& options,
                           select::NameFilter filter)
    : session_(session),
      names_(names),
      options_(options),
      filter_(std::move(filter)),
      calls_(options.most_calls),
      waiting_(kMaxWaitingCalls) {
  find_threads();
  for (auto& [n, thread] : threads_) thread->begin_at_end();
  for (const auto& [n, files] : session_.threads()) {
    if (!files.index || files.index->size() == 0) continue;
    const uint64_t ns = files.index->time_of(0);
    first_ns_ = first_ns_ == 0 ? ns : std::min(first_ns_, ns);
  }
}

CallFollower::~CallFollower() = default;

bool CallFollower::is_wanted(const FollowedThread& thread) const {
  const storage::ThreadIdentity identity{thread.n, thread.thread_id, thread.name};
  return options_.threads.empty() ||
         std::any_of(options_.threads.begin(), options_.threads.end(),
                     [&](const auto& pattern) { return pattern.means(identity); });
}

// A name may come later than the thread.
void CallFollower::find_threads() {
  for (auto& [n, files] : session_.threads()) {
    if (!files.index || threads_.contains(n) || !is_wanted(files)) continue;
    threads_.emplace(n, std::make_unique<Thread>(*this, files));
  }
}

uint64_t CallFollower::unread() const {
  uint64_t unread = 0;
  for (const auto& [n, thread] : threads_) unread += thread->unread();
  return unread;
}

bool CallFollower::read(Clock::time_point until) {
  find_threads();
  for (auto& [n, files] : session_.threads()) {
    if (!threads_.contains(n)) files.waits.clear();
  }
  uint64_t left = unread();
  while (left != 0 && Clock::now() < until) {
    // Each in turn, so that none waits for a busier one.
    auto next = threads_.lower_bound(next_thread_);
    if (next == threads_.end()) next = threads_.begin();
    for (size_t i = 0; i < threads_.size() && next->second->unread() == 0; ++i) {
      if (++next == threads_.end()) next = threads_.begin();
    }
    next->second->read_part();
    next_thread_ = next->first + 1;
    left = unread();
  }
  if (left > kMaxUnreadEvents) {
    for (auto& [n, thread] : threads_) skipped_events_ += thread->skip();
    left = 0;
  }
  names_.look_up(session_.manifest(), session_.said());
  return left != 0;
}

CallFollower::Decision CallFollower::decide(uint32_t slot) {
  if (slot >= decisions_.size()) decisions_.resize(slots_.size(), Decision::kUnknown);
  if (decisions_[slot] != Decision::kUnknown) return decisions_[slot];
  const uint64_t id = slots_.function_of(slot);
  const std::string* name = names_.name_of(id);
  if (name == nullptr) return Decision::kUnknown;
  const bool is_wanted = filter_.everything() || filter_.wants(*name, id);
  return decisions_[slot] = is_wanted ? Decision::kWanted : Decision::kUnwanted;
}

void CallFollower::on_call(const SeenCall& call) {
  if (call.duration_ns() < options_.least_ns) return;
  switch (decide(call.slot)) {
    case Decision::kUnwanted:
      return;
    case Decision::kWanted:
      calls_.add(call);
      return;
    case Decision::kUnknown:
      waiting_.add(call);
  }
}

std::string CallFollower::shown_name(uint32_t slot) {
  const std::string* name = names_.name_of(slots_.function_of(slot));
  return name == nullptr ? "" : valid_text(*name);
}

void CallFollower::add_calls(api::CallBatch& batch) {
  skipped_calls_ += waiting_.skipped();
  for (const SeenCall& call : waiting_.take()) on_call(call);
  skipped_calls_ += calls_.skipped();
  for (const SeenCall& call : calls_.take()) {
    if (batch.ByteSizeLong() > kMaxBatchBytes) {
      ++skipped_calls_;
      continue;
    }
    const FollowedThread& thread = threads_.at(call.thread)->files();
    api::LiveCall* shown = batch.add_calls();
    shown->set_function(shown_name(call.slot));
    shown->set_function_id(slots_.function_of(call.slot));
    if (call.caller != SeenCall::kNoCaller) shown->set_caller(shown_name(call.caller));
    shown->set_thread_id(thread.thread_id);
    shown->set_thread_name(valid_text(thread.name));
    shown->set_depth(call.depth);
    shown->set_start_ns(call.start_ns);
    shown->set_duration_ns(call.duration_ns());
    shown->set_unwound(call.unwound);
    if (session_.has_switches()) shown->set_cpu_ns(call.cpu_ns());
  }
}

// Those that any order of a table may have first.
void CallFollower::keep_busiest(std::vector<uint32_t>& slots) {
  const auto most = static_cast<ptrdiff_t>(std::min(slots.size(), size_t{kMaxActivities}));
  std::vector<uint32_t> kept;
  const auto keep_most = [&](auto value) {
    std::partial_sort(
        slots.begin(), slots.begin() + most, slots.end(), [&](uint32_t a, uint32_t b) {
          return std::invoke(value, functions_.at(a)) > std::invoke(value, functions_.at(b));
        });
    kept.insert(kept.end(), slots.begin(), slots.begin() + most);
  };
  keep_most(&FunctionSums::self_ns);
  keep_most(&FunctionSums::cpu_self_ns);
  keep_most(&FunctionSums::total_ns);
  keep_most(&FunctionSums::calls);
  keep_most(&FunctionSums::longest_ns);
  std::sort(kept.begin(), kept.end());
  kept.erase(std::unique(kept.begin(), kept.end()), kept.end());
  std::stable_sort(kept.begin(), kept.end(), [&](uint32_t a, uint32_t b) {
    return functions_.at(a).cpu_self_ns() > functions_.at(b).cpu_self_ns();
  });
  slots = std::move(kept);
}

void CallFollower::add_functions(api::CallBatch& batch) {
  std::vector<uint32_t> slots;
  for (const uint32_t slot : functions_.touched()) {
    if (decide(slot) == Decision::kWanted) slots.push_back(slot);
  }
  keep_busiest(slots);
  for (const uint32_t slot : slots) {
    const FunctionSums& sums = functions_.at(slot);
    api::FunctionActivity* shown = batch.add_functions();
    shown->set_function(shown_name(slot));
    shown->set_function_id(slots_.function_of(slot));
    shown->set_calls(sums.calls);
    shown->set_total_ns(sums.total_ns);
    shown->set_self_ns(sums.self_ns);
    shown->set_longest_ns(sums.longest_ns);
    if (session_.has_switches()) shown->set_cpu_self_ns(sums.cpu_self_ns());
  }
  functions_.clear();
}

void CallFollower::add_threads(api::CallBatch& batch) {
  std::vector<Thread*> busy;
  for (const auto& [n, thread] : threads_) {
    batch.set_events(batch.events() + thread->events());
    batch.set_lost_events(batch.lost_events() + thread->take_lost());
    if (thread->events() != 0) busy.push_back(thread.get());
  }
  std::stable_sort(busy.begin(), busy.end(),
                   [](const Thread* a, const Thread* b) { return a->events() > b->events(); });
  if (busy.size() > size_t{kMaxActivities}) busy.resize(size_t{kMaxActivities});
  for (const Thread* thread : busy) {
    api::ThreadActivity* shown = batch.add_threads();
    shown->set_thread_id(thread->files().thread_id);
    shown->set_name(valid_text(thread->files().name));
    shown->set_events(thread->events());
    shown->set_depth(static_cast<uint32_t>(thread->stack().size()));
    if (!thread->stack().empty()) shown->set_function(shown_name(thread->stack().back()));
  }
  for (auto& [n, thread] : threads_) thread->begin_message();
}

api::CallBatch CallFollower::take_batch() {
  api::CallBatch batch;
  batch.set_first_ns(first_ns_);
  batch.set_time_ns(newest_ns_);
  batch.set_has_switches(session_.has_switches());
  add_calls(batch);
  add_functions(batch);
  add_threads(batch);
  batch.set_skipped_calls(std::exchange(skipped_calls_, 0));
  batch.set_skipped_events(std::exchange(skipped_events_, 0));
  batch.set_unread_events(unread());
  boundary_ns_ = newest_ns_;
  return batch;
}

}  // namespace collect::ctl::follow

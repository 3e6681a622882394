// Which of the calls that are open on a thread are the outermost ones of their group, which is a
// function or a module: the time of a group is the time of those, so that a call within another of
// its group counts once. Behind a gap no one may know whether the calls around are still open: then
// a call counts by itself, and what it took is left out of an outer one that proves to have gone
// on. Used on one thread. CALLS.md "Gaps".
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace collect::calls {

class Nesting {
 public:
  bool is_open(uint32_t group) const { return group < newest_.size() && newest_[group] != 0; }
  // Position of the newest open call of this group, from 0 on; is_open(group).
  size_t newest(uint32_t group) const { return newest_[group] - 1; }

  // The calls below the position `certain_from` may have ended already.
  void begin(uint32_t group, size_t certain_from) {
    if (group >= newest_.size()) newest_.resize(group + 1);
    uint32_t& newest = newest_[group];
    calls_.push_back({0, group, newest, newest <= certain_from});
    newest = static_cast<uint32_t>(calls_.size());
  }

  struct Ended {
    bool is_outermost = false;
    uint64_t added_ns = 0;  // to the time of its group
  };
  // The call that began last ends, after `total_ns`. `in_gap`: at a gap, before what was called
  // behind that.
  Ended end(uint64_t total_ns, bool in_gap) {
    const Call call = calls_.back();
    calls_.pop_back();
    newest_[call.group] = call.outer;
    Ended ended{call.is_outermost, 0};
    if (call.is_outermost)
      ended.added_ns = total_ns - (in_gap ? 0 : std::min(total_ns, call.inner_ns));
    if (call.outer != 0) calls_[call.outer - 1].inner_ns += call.inner_ns + ended.added_ns;
    return ended;
  }

  // From here on the calls that are open are measured again.
  void restart() {
    for (Call& call : calls_) call.inner_ns = 0;
  }

 private:
  struct Call {
    uint64_t inner_ns = 0;  // of calls within it that were counted by themselves
    uint32_t group = 0;
    uint32_t outer = 0;  // the next open one of the group: position + 1; 0: there is none
    bool is_outermost = false;
  };
  std::vector<Call> calls_;
  std::vector<uint32_t> newest_;  // by group: position + 1; 0: none is open
};

}  // namespace collect::calls

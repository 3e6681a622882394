#include "daemon/patch/planner/windows.h"

namespace collect::patch {
namespace {

bool goes_to(const PartCode& code, uint32_t address) {
  for (const Instruction& one : code.instructions) {
    const bool jumps =
        one.flow == Flow::kJump || one.flow == Flow::kBranch || one.flow == Flow::kShortBranch;
    if (jumps && one.target == address) return true;
  }
  return false;
}

// Called again from inside, by a jump: the event of a call that is none. `first` is the instruction
// behind a landing pad, or the first one.
bool loops_to_entry(const CodeMap& map, const PartCode& code, uint32_t first) {
  const uint32_t begin = code.instructions[first].address;
  return goes_to(code, begin) || goes_to(code, code.instructions[0].address) ||
         (first != 0 && map.is_target(begin));
}

class WindowSearch {
 public:
  WindowSearch(const CodeMap& map, const PartCode& code, std::vector<Window>& windows)
      : map_(map), code_(code), all_(code.instructions), windows_(windows) {}

  Refusal run(bool has_entry) {
    if (has_entry) {
      const Refusal refusal = add_entry();
      if (refusal != Refusal::kNone) return refusal;
    }
    for (const Exit& exit : code_.exits) {
      const Refusal refusal = add_exit(exit.index);
      if (refusal != Refusal::kNone) return refusal;
    }
    return Refusal::kNone;
  }

 private:
  uint32_t bytes_of(uint32_t begin, uint32_t end) const {
    return begin == end ? 0 : all_[end - 1].end() - all_[begin].address;
  }
  // Whether the instruction can be in a window that begins before it, or continues behind it.
  bool can_join(uint32_t index) const {
    return all_[index].is_movable && all_[index].flow != Flow::kIndirectCall &&
           all_[index].flow != Flow::kCall;
  }

  // Nops behind what does not continue, in the function or behind its end.
  void take_padding(Window& window) const {
    uint32_t next = window.end;
    uint32_t end = all_[window.end - 1].end();
    const uint32_t begin = all_[window.begin].address;
    while (end - begin < kJumpBytes && next < all_.size() && all_[next].is_filling() &&
           !map_.is_target(all_[next].address)) {
      end = all_[next++].end();
    }
    if (next == all_.size()) {
      uint32_t left = code_.padding;
      while (end - begin < kJumpBytes && left != 0 && !map_.is_target(end)) {
        ++end;
        --left;
      }
    }
    window.bytes = end - begin;
    window.end = next;
  }

  Refusal add_entry() {
    Window window;
    window.has_entry = true;
    if (all_[0].is_landing) {
      if (all_.size() == 1) return Refusal::kNoRoomAtEntry;
      window.begin = 1;
    }
    if (loops_to_entry(map_, code_, window.begin)) return Refusal::kLoopToEntry;
    window.end = window.begin;
    while (window.bytes < kJumpBytes) {
      if (window.end == all_.size()) return Refusal::kNoRoomAtEntry;
      const Instruction& one = all_[window.end];
      const bool is_first = window.end == window.begin;
      if (!is_first && map_.is_target(one.address)) return Refusal::kNoRoomAtEntry;
      if (!one.is_movable) return Refusal::kNotMovable;
      if (one.flow == Flow::kIndirectCall || one.is_landing) return Refusal::kNotMovable;
      ++window.end;
      window.bytes = bytes_of(window.begin, window.end);
      if (one.flow == Flow::kCall && window.bytes < kJumpBytes) return Refusal::kNoRoomAtEntry;
      if (!one.goes_on() && window.bytes < kJumpBytes) {
        take_padding(window);
        if (window.bytes < kJumpBytes) return Refusal::kNoRoomAtEntry;
      }
    }
    windows_.push_back(window);
    return Refusal::kNone;
  }

  Refusal add_exit(uint32_t index) {
    if (!windows_.empty() && index < windows_.back().end) return Refusal::kNone;
    if (!all_[index].is_movable) return Refusal::kNotMovable;
    Window window{index, index + 1, all_[index].length, false};
    if (window.bytes < kJumpBytes && !all_[index].goes_on()) take_padding(window);
    while (window.bytes < kJumpBytes && grow_back(window)) {
    }
    while (window.bytes < kJumpBytes && grow_on(window)) {
    }
    if (window.bytes < kJumpBytes) return Refusal::kNoRoomAtExit;
    if (window.bytes > kMaxWindowBytes) return Refusal::kNoRoomAtExit;
    windows_.push_back(window);
    return Refusal::kNone;
  }

  bool grow_back(Window& window) {
    if (window.begin == 0 || map_.is_target(all_[window.begin].address)) return false;
    const Instruction& before = all_[window.begin - 1];
    if (!before.goes_on() || !can_join(window.begin - 1) || before.is_landing) return false;
    if (!windows_.empty() && windows_.back().end == window.begin) {
      // What the one before has, this one takes over.
      window.begin = windows_.back().begin;
      window.bytes += windows_.back().bytes;
      window.has_entry = windows_.back().has_entry;
      windows_.pop_back();
      return true;
    }
    --window.begin;
    window.bytes += before.length;
    return true;
  }

  // Behind a branch that leaves the function.
  bool grow_on(Window& window) const {
    const Instruction& last = all_[window.end - 1];
    if (!last.goes_on() || window.end == all_.size()) return false;
    const Instruction& next = all_[window.end];
    if (map_.is_target(next.address) || !can_join(window.end) || next.is_landing) return false;
    ++window.end;
    window.bytes += next.length;
    if (!next.goes_on() && window.bytes < kJumpBytes) take_padding(window);
    return true;
  }

  const CodeMap& map_;
  const PartCode& code_;
  const std::vector<Instruction>& all_;
  std::vector<Window>& windows_;
};

}  // namespace

Refusal find_windows(const CodeMap& map, const PartCode& code, bool has_entry,
                     std::vector<Window>& windows) {
  windows.clear();
  if (code.instructions.empty()) return Refusal::kUndecodable;
  return WindowSearch(map, code, windows).run(has_entry);
}

Refusal find_arm64_windows(const CodeMap& map, const PartCode& code, bool has_entry,
                           std::vector<Window>& windows) {
  windows.clear();
  const std::vector<Instruction>& all = code.instructions;
  if (all.empty()) return Refusal::kUndecodable;
  if (has_entry) {
    const uint32_t first = all[0].is_landing ? 1 : 0;
    if (first == all.size()) return Refusal::kNoRoomAtEntry;
    if (loops_to_entry(map, code, first)) return Refusal::kLoopToEntry;
    if (!all[first].is_movable || all[first].flow == Flow::kIndirectCall) {
      return Refusal::kNotMovable;
    }
    windows.push_back({first, first + 1, kArm64JumpBytes, true});
  }
  for (const Exit& exit : code.exits) {
    if (!windows.empty() && windows.back().begin == exit.index) continue;
    windows.push_back({exit.index, exit.index + 1, kArm64JumpBytes, false});
  }
  return Refusal::kNone;
}

}  // namespace collect::patch

#include "daemon/patch/planner/stub_writer.h"

#include <algorithm>
#include <cstring>

namespace collect::patch {
namespace {

constexpr uint8_t kNop = 0x90;
constexpr uint8_t kJump = 0xE9;
constexpr uint8_t kShortJump = 0xEB;
constexpr size_t kStubAlignment = 16;

class StubWriter {
 public:
  StubWriter(const PartCode& code, uint32_t function, Stubs& stubs)
      : code_(code), function_(function), stubs_(stubs), region_(stubs.region) {}

  void write(const Window& window, Bytes original) {
    align(window.has_entry ? kSledBodyBytes : 0);
    if (window.has_entry) body(add_sled(SledUse::kEnter, here() + kSledBodyBytes));
    const uint32_t stub = here();
    if (window.has_entry) append(kSledIdleHead);
    for (uint32_t i = window.begin; i < window.end; ++i) {
      const Instruction& one = code_.instructions[i];
      if (const Exit* exit = exit_at(i)) {
        leave(one, exit->use);
      } else if (one.flow != Flow::kPadding) {
        move(one);
      }
    }
    if (goes_on(window)) jump(code_.instructions[window.begin].address + window.bytes);
    for (const auto& [place, address] : returns_) {
      while (region_.size() % sizeof address != 0) byte(kNop);
      const auto distance = static_cast<int32_t>(here() - (place + 4));
      store_le(region_.data() + place, distance);
      stubs_.absolutes.push_back(here());
      append(uint64_t{address});
    }
    PlanSite site{};
    site.address = code_.instructions[window.begin].address;
    site.stub = stub;
    site.bytes = static_cast<uint8_t>(window.bytes);
    std::memcpy(site.original, original.data(), window.bytes);
    stubs_.sites.push_back(site);
  }

 private:
  uint32_t here() const { return static_cast<uint32_t>(region_.size()); }
  void byte(uint8_t value) { region_.push_back(value); }
  template <class T>
  void append(T value) {
    const size_t at = region_.size();
    region_.resize(at + sizeof value);
    store_le(region_.data() + at, value);
  }
  // What is so many bytes further on.
  void align(size_t before) {
    while ((region_.size() + before) % kStubAlignment != 0) byte(kNop);
  }
  const Exit* exit_at(uint32_t index) const {
    const auto found =
        std::lower_bound(code_.exits.begin(), code_.exits.end(), index,
                         [](const Exit& exit, uint32_t wanted) { return exit.index < wanted; });
    return found != code_.exits.end() && found->index == index ? &*found : nullptr;
  }

  // Whether the last thing that it does leads on to what is behind it. A call returns there by
  // itself.
  bool goes_on(const Window& window) const {
    for (uint32_t i = window.end; i-- > window.begin;) {
      const Instruction& one = code_.instructions[i];
      if (one.flow != Flow::kPadding) return one.goes_on() && one.flow != Flow::kCall;
    }
    return true;
  }

  // A distance to an address of the module, from the end of the instruction, `behind` bytes after
  // it; the agent subtracts the distance from the region to the module.
  void distance_to(uint32_t address, uint32_t behind) {
    stubs_.relatives.push_back(here());
    const auto from = static_cast<int64_t>(here()) + 4 + behind;
    append(static_cast<int32_t>(int64_t{address} - from));
  }

  void jump(uint32_t address) {
    byte(kJump);
    distance_to(address, 0);
  }

  // Heads are switched by one store, so they are aligned.
  PlanSled& add_sled(SledUse use, uint32_t head) {
    return stubs_.sleds.emplace_back(PlanSled{head, function_, static_cast<uint8_t>(use), 0, 0});
  }

  void body(PlanSled& sled) {
    const uint32_t begin = here();
    const uint32_t back = sled.sled + kSledHeadBytes;
    sled.body = static_cast<int8_t>(begin - back);
    byte(0x41);
    byte(0x52);  // push r10
    byte(0x41);
    byte(0xBA);  // mov r10d, function
    append(function_);
    byte(0xE8);  // call trampoline
    append(static_cast<int32_t>(sled.use * kTrampolineSpacing - (begin + 13)));
    byte(0x41);
    byte(0x5A);  // pop r10
    byte(kShortJump);
    byte(static_cast<uint8_t>(back - (begin + kSledBodyBytes)));
  }

  void copy(const Instruction& one) {
    const uint8_t* from = code_.bytes.data() + (one.address - code_.instructions[0].address);
    if (one.distance_at == 0) {
      region_.insert(region_.end(), from, from + one.length);
      return;
    }
    region_.insert(region_.end(), from, from + one.distance_at);
    distance_to(one.target, one.length - one.distance_at - 4u);
    region_.insert(region_.end(), from + one.distance_at + 4, from + one.length);
  }

  void move(const Instruction& one) {
    switch (one.flow) {
      case Flow::kJump:
        jump(one.target);
        break;
      case Flow::kBranch:
        byte(0x0F);
        byte(0x80 | one.condition);
        distance_to(one.target, 0);
        break;
      case Flow::kCall:
        // Returns to where it would have: unwinders and the callee see the program's own address.
        byte(0xFF);
        byte(0x35);  // push [rip + …]
        returns_.push_back({here(), one.end()});
        append(int32_t{0});
        jump(one.target);
        break;
      default:
        copy(one);
        break;
    }
  }

  void leave(const Instruction& one, SledUse use) {
    size_t skip = 0;
    if (one.flow == Flow::kBranch) {
      byte(0x70 | (one.condition ^ 1));  // not taken: over the rest
      skip = region_.size();
      byte(0);
    }
    if (region_.size() % kSledHeadBytes != 0) byte(kNop);
    PlanSled& sled = add_sled(use, here());
    append(kSledIdleHead);
    if (one.flow != Flow::kBranch) {
      move(one);
      body(sled);
      return;
    }
    jump(one.target);
    body(sled);
    region_[skip] = static_cast<uint8_t>(region_.size() - (skip + 1));
  }

  struct Return {
    uint32_t place;  // of the distance to the word that has it
    uint32_t address;
  };

  const PartCode& code_;
  const uint32_t function_;
  Stubs& stubs_;
  std::vector<uint8_t>& region_;
  std::vector<Return> returns_;
};

}  // namespace

void write_stub(const PartCode& code, const Window& window, Bytes original, uint32_t function,
                Stubs& stubs) {
  StubWriter(code, function, stubs).write(window, original);
}

}  // namespace collect::patch

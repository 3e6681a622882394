#include "daemon/patch/planner/arm64_stub_writer.h"

#include <algorithm>
#include <cstring>

#include "daemon/patch/planner/arm64_instruction.h"

namespace collect::patch {
namespace {

constexpr uint32_t kScratch = 16;              // with x17, kept on the stack
constexpr uint32_t kPushScratch = 0xA9BF47F0;  // stp x16, x17, [sp, #-16]!
constexpr uint32_t kPopScratch = 0xA8C147F0;   // ldp x16, x17, [sp], #16
constexpr uint32_t kOverOne = 8;               // bytes to the word behind the next

class Arm64StubWriter {
 public:
  Arm64StubWriter(const PartCode& code, uint32_t function, Stubs& stubs)
      : code_(code), function_(function), stubs_(stubs), region_(stubs.region) {}

  void write(const Window& window) {
    align(8);
    const Instruction& one = code_.instructions[window.begin];
    const uint8_t* const original =
        code_.bytes.data() + (one.address - code_.instructions[0].address);
    word_ = load_le<uint32_t>(original);
    const uint32_t stub = here();
    if (window.has_entry) sled(SledUse::kEnter);
    move(one, exit_at(window.begin));
    write_literals();
    PlanSite site{};
    site.address = one.address;
    site.stub = stub;
    site.bytes = kArm64JumpBytes;
    std::memcpy(site.original, original, kArm64JumpBytes);
    stubs_.sites.push_back(site);
  }

 private:
  uint32_t here() const { return static_cast<uint32_t>(region_.size()); }
  void word(uint32_t value) {
    const size_t at = region_.size();
    region_.resize(at + sizeof value);
    store_le(region_.data() + at, value);
  }
  void align(size_t to) {
    while (region_.size() % to != 0) word(kArm64Nop);
  }
  const Exit* exit_at(uint32_t index) const {
    const auto found = std::find_if(code_.exits.begin(), code_.exits.end(),
                                    [index](const Exit& exit) { return exit.index == index; });
    return found != code_.exits.end() ? &*found : nullptr;
  }

  void sled(SledUse use) {
    const uint32_t begin = here();
    word(kArm64SledIdleHead);
    word(kArm64SledPush);
    word(0x52800011 | (function_ & 0xFFFF) << 5);
    word(0x72A00011 | (function_ >> 16) << 5);
    const uint32_t trampoline = static_cast<uint32_t>(use) * kTrampolineSpacing;
    word(0x94000000 | ((trampoline - here()) / 4 & ~kArm64BranchMask));
    word(kArm64SledPop);
    stubs_.sleds.push_back({begin, function_, static_cast<uint8_t>(use), 0, 0});
  }

  // The agent corrects it by the distance from the region to the module.
  void jump(uint32_t address) {
    stubs_.relatives.push_back(here());
    word(kArm64Branch | ((address - here()) / 4 & ~kArm64BranchMask));
  }

  // Into a general register, the address of something in the module: a literal behind the code.
  void load_address(uint32_t reg, uint32_t address) {
    literals_.push_back({here(), address});
    word(0x58000000 | reg);
  }
  void write_literals() {
    if (literals_.empty()) return;
    align(8);
    for (const auto& [place, address] : literals_) {
      const uint32_t away = (here() - place) / kWordBytes;
      store_le(region_.data() + place, load_le<uint32_t>(region_.data() + place) | away << 5);
      stubs_.absolutes.push_back(here());
      word(address);
      word(0);
    }
  }

  void move(const Instruction& one, const Exit* exit) {
    if (one.flow == Flow::kBranch) return branch(one, exit);
    if (exit != nullptr) sled(exit->use);
    const uint32_t reg = word_ & 31;
    switch (pc_form(word_)) {
      case PcForm::kBranch:
        return jump(one.target);
      case PcForm::kCall:
        // Returns to where it would have: unwinders and the callee see the program's own address.
        load_address(kArm64Link, one.end());
        return jump(one.target);
      case PcForm::kAddress:
      case PcForm::kPage:
        if (reg != 31) load_address(reg, one.target);
        break;
      case PcForm::kLoad:
        load(one.target);
        break;
      default:
        word(word_);
        break;
    }
    if (one.goes_on()) jump(one.end());
  }

  // The condition stays; only where it leads to is another place.
  void branch(const Instruction& one, const Exit* exit) {
    const uint32_t field = pc_form(word_) == PcForm::kTestBit ? 0x0007FFE0 : 0x00FFFFE0;
    word((word_ & ~field) | (kOverOne / kWordBytes) << 5);
    jump(one.end());
    if (exit != nullptr) sled(exit->use);
    jump(one.target);
  }

  void load(uint32_t address) {
    const uint32_t reg = word_ & 31;
    const uint32_t kind = word_ >> 30;
    if ((word_ & 1u << 26) != 0) {
      constexpr uint32_t kLoads[] = {0xBD400000, 0xFD400000, 0x3DC00000};  // ldr s, d, q
      word(kPushScratch);
      load_address(kScratch, address);
      word(kLoads[kind] | kScratch << 5 | reg);
      word(kPopScratch);
      return;
    }
    if (kind == 3) return;                                               // prfm: a hint
    constexpr uint32_t kLoads[] = {0xB9400000, 0xF9400000, 0xB9800000};  // ldr w, ldr x, ldrsw
    load_address(reg, address);
    word(kLoads[kind] | reg << 5 | reg);
  }

  struct Literal {
    uint32_t place;  // of the ldr
    uint32_t address;
  };

  const PartCode& code_;
  const uint32_t function_;
  Stubs& stubs_;
  std::vector<uint8_t>& region_;
  std::vector<Literal> literals_;
  uint32_t word_ = 0;
};

}  // namespace

void write_arm64_stub(const PartCode& code, const Window& window, uint32_t function, Stubs& stubs) {
  Arm64StubWriter(code, function, stubs).write(window);
}

}  // namespace collect::patch

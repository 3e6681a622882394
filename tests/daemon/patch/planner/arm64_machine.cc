#include "tests/daemon/patch/planner/arm64_machine.h"

#include <algorithm>
#include <cstring>

namespace collect::patch {
namespace {

constexpr uint64_t kPageMask = 4095;
constexpr uint64_t kRegion = 0x10'0000'0000 - 0x400'0000;
constexpr uint64_t kHandlerBytes = 128;
constexpr uint64_t kFlagBits = 0xF0000000;

constexpr uint64_t round_up(uint64_t value) {
  return (value + kPageMask) & ~kPageMask;
}

int general_register(size_t index) {
  if (index == 29) return UC_ARM64_REG_X29;
  if (index == 30) return UC_ARM64_REG_X30;
  return UC_ARM64_REG_X0 + static_cast<int>(index);
}

// A handler that keeps nothing that a call may change but vector registers, which the agent's keep.
std::vector<uint32_t> handler_code() {
  std::vector<uint32_t> code;
  for (uint32_t reg = 0; reg <= 18; ++reg) code.push_back(0xD2800000 | (0x1111 + reg) << 5 | reg);
  code.push_back(0xEB1F03FF);  // cmp xzr, xzr
  code.push_back(0xD65F03C0);  // ret
  return code;
}

}  // namespace

Arm64Registers random_arm64_registers(std::mt19937_64& random) {
  Arm64Registers registers;
  for (uint64_t& value : registers.general) {
    const uint64_t kind = random() % 10;
    if (kind == 0) {
      value = random();
    } else if (kind < 4) {
      value = random() % 4;
    } else {
      value = Arm64Machine::kData + Arm64Machine::kDataBytes / 2 + random() % 0x100 * 16;
    }
  }
  registers.general[30] = 0x50'0000'0000 + random() % 0x10000 * 4;
  registers.stack = Arm64Machine::kStack + Arm64Machine::kStackBytes / 2 + random() % 64 * 16;
  registers.flags = random() & kFlagBits;
  for (auto& vector : registers.vectors) vector = {random(), random()};
  return registers;
}

Arm64Machine::Arm64Machine(const ElfImage& image, const PlanView& plan, Bytes trampolines,
                           bool patched, bool traced)
    : patched_(patched) {
  static_assert(kRegion == kBase - kAway);
  uc_open(UC_ARCH_ARM64, UC_MODE_ARM, &engine_);
  uc_ctl_set_cpu_model(engine_, UC_CPU_ARM64_MAX);
  const uint64_t with_vectors = 3u << 20;
  uc_reg_write(engine_, UC_ARM64_REG_CPACR_EL1, &with_vectors);
  map_module(image);
  uc_mem_map(engine_, kStack, kStackBytes, UC_PROT_ALL);
  uc_mem_map(engine_, kData, kDataBytes, UC_PROT_ALL);
  std::mt19937_64 random(1);
  for (uint64_t start : {kStack, kData}) {
    for (uint64_t at = 0; at < kDataBytes; at += 8) {
      // Numbers, and pointers to the same.
      const uint64_t word = random() % 2 == 0 ? random() % 1000 : kData + random() % kDataBytes / 2;
      uc_mem_write(engine_, start + at, &word, sizeof word);
    }
  }
  if (patched) map_region(plan, trampolines, traced);
  uc_hook hook;
  const auto code = reinterpret_cast<void*>(on_code);
  const auto write = reinterpret_cast<void*>(on_write);
  uc_hook_add(engine_, &hook, UC_HOOK_CODE, code, this, 1, 0);
  uc_hook_add(engine_, &hook, UC_HOOK_MEM_WRITE, write, this, 1, 0);
}

Arm64Machine::~Arm64Machine() {
  uc_close(engine_);
}

void Arm64Machine::map_module(const ElfImage& image) {
  uint64_t end = 0;
  for (const Segment& segment : image.segments()) {
    end = std::max(end, round_up(segment.address + segment.memory_bytes));
  }
  uc_mem_map(engine_, kBase, end, UC_PROT_ALL);
  for (const Segment& segment : image.segments()) {
    uc_mem_write(engine_, kBase + segment.address, segment.bytes.data(), segment.bytes.size());
  }
}

// What the agent does (agent/dynamic/plans.cc), by the words of plan_layout.h.
void Arm64Machine::map_region(const PlanView& plan, Bytes trampolines, bool traced) {
  std::vector<uint8_t> code(plan.region().begin(), plan.region().end());
  std::copy(trampolines.begin(), trampolines.end(), code.begin());
  const uint64_t words[] = {kBase, kHandlers, kHandlers + kHandlerBytes,
                            kHandlers + 2 * kHandlerBytes};
  std::memcpy(code.data() + kTrampolineWords, words, sizeof words);
  const auto branch = [](uint64_t from, uint64_t to) {
    return 0x14000000u | (static_cast<uint32_t>((to - from) / 4) & 0x03FFFFFF);
  };
  for (uint32_t i = 0; i < plan.header().relative_count; ++i) {
    uint8_t* const place = code.data() + plan.relative(i);
    const uint32_t words_away = load_le<uint32_t>(place) & 0x03FFFFFF;
    const uint64_t target = (plan.relative(i) + uint64_t{words_away} * 4) & 0x0FFFFFFF;
    store_le(place, branch(kRegion + plan.relative(i), kBase + target));
  }
  for (uint32_t i = 0; i < plan.header().absolute_count; ++i) {
    uint8_t* const place = code.data() + plan.absolute(i);
    store_le(place, load_le<uint64_t>(place) + kBase);
  }
  for (uint32_t i = 0; traced && i < plan.header().sled_count; ++i) {
    store_le(code.data() + plan.sled(i).sled, uint32_t{0xD503201F});
  }
  region_bytes_ = round_up(code.size());
  uc_mem_map(engine_, kRegion, region_bytes_, UC_PROT_READ | UC_PROT_EXEC);
  uc_mem_write(engine_, kRegion, code.data(), code.size());
  uc_mem_map(engine_, kHandlers, kPageMask + 1, UC_PROT_READ | UC_PROT_EXEC);
  const std::vector<uint32_t> handler = handler_code();
  for (uint64_t i = 0; i < 3; ++i) {
    uc_mem_write(engine_, kHandlers + i * kHandlerBytes, handler.data(), handler.size() * 4);
  }
  for (uint32_t i = 0; i < plan.header().site_count; ++i) {
    const PlanSite site = plan.site(i);
    const uint32_t jump = branch(kBase + site.address, kRegion + site.stub);
    uc_mem_write(engine_, kBase + site.address, &jump, sizeof jump);
  }
}

void Arm64Machine::on_code(uc_engine*, uint64_t address, uint32_t, void* self) {
  static_cast<Arm64Machine*>(self)->step(address);
}

void Arm64Machine::step(uint64_t address) {
  const bool is_first = steps_ == 0 && address == kBase + site_.address;
  const bool is_in_stub = address >= kRegion && address < kRegion + region_bytes_;
  const bool is_in_handler = address >= kHandlers && address < kHandlers + 3 * kHandlerBytes;
  if (!(is_first || (patched_ && (is_in_stub || is_in_handler))) || ++steps_ > kMaxSteps) {
    outcome_.left_to = address;
    uc_emu_stop(engine_);
    return;
  }
  if (is_in_handler && (address - kHandlers) % kHandlerBytes == 0) note_event(address);
}

void Arm64Machine::note_event(uint64_t address) {
  const Arm64Registers now = get();
  Arm64Event event{};
  event.use = static_cast<SledUse>((address - kHandlers) / kHandlerBytes);
  event.function = static_cast<uint32_t>(now.general[0] - kBase);
  uc_mem_read(engine_, now.general[1], event.block.data(), sizeof event.block);
  outcome_.stack_was_aligned = outcome_.stack_was_aligned && now.stack % 16 == 0;
  outcome_.events.push_back(event);
}

void Arm64Machine::on_write(uc_engine* engine, uc_mem_type, uint64_t address, int size, int64_t,
                            void* self) {
  auto& machine = *static_cast<Arm64Machine*>(self);
  for (int i = 0; i < size; ++i) {
    const uint64_t at = address + static_cast<uint64_t>(i);
    uint8_t value = 0;
    uc_mem_read(engine, at, &value, 1);
    machine.old_.push_back({at, value});
  }
}

void Arm64Machine::put(const Arm64Registers& registers) {
  for (size_t i = 0; i < registers.general.size(); ++i) {
    uc_reg_write(engine_, general_register(i), &registers.general[i]);
  }
  uc_reg_write(engine_, UC_ARM64_REG_SP, &registers.stack);
  uc_reg_write(engine_, UC_ARM64_REG_NZCV, &registers.flags);
  for (size_t i = 0; i < registers.vectors.size(); ++i) {
    uc_reg_write(engine_, UC_ARM64_REG_Q0 + static_cast<int>(i), registers.vectors[i].data());
  }
}

Arm64Registers Arm64Machine::get() {
  Arm64Registers registers;
  for (size_t i = 0; i < registers.general.size(); ++i) {
    uc_reg_read(engine_, general_register(i), &registers.general[i]);
  }
  uc_reg_read(engine_, UC_ARM64_REG_SP, &registers.stack);
  uc_reg_read(engine_, UC_ARM64_REG_NZCV, &registers.flags);
  registers.flags &= kFlagBits;
  for (size_t i = 0; i < registers.vectors.size(); ++i) {
    uc_reg_read(engine_, UC_ARM64_REG_Q0 + static_cast<int>(i), registers.vectors[i].data());
  }
  return registers;
}

// Notes what was written, and takes it back.
void Arm64Machine::finish(Arm64Outcome& outcome) {
  for (const OldByte& old : old_) {
    uint8_t value = 0;
    uc_mem_read(engine_, old.address, &value, 1);
    outcome.written[old.address] = value;
  }
  for (auto old = old_.rbegin(); old != old_.rend(); ++old) {
    uc_mem_write(engine_, old->address, &old->value, 1);
  }
  old_.clear();
}

Arm64Outcome Arm64Machine::run(const PlanSite& site, const Arm64Registers& before) {
  site_ = site;
  outcome_ = Arm64Outcome{};
  steps_ = 0;
  put(before);
  outcome_.error = uc_emu_start(engine_, kBase + site.address, 0, 0, 0);
  // A return, or a jump through a register, to where no memory is: that is where it leads.
  if (outcome_.error == UC_ERR_FETCH_UNMAPPED) {
    uc_reg_read(engine_, UC_ARM64_REG_PC, &outcome_.left_to);
    outcome_.error = 0;
  }
  outcome_.registers = get();
  finish(outcome_);
  return outcome_;
}

}  // namespace collect::patch

#include "tests/daemon/patch/planner/patched_machine.h"

#include <algorithm>
#include <cstring>

extern "C" {
// agent/shims/planned_trampolines.S
extern const uint8_t collect_planned_begin[];
extern const uint8_t collect_planned_end[];
}

namespace collect::patch {
namespace {

constexpr uint64_t kPage = 4096;

constexpr int kGeneral[] = {UC_X86_REG_RAX,   UC_X86_REG_RBX, UC_X86_REG_RCX, UC_X86_REG_RDX,
                            UC_X86_REG_RSI,   UC_X86_REG_RDI, UC_X86_REG_RBP, UC_X86_REG_R8,
                            UC_X86_REG_R9,    UC_X86_REG_R10, UC_X86_REG_R11, UC_X86_REG_R12,
                            UC_X86_REG_R13,   UC_X86_REG_R14, UC_X86_REG_R15, UC_X86_REG_RSP,
                            UC_X86_REG_EFLAGS};
constexpr uint64_t kFlags = 0x8D5 | 0x400;  // of arithmetic, and the direction
constexpr size_t kVectors = 16;
constexpr size_t kVectorBytes = 16;

// A handler that keeps nothing that a call may change: xor of each such register with itself.
constexpr uint8_t kHandler[] = {0x31, 0xC0, 0x31, 0xC9, 0x31, 0xD2, 0x31, 0xF6,
                                0x31, 0xFF, 0x45, 0x31, 0xC0, 0x45, 0x31, 0xC9,
                                0x45, 0x31, 0xD2, 0x45, 0x31, 0xDB, 0xC3};
constexpr uint64_t kHandlerSpacing = 64;

uint64_t page_of(uint64_t address) {
  return address & ~(kPage - 1);
}

}  // namespace

Registers random_registers(std::mt19937_64& random) {
  Registers registers;
  for (size_t i = 0; i < std::size(kGeneral); ++i) {
    const uint64_t kind = random() % 10;
    if (kind == 0) {
      registers.general.push_back(random());
    } else if (kind < 4) {
      registers.general.push_back(random() % 256);
    } else {
      registers.general.push_back(PatchedMachine::kData + PatchedMachine::kDataBytes / 2 +
                                  random() % 0x1000);
    }
  }
  registers.general[15] =
      PatchedMachine::kStack + PatchedMachine::kStackBytes / 2 + random() % 64 * 8;
  registers.general[16] = (random() & (kFlags & ~uint64_t{0x400})) | 2;
  for (size_t i = 0; i < kVectors * kVectorBytes; ++i) {
    registers.vectors.push_back(static_cast<uint8_t>(random()));
  }
  return registers;
}

PatchedMachine::PatchedMachine(const ElfImage& image, const PlanView& plan, bool patched,
                               bool traced)
    : base_(image.is_position_independent() ? kBase : 0), patched_(patched) {
  uc_open(UC_ARCH_X86, UC_MODE_64, &engine_);
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
  if (patched) {
    map_region(plan, traced);
    write_sites(plan);
  }
  uc_hook hook;
  const auto code = reinterpret_cast<void*>(on_code);
  const auto write = reinterpret_cast<void*>(on_write);
  uc_hook_add(engine_, &hook, UC_HOOK_CODE, code, this, 1, 0);
  uc_hook_add(engine_, &hook, UC_HOOK_MEM_WRITE, write, this, 1, 0);
}

PatchedMachine::~PatchedMachine() {
  uc_close(engine_);
}

void PatchedMachine::map_module(const ElfImage& image) {
  uint64_t end = 0;
  uint64_t begin = UINT64_MAX;
  for (const Segment& segment : image.segments()) {
    begin = std::min(begin, page_of(segment.address));
    end = std::max(end, page_of(segment.address + segment.memory_bytes + kPage - 1));
  }
  uc_mem_map(engine_, base_ + begin, end - begin, UC_PROT_ALL);
  for (const Segment& segment : image.segments()) {
    uc_mem_write(engine_, base_ + segment.address, segment.bytes.data(), segment.bytes.size());
  }
}

// What the agent does (agent/dynamic/plans.cc), by the words of plan_layout.h.
void PatchedMachine::map_region(const PlanView& plan, bool traced) {
  std::vector<uint8_t> code(plan.region().begin(), plan.region().end());
  region_ = base_ == 0 ? 0x4000'0000 : base_ - 0x2000'0000;
  region_bytes_ = page_of(code.size() + kPage - 1);
  std::memcpy(code.data(), collect_planned_begin,
              static_cast<size_t>(collect_planned_end - collect_planned_begin));
  const uint64_t words[] = {base_, kHandlers, kHandlers + kHandlerSpacing,
                            kHandlers + 2 * kHandlerSpacing};
  std::memcpy(code.data() + kTrampolineWords, words, sizeof words);
  for (uint32_t i = 0; i < plan.header().relative_count; ++i) {
    auto distance = load_le<uint32_t>(code.data() + plan.relative(i));
    distance -= static_cast<uint32_t>(region_ - base_);
    store_le(code.data() + plan.relative(i), distance);
  }
  for (uint32_t i = 0; i < plan.header().absolute_count; ++i) {
    store_le(code.data() + plan.absolute(i),
             load_le<uint64_t>(code.data() + plan.absolute(i)) + base_);
  }
  for (uint32_t i = 0; traced && i < plan.header().sled_count; ++i) {
    const PlanSled sled = plan.sled(i);
    store_le(code.data() + sled.sled, sled_traced_head(sled.body));
  }
  uc_mem_map(engine_, region_, region_bytes_, UC_PROT_READ | UC_PROT_EXEC);
  uc_mem_write(engine_, region_, code.data(), code.size());
  uc_mem_map(engine_, kHandlers, kPage, UC_PROT_READ | UC_PROT_EXEC);
  for (uint64_t i = 0; i < 3; ++i) {
    uc_mem_write(engine_, kHandlers + i * kHandlerSpacing, kHandler, sizeof kHandler);
  }
}

void PatchedMachine::write_sites(const PlanView& plan) {
  for (uint32_t i = 0; i < plan.header().site_count; ++i) {
    const PlanSite site = plan.site(i);
    const uint64_t at = base_ + site.address;
    const auto distance = static_cast<uint32_t>(region_ + site.stub - (at + kJumpBytes));
    const uint8_t jump = 0xE9;
    uc_mem_write(engine_, at, &jump, 1);
    uc_mem_write(engine_, at + 1, &distance, sizeof distance);
  }
}

void PatchedMachine::on_code(uc_engine*, uint64_t address, uint32_t, void* self) {
  static_cast<PatchedMachine*>(self)->step(address);
}

void PatchedMachine::step(uint64_t address) {
  const uint64_t begin = base_ + site_.address;
  const bool is_in_window = address >= begin && address < begin + site_.bytes;
  const bool is_in_stub = address >= region_ && address < region_ + region_bytes_;
  const bool is_in_handler = address >= kHandlers && address < kHandlers + kPage;
  const bool stays = patched_ ? is_in_stub || is_in_handler || (steps_ == 0 && address == begin)
                              : is_in_window && (steps_ == 0 || address != begin);
  if (!stays || ++steps_ > kMaxSteps) {
    outcome_.left_to = address;
    outcome_.returned = last_was_ret_;
    uc_emu_stop(engine_);
    return;
  }
  uint8_t first[2] = {};
  uc_mem_read(engine_, address, first, sizeof first);
  last_was_ret_ = first[0] == 0xC3 || first[0] == 0xC2 || (first[0] == 0xF3 && first[1] == 0xC3);
  if (is_in_handler && (address - kHandlers) % kHandlerSpacing == 0) {
    uint64_t function = 0;
    uint64_t stack = 0;
    uc_reg_read(engine_, UC_X86_REG_RDI, &function);
    uc_reg_read(engine_, UC_X86_REG_RSP, &stack);
    outcome_.stack_was_aligned = outcome_.stack_was_aligned && stack % 16 == 8;
    outcome_.events.push_back({static_cast<SledUse>((address - kHandlers) / kHandlerSpacing),
                               static_cast<uint32_t>(function - base_)});
  }
}

void PatchedMachine::on_write(uc_engine* engine, uc_mem_type, uint64_t address, int size, int64_t,
                              void* self) {
  auto& machine = *static_cast<PatchedMachine*>(self);
  for (int i = 0; i < size; ++i) {
    const uint64_t at = address + static_cast<uint64_t>(i);
    uint8_t value = 0;
    uc_mem_read(engine, at, &value, 1);
    machine.old_.push_back({at, value});
  }
}

void PatchedMachine::put(const Registers& registers) {
  for (size_t i = 0; i < std::size(kGeneral); ++i) {
    uc_reg_write(engine_, kGeneral[i], &registers.general[i]);
  }
  for (size_t i = 0; i < kVectors; ++i) {
    uc_reg_write(engine_, UC_X86_REG_XMM0 + static_cast<int>(i),
                 &registers.vectors[i * kVectorBytes]);
  }
}

Registers PatchedMachine::get() {
  Registers registers;
  registers.general.resize(std::size(kGeneral));
  registers.vectors.resize(kVectors * kVectorBytes);
  for (size_t i = 0; i < std::size(kGeneral); ++i) {
    uc_reg_read(engine_, kGeneral[i], &registers.general[i]);
  }
  registers.general.back() &= kFlags;
  for (size_t i = 0; i < kVectors; ++i) {
    uc_reg_read(engine_, UC_X86_REG_XMM0 + static_cast<int>(i),
                &registers.vectors[i * kVectorBytes]);
  }
  return registers;
}

void PatchedMachine::collect_written(Outcome& outcome) {
  for (const OldByte& old : old_) {
    uint8_t value = 0;
    uc_mem_read(engine_, old.address, &value, 1);
    outcome.written[old.address] = value;
  }
}

void PatchedMachine::undo() {
  for (auto old = old_.rbegin(); old != old_.rend(); ++old) {
    uc_mem_write(engine_, old->address, &old->value, 1);
  }
  old_.clear();
}

Outcome PatchedMachine::run(const PlanSite& site, const Registers& before) {
  site_ = site;
  outcome_ = Outcome{};
  steps_ = 0;
  last_was_ret_ = false;
  put(before);
  outcome_.error = uc_emu_start(engine_, base_ + site.address, 0, 0, 0);
  outcome_.registers = get();
  collect_written(outcome_);
  undo();
  return outcome_;
}

}  // namespace collect::patch

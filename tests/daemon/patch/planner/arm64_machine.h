// A module for arm64 in an emulator (Unicorn), as its file has it and as a plan changes it: as
// patched_machine.h, where a window is one instruction.
#pragma once

#include <unicorn/unicorn.h>

#include <array>
#include <cstdint>
#include <map>
#include <random>
#include <vector>

#include "daemon/patch/planner/elf_image.h"
#include "formats/patch/plan_view.h"

namespace collect::patch {

struct Arm64Registers {
  std::array<uint64_t, 31> general{};
  uint64_t stack = 0;
  uint64_t flags = 0;
  std::array<std::array<uint64_t, 2>, 32> vectors{};

  bool operator==(const Arm64Registers&) const = default;
};

struct Arm64Event {
  SledUse use;
  uint32_t function;
  std::array<uint64_t, 22> block;  // what the handler was given, up to the sled's two words
};

struct Arm64Outcome {
  uint64_t left_to = 0;  // the next instruction that is not the window's
  int error = 0;         // of the emulator: the instruction faults
  Arm64Registers registers;
  std::map<uint64_t, uint8_t> written;
  std::vector<Arm64Event> events;
  bool stack_was_aligned = true;  // where the handlers were called
};

class Arm64Machine {
 public:
  static constexpr uint64_t kStack = 0x30'0000'0000;
  static constexpr uint64_t kStackBytes = 0x10000;
  static constexpr uint64_t kData = 0x40'0000'0000;
  static constexpr uint64_t kDataBytes = 0x10000;

  // `trampolines`: the agent's, as its object has them.
  Arm64Machine(const ElfImage& image, const PlanView& plan, Bytes trampolines, bool patched,
               bool traced);
  ~Arm64Machine();
  Arm64Machine(const Arm64Machine&) = delete;
  Arm64Machine& operator=(const Arm64Machine&) = delete;

  Arm64Outcome run(const PlanSite& site, const Arm64Registers& before);

 private:
  static constexpr uint64_t kBase = 0x10'0000'0000;
  static constexpr uint64_t kAway = 0x400'0000;  // of the region, below
  static constexpr uint64_t kHandlers = 0x20'0000'0000;
  static constexpr int kMaxSteps = 400;

  static void on_code(uc_engine*, uint64_t address, uint32_t size, void* self);
  static void on_write(uc_engine*, uc_mem_type, uint64_t address, int size, int64_t, void* self);
  void step(uint64_t address);
  void note_event(uint64_t address);
  void map_module(const ElfImage& image);
  void map_region(const PlanView& plan, Bytes trampolines, bool traced);
  void put(const Arm64Registers& registers);
  Arm64Registers get();
  void finish(Arm64Outcome& outcome);

  struct OldByte {
    uint64_t address;
    uint8_t value;
  };

  uc_engine* engine_ = nullptr;
  bool patched_;
  uint64_t region_bytes_ = 0;
  // Of one run.
  PlanSite site_{};
  Arm64Outcome outcome_;
  int steps_ = 0;
  std::vector<OldByte> old_;
};

Arm64Registers random_arm64_registers(std::mt19937_64& random);

}  // namespace collect::patch

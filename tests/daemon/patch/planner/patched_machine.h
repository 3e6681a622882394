// A module in an emulator (Unicorn), as its file has it and as a plan changes it: the same window
// is run in both from the same registers, and everything that it leaves behind is compared.
#pragma once

#include <unicorn/unicorn.h>

#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "daemon/patch/planner/elf_image.h"
#include "formats/patch/plan_view.h"

namespace collect::patch {

struct Registers {
  std::vector<uint64_t> general;  // rax … r15, rsp among them, flags last
  std::vector<uint8_t> vectors;   // xmm0 to xmm15

  bool operator==(const Registers&) const = default;
};

struct SledEvent {
  SledUse use;
  uint32_t function;

  bool operator==(const SledEvent&) const = default;
};

struct Outcome {
  uint64_t left_to = 0;   // the first instruction that is not the window's
  int error = 0;          // of the emulator: the window's code faults
  bool returned = false;  // by a ret of the window
  Registers registers;
  std::map<uint64_t, uint8_t> written;
  std::vector<SledEvent> events;
  bool stack_was_aligned = true;  // where the handlers were called
};

class PatchedMachine {
 public:
  static constexpr uint64_t kBase = 0x5500'0000'0000;
  static constexpr uint64_t kStack = 0x7F00'0000'0000;
  static constexpr uint64_t kStackBytes = 0x10000;
  static constexpr uint64_t kData = 0x6000'0000'0000;
  static constexpr uint64_t kDataBytes = 0x10000;

  // `base`: 0 for a program that is not position-independent.
  PatchedMachine(const ElfImage& image, const PlanView& plan, bool patched, bool traced);
  ~PatchedMachine();
  PatchedMachine(const PatchedMachine&) = delete;
  PatchedMachine& operator=(const PatchedMachine&) = delete;

  Outcome run(const PlanSite& site, const Registers& before);

 private:
  static constexpr uint64_t kHandlers = 0x6100'0000'0000;
  static constexpr int kMaxSteps = 400;

  static void on_code(uc_engine*, uint64_t address, uint32_t size, void* self);
  static void on_write(uc_engine*, uc_mem_type, uint64_t address, int size, int64_t, void* self);
  void step(uint64_t address);
  void map_module(const ElfImage& image);
  void map_region(const PlanView& plan, bool traced);
  void write_sites(const PlanView& plan);
  void put(const Registers& registers);
  Registers get();
  void collect_written(Outcome& outcome);
  void undo();

  struct OldByte {
    uint64_t address;
    uint8_t value;
  };

  uc_engine* engine_ = nullptr;
  uint64_t base_;
  uint64_t region_ = 0;
  uint64_t region_bytes_ = 0;
  bool patched_;
  // Of one run.
  PlanSite site_{};
  Outcome outcome_;
  int steps_ = 0;
  bool last_was_ret_ = false;
  std::vector<OldByte> old_;
};

Registers random_registers(std::mt19937_64& random);

}  // namespace collect::patch

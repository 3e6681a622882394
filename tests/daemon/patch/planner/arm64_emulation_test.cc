// Windows of arm64, patched against original, in an emulator: each form that reads the program
// counter, and every window of real libraries. Registers, flags, vector registers, memory and where
// it continues are the same for any handler.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <optional>

#include "daemon/patch/planner/arm64_instruction.h"
#include "daemon/patch/planner/planner.h"
#include "tests/daemon/patch/planner/arm64_file.h"
#include "tests/daemon/patch/planner/arm64_machine.h"

namespace collect::patch {
namespace {

struct Arm64Tally {
  uint64_t runs = 0;
  uint64_t faults = 0;
  uint64_t entries = 0;
  uint64_t exits = 0;
  std::map<PcForm, uint64_t> forms;
};

class Arm64Emulation : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (std::string(ARM64_FUNCTIONS).empty()) {
      GTEST_SKIP() << "skipped: there is no aarch64-linux-gnu-gcc";
    }
    if (!std::filesystem::exists(GetParam())) GTEST_SKIP() << "skipped: no " << GetParam();
    file_ = arm64_file(GetParam());
    trampolines_ = arm64_file(ARM64_TRAMPOLINES);
    ASSERT_EQ(trampolines_.size(), kTrampolineWords + 4 * sizeof(uint64_t));
    auto plan = make_plan(file_);
    ASSERT_TRUE(plan.ok()) << plan.error().message;
    plan_bytes_ = std::move(*plan);
    ASSERT_EQ(plan_.parse(plan_bytes_), nullptr);
    auto image = ElfImage::parse(file_);
    ASSERT_TRUE(image.ok());
    image_.emplace(std::move(*image));
  }

  // What the instruction wrote is there; and nothing else was written but what is below the stack
  // pointer, before or after.
  static void compare_memory(const Arm64Registers& before, const Arm64Outcome& original,
                             const Arm64Outcome& patched) {
    constexpr uint64_t kPushed = 512;
    for (const auto& [address, value] : original.written) {
      const auto found = patched.written.find(address);
      ASSERT_NE(found, patched.written.end()) << std::hex << address;
      EXPECT_EQ(found->second, value) << std::hex << address;
    }
    const auto is_below = [](uint64_t address, uint64_t top) {
      return address < top && top - address <= kPushed;
    };
    for (const auto& [address, value] : patched.written) {
      if (original.written.contains(address)) continue;
      EXPECT_TRUE(is_below(address, original.registers.stack) || is_below(address, before.stack))
          << std::hex << address;
    }
  }

  static void compare_event(const PlanSite& site, const Arm64Registers& before,
                            const Arm64Event& event) {
    for (size_t i = 0; i < 17; ++i) EXPECT_EQ(event.block[i], before.general[i]) << "x" << i;
    EXPECT_EQ(event.block[18], before.general[18]);
    EXPECT_EQ(event.block[20], before.general[30]) << "the way back to the caller";
    EXPECT_EQ(event.block[21], before.general[17]);
    if (event.use == SledUse::kEnter) {
      EXPECT_TRUE(event.function == site.address || event.function + 4 == site.address);
    }
  }

  void compare(const PlanSite& site, const Arm64Registers& before, const Arm64Outcome& original,
               const Arm64Outcome& patched, Arm64Tally& tally) {
    ++tally.runs;
    ASSERT_EQ(original.error == 0, patched.error == 0) << original.error << " " << patched.error;
    if (original.error != 0) {
      ++tally.faults;
      return;
    }
    EXPECT_EQ(original.left_to, patched.left_to) << std::hex << original.left_to;
    EXPECT_EQ(original.registers.general, patched.registers.general);
    EXPECT_EQ(original.registers.stack, patched.registers.stack);
    EXPECT_EQ(original.registers.flags, patched.registers.flags);
    EXPECT_EQ(original.registers.vectors, patched.registers.vectors);
    compare_memory(before, original, patched);
    EXPECT_TRUE(patched.stack_was_aligned);
    for (const Arm64Event& event : patched.events) {
      ++(event.use == SledUse::kEnter ? tally.entries : tally.exits);
      compare_event(site, before, event);
    }
  }

  void run_all(uint32_t max_sites, int states, Arm64Tally& tally) {
    Arm64Machine original(*image_, plan_, trampolines_, false, false);
    Arm64Machine idle(*image_, plan_, trampolines_, true, false);
    Arm64Machine traced(*image_, plan_, trampolines_, true, true);
    std::mt19937_64 random(4711);
    const uint32_t step = std::max<uint32_t>(1, plan_.header().site_count / max_sites);
    for (uint32_t i = 0; i < plan_.header().site_count; i += step) {
      const PlanSite site = plan_.site(i);
      const auto word = load_le<uint32_t>(site.original);
      for (int state = 0; state < states && !HasFailure(); ++state) {
        SCOPED_TRACE(testing::Message() << std::hex << "0x" << word << " at 0x" << site.address);
        const Arm64Registers before = random_arm64_registers(random);
        const Arm64Outcome wanted = original.run(site, before);
        const Arm64Outcome quiet = idle.run(site, before);
        const Arm64Outcome loud = traced.run(site, before);
        compare(site, before, wanted, quiet, tally);
        EXPECT_TRUE(quiet.events.empty());
        compare(site, before, wanted, loud, tally);
        if (wanted.error == 0) ++tally.forms[pc_form(word)];
      }
    }
  }

  std::vector<uint8_t> file_;
  std::vector<uint8_t> plan_bytes_;
  std::vector<uint8_t> trampolines_;
  PlanView plan_;
  std::optional<ElfImage> image_;
};

TEST_P(Arm64Emulation, PatchedCodeDoesWhatTheOriginalDoes) {
  constexpr uint32_t kSites = 3000;
  constexpr int kStates = 6;
  Arm64Tally tally;
  run_all(kSites, kStates, tally);
  RecordProperty("runs", static_cast<int>(tally.runs));
  RecordProperty("faults", static_cast<int>(tally.faults));
  EXPECT_LT(tally.faults, tally.runs / 2);  // else it shows little
  EXPECT_GT(tally.entries, 100u);
  EXPECT_GT(tally.exits, 100u);
  if (GetParam() != std::string(ARM64_FUNCTIONS)) return;
  for (const PcForm form : {PcForm::kAddress, PcForm::kPage, PcForm::kLoad, PcForm::kBranch,
                            PcForm::kCall, PcForm::kIf, PcForm::kTestBit}) {
    EXPECT_GE(tally.forms[form], static_cast<uint64_t>(kStates)) << static_cast<int>(form);
  }
}

INSTANTIATE_TEST_SUITE_P(Files, Arm64Emulation,
                         testing::Values(ARM64_FUNCTIONS, "/usr/aarch64-linux-gnu/lib/libc.so.6",
                                         "/usr/aarch64-linux-gnu/lib/libstdc++.so.6",
                                         "/usr/aarch64-linux-gnu/lib/libm.so.6"));

}  // namespace
}  // namespace collect::patch

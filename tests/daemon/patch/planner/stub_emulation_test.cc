// Every window of real programs, patched against original, in an emulator: registers, flags, vector
// registers, memory and where it continues are the same for any handler.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <optional>

#include "daemon/patch/planner/planner.h"
#include "tests/daemon/patch/planner/patched_machine.h"

namespace collect::patch {
namespace {

std::vector<uint8_t> bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

struct Tally {
  uint64_t runs = 0;
  uint64_t faults = 0;
  uint64_t entries = 0;
  uint64_t exits = 0;
};

class StubEmulation : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    file_ = bytes_of(GetParam());
    ASSERT_FALSE(file_.empty()) << GetParam() << " is missing: deploy/packages.txt";
    auto plan = make_plan(file_);
    ASSERT_TRUE(plan.ok()) << plan.error().message;
    plan_bytes_ = std::move(*plan);
    ASSERT_EQ(plan_.parse(plan_bytes_), nullptr);
    auto image = ElfImage::parse(file_);
    ASSERT_TRUE(image.ok());
    image_.emplace(std::move(*image));
  }

  bool is_entry(uint32_t address) const {
    for (uint32_t low = 0, high = plan_.header().function_count; low < high;) {
      const uint32_t middle = (low + high) / 2;
      const PlanFunction one = plan_.function(middle);
      // An endbr64 stays where it is.
      if (address == one.address || address == one.address + 4) return true;
      if (one.address < address) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return false;
  }

  // rdtsc: no two runs are the same.
  static bool reads_the_clock(const PlanSite& site) {
    constexpr uint8_t kRdtsc[] = {0x0F, 0x31};
    const uint8_t* const end = site.original + site.bytes;
    return std::search(site.original, end, std::begin(kRdtsc), std::end(kRdtsc)) != end;
  }

  // What the window wrote is there, as far as anybody may look at it; and nothing else was written
  // but what is below the stack pointer, before or after.
  static void compare_memory(uint64_t stack_before, const Outcome& original,
                             const Outcome& patched) {
    constexpr uint64_t kRedZone = 128;
    constexpr uint64_t kPushed = 256;
    const uint64_t stack = original.registers.general[15];
    const bool is_left = original.returned ||
                         (!patched.events.empty() && patched.events.back().use != SledUse::kEnter);
    const uint64_t alive = is_left ? stack : stack - kRedZone;
    for (const auto& [address, value] : original.written) {
      if (address < alive && stack - address < PatchedMachine::kStackBytes) continue;
      const auto found = patched.written.find(address);
      ASSERT_NE(found, patched.written.end()) << std::hex << address;
      EXPECT_EQ(found->second, value) << std::hex << address;
    }
    const auto is_below = [](uint64_t address, uint64_t top) {
      return address < top && top - address <= kPushed;
    };
    for (const auto& [address, value] : patched.written) {
      if (original.written.contains(address)) continue;
      EXPECT_TRUE(is_below(address, stack) || is_below(address, stack_before))
          << std::hex << address;
    }
  }

  void compare(const PlanSite& site, const Registers& before, const Outcome& original,
               const Outcome& patched, Tally& tally) {
    ++tally.runs;
    ASSERT_EQ(original.error == 0, patched.error == 0);
    if (original.error != 0) {
      ++tally.faults;
      return;
    }
    EXPECT_EQ(original.left_to, patched.left_to);
    EXPECT_EQ(original.registers.general, patched.registers.general);
    EXPECT_EQ(original.registers.vectors, patched.registers.vectors);
    compare_memory(before.general[15], original, patched);
    EXPECT_TRUE(patched.stack_was_aligned);
    for (const SledEvent& event : patched.events) {
      if (event.use == SledUse::kEnter) {
        ++tally.entries;
        EXPECT_TRUE(event.function == site.address || event.function + 4 == site.address);
      } else {
        ++tally.exits;
      }
    }
  }

  std::vector<uint8_t> file_;
  std::vector<uint8_t> plan_bytes_;
  PlanView plan_;
  std::optional<ElfImage> image_;
};

TEST_P(StubEmulation, PatchedCodeDoesWhatTheOriginalDoes) {
  constexpr uint32_t kSites = 6000;
  constexpr int kStates = 6;
  PatchedMachine original(*image_, plan_, false, false);
  PatchedMachine idle(*image_, plan_, true, false);
  PatchedMachine traced(*image_, plan_, true, true);
  std::mt19937_64 random(4711);
  Tally tally;
  const uint32_t step = std::max<uint32_t>(1, plan_.header().site_count / kSites);
  for (uint32_t i = 0; i < plan_.header().site_count; i += step) {
    const PlanSite site = plan_.site(i);
    if (reads_the_clock(site)) continue;
    for (int state = 0; state < kStates; ++state) {
      SCOPED_TRACE(testing::Message() << std::hex << "window at 0x" << site.address);
      const Registers before = random_registers(random);
      const Outcome wanted = original.run(site, before);
      const Outcome quiet = idle.run(site, before);
      const Outcome loud = traced.run(site, before);
      compare(site, before, wanted, quiet, tally);
      EXPECT_TRUE(quiet.events.empty());
      compare(site, before, wanted, loud, tally);
      if (wanted.error == 0 && wanted.returned) {
        ASSERT_FALSE(loud.events.empty());
        EXPECT_EQ(loud.events.back().use, SledUse::kExit);
      }
      if (wanted.error == 0 && is_entry(site.address) && !loud.events.empty()) {
        EXPECT_EQ(loud.events.front().use, SledUse::kEnter);
      }
      if (HasFailure()) return;
    }
  }
  RecordProperty("runs", static_cast<int>(tally.runs));
  RecordProperty("faults", static_cast<int>(tally.faults));
  EXPECT_LT(tally.faults, tally.runs / 2);  // else it shows little
  EXPECT_GT(tally.entries, 100u);
  EXPECT_GT(tally.exits, 100u);
}

INSTANTIATE_TEST_SUITE_P(Programs, StubEmulation,
                         testing::Values("/usr/bin/lua5.4", "/usr/bin/bash", "/usr/bin/perl",
                                         "/usr/lib/x86_64-linux-gnu/libstdc++.so.6",
                                         "/usr/lib/x86_64-linux-gnu/libcrypto.so.3"));

}  // namespace
}  // namespace collect::patch

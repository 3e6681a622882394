// Plans of arm64 files, which Debian's cross compiler has made or brings along: on any machine.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <sstream>
#include <string>

#include "daemon/patch/planner/arm64_instruction.h"
#include "daemon/patch/planner/elf_image.h"
#include "daemon/patch/planner/planner.h"
#include "formats/patch/plan_view.h"
#include "tests/daemon/patch/planner/arm64_file.h"

namespace collect::patch {
namespace {

constexpr auto kEnter = static_cast<uint32_t>(SledUse::kEnter);
constexpr auto kExit = static_cast<uint32_t>(SledUse::kExit);
constexpr auto kTail = static_cast<uint32_t>(SledUse::kTail);

class Arm64PlannerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (std::string(ARM64_FUNCTIONS).empty()) {
      GTEST_SKIP() << "skipped: there is no aarch64-linux-gnu-gcc";
    }
  }
  void make(const std::string& path) {
    auto plan = make_plan(arm64_file(path));
    ASSERT_TRUE(plan.ok()) << path << ": " << plan.error().message;
    bytes_ = std::move(*plan);
    ASSERT_EQ(view_.parse(bytes_), nullptr) << path;
    EXPECT_EQ(view_.header().processor, static_cast<uint32_t>(Processor::kArm64));
  }

  std::vector<uint8_t> bytes_;
  PlanView view_;
};

TEST_F(Arm64PlannerTest, KnowsEachShape) {
  make(ARM64_FUNCTIONS);
  const std::map<std::string, uint32_t> addresses = arm64_symbols(ARM64_FUNCTIONS);
  std::map<uint32_t, Refusal> functions;
  for (uint32_t i = 0; i < view_.header().function_count; ++i) {
    functions[view_.function(i).address] = static_cast<Refusal>(view_.function(i).refusal);
  }
  const std::map<std::string, Refusal> refused = {
      {"loops_to_entry", Refusal::kLoopToEntry},
      {"loops_behind_landing", Refusal::kLoopToEntry},
      {"table_to_entry", Refusal::kLoopToEntry},
      {"jumps_from_frame", Refusal::kJumpsOut},
      {"is_entered_inside", Refusal::kEnteredInside},
      {"unknown_jump", Refusal::kUnknownJump},
      {"first_calls_pointer", Refusal::kNotMovable},
      {"runs_on", Refusal::kRunsOn},
      {"has_constants", Refusal::kUndecodable},
      {"is_not_code", Refusal::kUndecodable},
  };
  EXPECT_EQ(functions.size(), addresses.size()) << "a part is no function";
  for (const auto& [name, address] : addresses) {
    ASSERT_TRUE(functions.contains(address)) << name;
    const auto found = refused.find(name);
    const Refusal expected = found == refused.end() ? Refusal::kNone : found->second;
    EXPECT_STREQ(refusal_text(functions[address]), refusal_text(expected)) << name;
  }
}

TEST_F(Arm64PlannerTest, SledsSayHowAFunctionIsLeft) {
  make(ARM64_FUNCTIONS);
  std::map<uint32_t, std::multiset<uint32_t>> uses;
  for (uint32_t i = 0; i < view_.header().sled_count; ++i) {
    uses[view_.sled(i).function].insert(view_.sled(i).use);
  }
  const std::map<std::string, uint32_t> at = arm64_symbols(ARM64_FUNCTIONS);
  const auto of = [&](const char* name) { return uses[at.at(name)]; };
  using Uses = std::multiset<uint32_t>;
  EXPECT_EQ(of("plain_function"), (Uses{kEnter, kExit}));
  EXPECT_EQ(of("only_returns"), (Uses{kEnter, kExit}));
  EXPECT_EQ(of("tail_call"), (Uses{kEnter, kTail}));
  EXPECT_EQ(of("pointer_tail"), (Uses{kEnter, kTail}));
  EXPECT_EQ(of("first_jumps_out"), (Uses{kEnter, kTail}));
  EXPECT_EQ(of("conditional_tail"), (Uses{kEnter, kTail, kExit}));
  EXPECT_EQ(of("first_is_conditional_tail"), (Uses{kEnter, kTail, kExit}));
  EXPECT_EQ(of("first_calls"), (Uses{kEnter}));
  EXPECT_EQ(of("signs"), (Uses{kEnter, kExit})) << "retaa";
  EXPECT_EQ(of("chooses"), (Uses{kEnter, kExit, kExit, kExit, kExit})) << "br to a table's entry";
  EXPECT_EQ(of("chooses_elsewhere"), (Uses{kEnter, kExit, kExit})) << "one is in its part";
  EXPECT_EQ(of("keeps_table_on_stack"), (Uses{kEnter, kExit, kExit}));
  EXPECT_EQ(of("has_moved_instruction"), (Uses{kEnter, kExit})) << "a jump that comes back";
  EXPECT_EQ(of("returns_from_frame"), (Uses{kEnter, kExit}));
}

TEST_F(Arm64PlannerTest, LandingPadsStay) {
  make(ARM64_FUNCTIONS);
  const std::map<std::string, uint32_t> at = arm64_symbols(ARM64_FUNCTIONS);
  std::set<uint32_t> replaced;
  for (uint32_t i = 0; i < view_.header().site_count; ++i) replaced.insert(view_.site(i).address);
  for (const char* name : {"lands", "signs"}) {
    EXPECT_FALSE(replaced.contains(at.at(name))) << name;
    EXPECT_TRUE(replaced.contains(at.at(name) + 4)) << name;
  }
  EXPECT_TRUE(replaced.contains(at.at("plain_function")));
}

struct LibraryCoverage {
  const char* path;
  double percent;  // of functions of at least 16 bytes, with their entry and every exit
};

TEST_F(Arm64PlannerTest, CoversLibrariesOfDebian) {
  constexpr LibraryCoverage kExpected[] = {
      {"libc.so.6", 98.9}, {"libm.so.6", 99.9}, {"libstdc++.so.6", 99.9}, {"libgomp.so.1", 99.9}};
  for (const LibraryCoverage& one : kExpected) {
    const std::string path = std::string("/usr/aarch64-linux-gnu/lib/") + one.path;
    if (!std::filesystem::exists(path)) GTEST_SKIP() << "skipped: there is no " << path;
    make(path);
    uint32_t all = 0;
    uint32_t traced = 0;
    for (uint32_t i = 0; i < view_.header().function_count; ++i) {
      const PlanFunction function = view_.function(i);
      if (function.bytes < 16) continue;
      ++all;
      if (function.refusal == static_cast<uint32_t>(Refusal::kNone)) ++traced;
    }
    EXPECT_GT(all, 300u) << path;
    EXPECT_GE(100.0 * traced / all, one.percent) << path;
  }
}

// What objdump says of a word: whether it leaves the straight line, and what it leads to.
struct Listed {
  Flow flow = Flow::kOn;
  std::optional<uint64_t> target;
  bool is_instruction = true;
};

Listed read_listing(const std::string& mnemonic, const std::string& operands) {
  static const std::map<std::string, Flow> kFlows = {
      {"b", Flow::kJump},          {"bl", Flow::kCall},           {"cbz", Flow::kBranch},
      {"cbnz", Flow::kBranch},     {"tbz", Flow::kBranch},        {"tbnz", Flow::kBranch},
      {"br", Flow::kIndirectJump}, {"braa", Flow::kIndirectJump}, {"blr", Flow::kIndirectCall},
      {"ret", Flow::kReturn},      {"retaa", Flow::kReturn},      {"retab", Flow::kReturn},
      {"nop", Flow::kPadding},     {"udf", Flow::kStop},          {"brk", Flow::kStop},
      {"hlt", Flow::kStop},        {"eret", Flow::kStop},
  };
  Listed listed;
  const auto found = kFlows.find(mnemonic);
  if (found != kFlows.end()) listed.flow = found->second;
  if (mnemonic == "ret" && operands.starts_with("x")) listed.flow = Flow::kIndirectJump;
  if (mnemonic.starts_with("b.")) listed.flow = Flow::kBranch;
  if (mnemonic == ".inst" || operands.find("undefined") != std::string::npos) {
    listed.is_instruction = false;
  }
  const size_t symbol = operands.find(" <");
  if (symbol == std::string::npos) return listed;
  const size_t before = operands.find_last_of(" ,", symbol - 1);
  const size_t begin = before == std::string::npos ? 0 : before + 1;
  listed.target = std::stoull(operands.substr(begin, symbol - begin), nullptr, 16);
  return listed;
}

void compare(uint32_t word, uint32_t address, const std::string& text, const Listed& listed,
             std::map<PcForm, uint64_t>& seen) {
  Instruction one;
  const bool is_decoded = decode_arm64(word, address, one);
  if (!is_decoded) {
    EXPECT_FALSE(listed.is_instruction) << std::hex << address << ": " << text;
    return;
  }
  if (!listed.is_instruction) return;
  EXPECT_EQ(one.flow, listed.flow) << std::hex << address << ": " << text;
  const PcForm form = pc_form(word);
  EXPECT_EQ(form != PcForm::kNone, listed.target.has_value()) << text;
  EXPECT_EQ(pc_target(word, address), listed.target.value_or(0)) << text;
  ++seen[form];
}

TEST_F(Arm64PlannerTest, DecodesAsObjdumpDoes) {
  constexpr char kObjdump[] = "/usr/bin/aarch64-linux-gnu-objdump";
  if (!std::filesystem::exists(kObjdump)) GTEST_SKIP() << "skipped: there is no " << kObjdump;
  const std::string command = std::string(kObjdump) + " -d " + ARM64_FUNCTIONS +
                              " /usr/aarch64-linux-gnu/lib/libm.so.6"
                              " /usr/aarch64-linux-gnu/lib/libgomp.so.1"
                              " /usr/aarch64-linux-gnu/lib/ld-linux-aarch64.so.1";
  const std::unique_ptr<FILE, int (*)(FILE*)> listing(popen(command.c_str(), "r"), pclose);
  ASSERT_NE(listing, nullptr);
  std::map<PcForm, uint64_t> seen;
  std::array<char, 512> line;
  while (!HasFailure() && fgets(line.data(), line.size(), listing.get()) != nullptr) {
    // "   1f3a8:\td10043ff \tsub\tsp, sp, #0x10"
    std::istringstream fields(line.data());
    std::string place;
    std::string code;
    std::string mnemonic;
    std::string operands;
    std::getline(fields, place, '\t');
    std::getline(fields, code, '\t');
    std::getline(fields, mnemonic, '\t');
    std::getline(fields, operands);
    if (place.find(':') == std::string::npos || code.size() < 8 || mnemonic.empty()) continue;
    if (mnemonic.back() == '\n') mnemonic.pop_back();
    compare(static_cast<uint32_t>(std::stoul(code, nullptr, 16)),
            static_cast<uint32_t>(std::stoul(place, nullptr, 16)), line.data(),
            read_listing(mnemonic, operands), seen);
  }
  for (const PcForm form : {PcForm::kAddress, PcForm::kPage, PcForm::kLoad, PcForm::kBranch,
                            PcForm::kCall, PcForm::kIf, PcForm::kTestBit}) {
    EXPECT_GT(seen[form], 5u) << static_cast<int>(form);
  }
  EXPECT_GT(seen[PcForm::kNone], 100000u);
}

// By llvm-mc 19, which knows what Debian's binutils do not.
TEST(Arm64Instruction, KnowsTheLatest) {
  const auto decoded = [](uint32_t word) {
    Instruction one;
    EXPECT_TRUE(decode_arm64(word, 0x1000, one)) << std::hex << word;
    return one;
  };
  EXPECT_EQ(decoded(0x54000050).flow, Flow::kBranch) << "bc.eq";
  EXPECT_EQ(decoded(0x54000050).target, 0x1008u);
  EXPECT_EQ(decoded(0xD61F087F).flow, Flow::kIndirectJump) << "braaz x3";
  EXPECT_EQ(decoded(0xD71F0C64).flow, Flow::kIndirectJump) << "brab x3, x4";
  EXPECT_EQ(decoded(0xD73F0864).flow, Flow::kIndirectCall) << "blraa x3, x4";
  EXPECT_EQ(decoded(0xD65F0FFF).flow, Flow::kReturn) << "retab";
  EXPECT_EQ(decoded(0xD65F0060).flow, Flow::kIndirectJump) << "ret x3";
  EXPECT_EQ(decoded(0xD69F0BFF).flow, Flow::kStop) << "eretaa";
  EXPECT_TRUE(decoded(0xD503237F).is_landing) << "pacibsp";
  EXPECT_TRUE(decoded(0xD50324DF).is_landing) << "bti jc";
  EXPECT_FALSE(decoded(0xD503241F).is_landing) << "bti";
  for (const uint32_t word : {0xDAC1A3FEu, 0xDAC183FEu, 0xF380001Fu, 0xDAC1907Eu, 0xD50324FFu}) {
    EXPECT_FALSE(decoded(word).is_movable) << std::hex << word << ": signs with its address";
  }
  Instruction one;
  EXPECT_FALSE(decode_arm64(0x5500001F, 0, one)) << "retaasppc";
  EXPECT_FALSE(decode_arm64(0xD65F0BE3, 0, one)) << "retaasppcr x3";
  EXPECT_FALSE(decode_arm64(0x74000000, 0, one)) << "compares and jumps";
}

// Any file gives an error, or a plan that an agent can read.
TEST_F(Arm64PlannerTest, AnyDamagedByteIsAnErrorOrAPlan) {
  std::vector<uint8_t> file = arm64_file(ARM64_FUNCTIONS);
  const size_t end = std::min<size_t>(file.size(), 0x1800);
  for (size_t at = 0; at < end; ++at) {
    file[at] ^= 0xFF;
    const auto plan = make_plan(file);
    PlanView view;
    if (plan.ok()) {
      EXPECT_EQ(view.parse(*plan), nullptr) << at;
    }
    file[at] ^= 0xFF;
  }
}

}  // namespace
}  // namespace collect::patch

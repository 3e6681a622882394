#include "daemon/patch/planner/planner.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "formats/patch/plan_view.h"
#include "tests/daemon/patch/planner/own_functions.h"

extern "C" void __gxx_personality_v0();

OWN_FUNCTION(
    plain_function,
    "movl $1, %eax\naddl %edi, %eax\nmovl %eax, %ecx\nmovl %ecx, %eax\nret\nnop\nnop\nnop\nnop");
OWN_FUNCTION(loops_to_entry,
             "subl $1, %edi\ntestl %edi, %edi\njne loops_to_entry\nxorl %eax, "
             "%eax\nret\nnop\nnop\nnop\nnop");
OWN_FUNCTION(
    uneven_return,
    "pushq %rax\n.cfi_adjust_cfa_offset 8\nmovl $1, %eax\nmovl $2, %ecx\nret\nnop\nnop\nnop\nnop");
OWN_FUNCTION(unknown_jump,
             "subq $24, %rsp\n.cfi_adjust_cfa_offset 24\nleaq (%rdi,%rdi), %rax\njmp *%rax");
OWN_FUNCTION(runs_on, "movl $1, %eax\nmovl $2, %ecx\nmovl $3, %edx");
OWN_FUNCTION(target_in_window,
             "movl %edi, %eax\n1: subl $1, %eax\njne 1b\nmovl $3, %ecx\nmovl $3, %ecx\nret");
OWN_FUNCTION(
    no_room_at_exit,
    "movl %edi, %eax\naddl $1, %eax\nmovl $7, %ecx\njmp 2f\n3: call plain_function\n2: ret\n"
    "movl $7, %ecx\njmp 3b");
OWN_FUNCTION(tail_call, "movl %edi, %eax\naddl $7, %eax\nmovl %eax, %edi\njmp plain_function");
OWN_FUNCTION(short_branch,
             "movq %rdi, %rcx\nmovl %edi, %eax\n4: decl %eax\nloop 4b\nmovl $3, %ecx\nmovl $3, "
             "%eax\nret\nnop\nnop\nnop\nnop");
// As -fcf-protection and -fpatchable-function-entry=5 make it: the place behind the landing is
// listed. And the same where that address is data of the program, which may jump there.
OWN_FUNCTION(listed_entry,
             "endbr64\nlisted_place: nop\nnop\nnop\nnop\nnop\nmovl %edi, %eax\nret\n"
             "nop\nnop\nnop\nnop");
OWN_FUNCTION(known_entry,
             "endbr64\nknown_place: nop\nnop\nnop\nnop\nnop\nmovl %edi, %eax\nret\n"
             "nop\nnop\nnop\nnop");
// A function, and 16 bytes behind it one that no one calls and that jumps into it, as a part of it
// would. Of the first two, the second one is listed.
#define TWO_FUNCTIONS(name)                                                                 \
  asm(".text\n.p2align 4\n.globl " #name "\n" #name                                         \
      ":\n.cfi_startproc\nmovl %edi, %eax\naddl $7, %eax\n" #name                           \
      "_middle: movl %eax, %ecx\nret\nnop\nnop\nnop\nnop\n.cfi_endproc\n.p2align 4\n" #name \
      "_part:\n.cfi_startproc\nmovl %edi, %eax\naddl $7, %eax\nmovl %eax, %edi\njmp " #name \
      "_middle\nnop\nnop\nnop\nnop\n.cfi_endproc\n");                                       \
  extern "C" const char name[]
TWO_FUNCTIONS(listed_pair);
TWO_FUNCTIONS(unlisted_pair);
asm(".section __patchable_function_entries,\"aw\",@progbits\n.balign 8\n"
    ".quad listed_place\n.quad listed_pair_part\n"
    ".section .data.known_place,\"aw\",@progbits\n.balign 8\n.quad known_place\n.text\n");

namespace collect::patch {
namespace {

class PlannerTest : public ::testing::Test {
 protected:
  static std::vector<uint8_t> plan_of(const char* path) {
    const auto plan = make_plan(file_bytes(path));
    EXPECT_TRUE(plan.ok()) << path << ": " << plan.error().message;
    return plan.ok() ? *plan : std::vector<uint8_t>();
  }
};

std::map<uint32_t, Refusal> functions_of(const PlanView& view) {
  std::map<uint32_t, Refusal> functions;
  for (uint32_t i = 0; i < view.header().function_count; ++i) {
    functions[view.function(i).address] = static_cast<Refusal>(view.function(i).refusal);
  }
  return functions;
}

TEST_F(PlannerTest, KnowsEachShape) {
  const std::vector<uint8_t> plan = plan_of("/proc/self/exe");
  PlanView view;
  ASSERT_EQ(view.parse(plan), nullptr);
  std::map<uint32_t, Refusal> functions = functions_of(view);
  const auto of = [&functions](const char* code) {
    return refusal_text(functions.at(own_address(code)));
  };
  EXPECT_STREQ(of(plain_function), refusal_text(Refusal::kNone));
  EXPECT_STREQ(of(tail_call), refusal_text(Refusal::kNone));
  EXPECT_STREQ(of(short_branch), refusal_text(Refusal::kNone));
  EXPECT_STREQ(of(loops_to_entry), refusal_text(Refusal::kLoopToEntry));
  EXPECT_STREQ(of(uneven_return), refusal_text(Refusal::kUnevenReturn));
  EXPECT_STREQ(of(unknown_jump), refusal_text(Refusal::kUnknownJump));
  EXPECT_STREQ(of(runs_on), refusal_text(Refusal::kRunsOn));
  EXPECT_STREQ(of(target_in_window), refusal_text(Refusal::kNoRoomAtEntry));
  EXPECT_STREQ(of(no_room_at_exit), refusal_text(Refusal::kNoRoomAtExit));
}

TEST_F(PlannerTest, PlacesForOtherTracersAreEntriesAndNoTargets) {
  const std::vector<uint8_t> plan = plan_of("/proc/self/exe");
  PlanView view;
  ASSERT_EQ(view.parse(plan), nullptr);
  const std::map<uint32_t, Refusal> functions = functions_of(view);
  EXPECT_EQ(functions.at(own_address(listed_entry)), Refusal::kNone);
  EXPECT_EQ(functions.at(own_address(known_entry)), Refusal::kLoopToEntry);
  constexpr uint32_t kPart = 16;
  EXPECT_EQ(functions.at(own_address(listed_pair)), Refusal::kEnteredInside);
  EXPECT_EQ(functions.at(own_address(listed_pair) + kPart), Refusal::kJumpsOut);
  EXPECT_EQ(functions.at(own_address(unlisted_pair)), Refusal::kNone);
  EXPECT_FALSE(functions.contains(own_address(unlisted_pair) + kPart)) << "it is a part";
}

// It runs, and returns, while the unwinder ends frames around it.
TEST_F(PlannerTest, LeavesTheUnwindersHelperAlone) {
  Dl_info object{};
  const void* const code = reinterpret_cast<const void*>(&__gxx_personality_v0);
  ASSERT_NE(dladdr(code, &object), 0);
  if (std::string(object.dli_fname).find("libstdc++") == std::string::npos) {
    GTEST_SKIP() << "the C++ library is linked statically";
  }
  const std::vector<uint8_t> plan = plan_of(object.dli_fname);
  PlanView view;
  ASSERT_EQ(view.parse(plan), nullptr);
  const auto address = static_cast<uint32_t>(static_cast<const char*>(object.dli_saddr) -
                                             static_cast<const char*>(object.dli_fbase));
  EXPECT_EQ(functions_of(view).at(address), Refusal::kPersonality);
}

TEST_F(PlannerTest, SledsSayHowAFunctionIsLeft) {
  const std::vector<uint8_t> plan = plan_of("/proc/self/exe");
  PlanView view;
  ASSERT_EQ(view.parse(plan), nullptr);
  std::map<uint32_t, std::vector<uint32_t>> uses;
  for (uint32_t i = 0; i < view.header().sled_count; ++i) {
    uses[view.sled(i).function].push_back(view.sled(i).use);
  }
  const auto enter = static_cast<uint32_t>(SledUse::kEnter);
  EXPECT_EQ(uses[own_address(plain_function)],
            (std::vector<uint32_t>{enter, static_cast<uint32_t>(SledUse::kExit)}));
  EXPECT_EQ(uses[own_address(tail_call)],
            (std::vector<uint32_t>{enter, static_cast<uint32_t>(SledUse::kTail)}));
}

struct Expected {
  const char* path;
  double percent;  // of functions of at least 16 bytes, with their entry and every exit
};

// What a prototype, which knew less of exits in cold parts, reached on these.
TEST_F(PlannerTest, CoversProgramsOfDebian) {
  constexpr Expected kExpected[] = {
      {"/usr/bin/lua5.4", 92.9},
      {"/usr/bin/sqlite3", 97.9},
      {"/usr/lib/x86_64-linux-gnu/libsqlite3.so.0", 95.7},
      {"/usr/bin/bash", 96.1},
      {"/usr/bin/perl", 96.8},
      {"/usr/bin/git", 96.8},
      {"/usr/lib/x86_64-linux-gnu/libstdc++.so.6", 95.6},
      {"/usr/lib/x86_64-linux-gnu/libc.so.6", 88.0},
      {"/usr/lib/x86_64-linux-gnu/libcrypto.so.3", 99.2},
  };
  for (const Expected& one : kExpected) {
    const std::vector<uint8_t> plan = plan_of(one.path);
    PlanView view;
    ASSERT_EQ(view.parse(plan), nullptr) << one.path;
    uint32_t all = 0;
    uint32_t traced = 0;
    for (uint32_t i = 0; i < view.header().function_count; ++i) {
      const PlanFunction function = view.function(i);
      if (function.bytes < 16) continue;
      ++all;
      if (function.refusal == static_cast<uint32_t>(Refusal::kNone)) ++traced;
    }
    EXPECT_GT(all, 300u) << one.path;
    EXPECT_GE(100.0 * traced / all, one.percent) << one.path;
  }
}

TEST_F(PlannerTest, SaysWhyThereIsNoPlan) {
  const std::vector<uint8_t> text = {'t', 'e', 'x', 't'};
  EXPECT_EQ(make_plan(text).code(), Code::kUnsupported);
  std::vector<uint8_t> file = file_bytes("/usr/bin/lua5.4");
  ASSERT_GT(file.size(), sizeof(Elf64_Ehdr));
  std::vector<uint8_t> other = file;
  other[offsetof(Elf64_Ehdr, e_machine)] = EM_RISCV;
  EXPECT_EQ(make_plan(other).error().message, "it is for another processor than x86-64 and arm64");
  other = file;
  other[offsetof(Elf64_Ehdr, e_type)] = ET_REL;
  EXPECT_EQ(make_plan(other).error().message, "it is neither a program nor a shared library");
  for (size_t size = 0; size < 4096; size += 7) {
    EXPECT_FALSE(make_plan(Bytes(file).first(size)).ok()) << size;
  }
}

// Any file gives an error, or a plan that an agent can read.
TEST_F(PlannerTest, AnyDamagedByteIsAnErrorOrAPlan) {
  std::vector<uint8_t> file = file_bytes("/usr/bin/lua5.4");
  for (size_t at = 0; at < 0x400; at += 3) {
    file[at] ^= 0xFF;
    const auto plan = make_plan(file);
    if (plan.ok()) {
      PlanView view;
      EXPECT_EQ(view.parse(*plan), nullptr) << at;
    }
    file[at] ^= 0xFF;
  }
}

}  // namespace
}  // namespace collect::patch

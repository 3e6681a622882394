// Where a thread may be borrowed, and what a file defines.
#include "daemon/inject/borrowing.h"

#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>

namespace collect::inject {
namespace {

constexpr int64_t kRestartSys = -512;

user_regs_struct blocked_in(long call, uint64_t rip, int64_t result = kRestartSys) {
  user_regs_struct registers{};
  registers.orig_rax = static_cast<uint64_t>(call);
  registers.rax = static_cast<uint64_t>(result);
  registers.rip = rip;
  return registers;
}

user_regs_struct running_at(uint64_t rip) {
  user_regs_struct registers{};
  registers.orig_rax = ~uint64_t{0};
  registers.rip = rip;
  return registers;
}

class SafePointsTest : public ::testing::Test {
 protected:
  static constexpr uint64_t kLibrary = 0x10'000;
  static constexpr uint64_t kLinker = 0x20'000;
  static constexpr uint64_t kProgram = 0x30'000;
  static constexpr uint64_t kGenerated = 0x40'000;

  SafePointsTest() {
    target_.code = {{kLibrary, kLibrary + 0x1000, "/lib/x86_64-linux-gnu/libc.so.6"},
                    {kLinker, kLinker + 0x1000, "/lib64/ld-linux-x86-64.so.2"},
                    {kProgram, kProgram + 0x1000, "/bin/true"},
                    {kGenerated, kGenerated + 0x1000, ""}};
  }
  Target target_;
  SafePoints points_{target_};
};

TEST_F(SafePointsTest, BlockedCallsThatHoldNothing) {
  for (const long call : {SYS_futex, SYS_read, SYS_epoll_wait, SYS_nanosleep, SYS_poll}) {
    EXPECT_TRUE(points_.is_safe(blocked_in(call, kLibrary + 8), false)) << call;
  }
}

TEST_F(SafePointsTest, CallsThatAllocatorsAndTheLinkerMakeAreNone) {
  for (const long call : {SYS_mmap, SYS_brk, SYS_openat, SYS_munmap, SYS_clone}) {
    EXPECT_FALSE(points_.is_safe(blocked_in(call, kLibrary + 8), true)) << call;
  }
  EXPECT_FALSE(points_.is_safe(blocked_in(SYS_read, kLinker + 8), true)) << "it loads a library";
}

TEST_F(SafePointsTest, CallThatHasReturnedIsNoBlockedOne) {
  EXPECT_FALSE(points_.is_safe(blocked_in(SYS_read, kLibrary + 8, 12), true));
  EXPECT_FALSE(points_.is_safe(blocked_in(SYS_read, kLibrary + 8, -EAGAIN), true));
  EXPECT_TRUE(points_.is_safe(blocked_in(SYS_epoll_wait, kLibrary + 8, -EINTR), true))
      << "the stop itself ended it";
}

TEST_F(SafePointsTest, RunningThreadOnlyInCodeThatAllocatesNothing) {
  EXPECT_TRUE(points_.is_safe(running_at(kProgram + 8), true));
  EXPECT_FALSE(points_.is_safe(running_at(kProgram + 8), false)) << "blocked ones come first";
  EXPECT_FALSE(points_.is_safe(running_at(kLibrary + 8), true)) << "it defines malloc";
  EXPECT_FALSE(points_.is_safe(running_at(kLinker + 8), true));
  EXPECT_FALSE(points_.is_safe(running_at(kGenerated + 8), true)) << "no file";
  EXPECT_FALSE(points_.is_safe(running_at(0x50'000), true)) << "nothing is known of it";
}

TEST(Defines, OnlyWhatTheFileItselfHas) {
  EXPECT_TRUE(defines("/lib/x86_64-linux-gnu/libc.so.6", "malloc"));
  EXPECT_FALSE(defines("/lib/x86_64-linux-gnu/libc.so.6", "mallo"));
  EXPECT_FALSE(defines("/lib/x86_64-linux-gnu/libc.so.6", "malloc_of_no_library"));
  EXPECT_FALSE(defines("/bin/true", "malloc")) << "imported";
}

TEST(Defines, UnreadableFilesMayDefineAnything) {
  EXPECT_TRUE(defines("/nowhere", "malloc"));
  const std::string path = ::testing::TempDir() + "defines_" + std::to_string(::getpid());
  std::ifstream in("/bin/true", std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(in), {}};
  for (const size_t size : {size_t{0}, size_t{5}, size_t{64}, bytes.size() / 2}) {
    std::ofstream(path, std::ios::binary) << bytes.substr(0, size);
    EXPECT_TRUE(defines(path, "malloc")) << size << " bytes";
  }
  std::remove(path.c_str());
}

}  // namespace
}  // namespace collect::inject

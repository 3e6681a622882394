// Jumps into the code of a real process: a child of this one, whose threads stand where the test
// put them.
#include "daemon/inject/code_writes.h"
#include "tests/child/forked_child.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <iterator>
#include <optional>
#include <string>

namespace collect::inject {
namespace {

using patch::AttachJump;

constexpr uint64_t kPage = 4096;
constexpr std::chrono::seconds kBound{10};

Deadline soon() {
  return std::chrono::steady_clock::now() + kBound;
}

constexpr uint8_t kToItself[] = {0xE9, 0xFB, 0xFF, 0xFF, 0xFF};

AttachJump jump(uint64_t address, uint8_t bytes) {
  AttachJump one{};
  one.address = address;
  one.bytes = bytes;
  std::memset(one.original, 0x90, bytes);
  std::memcpy(one.jump, kToItself, sizeof one.jump);
  return one;
}

TEST(WindowAt, IsBehindItsFirstByteAlone) {
  const std::vector<AttachJump> jumps = {jump(100, 5), jump(105, 7), jump(200, 47)};
  EXPECT_EQ(window_at(jumps, 99), nullptr);
  EXPECT_EQ(window_at(jumps, 100), nullptr) << "the jump is still to come";
  EXPECT_EQ(window_at(jumps, 101), &jumps[0]);
  EXPECT_EQ(window_at(jumps, 104), &jumps[0]);
  EXPECT_EQ(window_at(jumps, 105), nullptr);
  EXPECT_EQ(window_at(jumps, 111), &jumps[1]);
  EXPECT_EQ(window_at(jumps, 112), nullptr);
  EXPECT_EQ(window_at(jumps, 246), &jumps[2]);
  EXPECT_EQ(window_at(jumps, 247), nullptr);
  EXPECT_EQ(window_at({}, 1), nullptr);
}

// A child that runs `code` for ever, at an address that both know; `state` is a word of it.
class WriteJumps : public ::testing::Test {
 protected:
  void start(const std::vector<uint8_t>& code) {
    memory_ = static_cast<uint8_t*>(::mmap(nullptr, 2 * kPage, PROT_READ | PROT_WRITE | PROT_EXEC,
                                           MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    ASSERT_NE(memory_, MAP_FAILED);
    std::memcpy(memory_, code.data(), code.size());
    set_state(patch::kAttachPrepared);
    child_.emplace([this] {
      reinterpret_cast<void (*)()>(memory_)();
      return 1;
    });
  }
  void TearDown() override {
    child_.reset();
    if (memory_ != nullptr) ::munmap(memory_, 2 * kPage);
  }
  // In the child's copy, too, where there is no child yet.
  void set_state(uint32_t state) { std::memcpy(memory_ + kPage, &state, sizeof state); }
  uint64_t at(uint64_t offset) const { return reinterpret_cast<uint64_t>(memory_) + offset; }
  uint64_t state_at() const { return at(kPage); }
  Result<StopOutcome> write(const std::vector<AttachJump>& jumps) {
    auto memory = ProcessMemory::open(child_->pid());
    if (!memory.ok()) return memory.error();
    return write_jumps(child_->pid(), *memory, jumps, state_at(), soon());
  }
  std::vector<uint8_t> code(size_t bytes) {
    std::vector<uint8_t> there(bytes);
    const auto memory = ProcessMemory::open(child_->pid());
    EXPECT_TRUE(memory.ok() && memory->read(at(0), there.data(), bytes).ok());
    return there;
  }
  // Until its thread is there.
  template <class Reached>
  void run_until(Reached reached) {
    const Deadline deadline = soon();
    for (bool found = false; !found;) {
      ASSERT_LT(std::chrono::steady_clock::now(), deadline) << "it is somewhere else";
      auto thread = TracedThread::seize(child_->pid());
      ASSERT_TRUE(thread.ok()) << thread.error().message;
      ASSERT_TRUE(thread->stop(deadline).ok());
      found = reached(thread->registers()->rip);
    }
  }
  uint32_t state() {
    const auto memory = ProcessMemory::open(child_->pid());
    return *memory->get<uint32_t>(state_at());
  }

  std::optional<child::ForkedChild> child_;
  uint8_t* memory_ = nullptr;
};

// Seven bytes that take long, then a jump back to the first.
constexpr uint8_t kNop = 0x90;
std::vector<uint8_t> loop_of(size_t nops) {
  std::vector<uint8_t> code(nops, kNop);
  code.push_back(0xEB);
  code.push_back(static_cast<uint8_t>(-static_cast<int>(nops) - 2));
  return code;
}

TEST_F(WriteJumps, ThreadInsideAWindowIsSteppedOut) {
  start(loop_of(40));
  // Bytes 10 to 29 are the window: the child is mostly somewhere in the loop.
  const auto written = write({jump(at(10), 20)});
  ASSERT_TRUE(written.ok()) << written.error().message;
  EXPECT_EQ(written->threads, 1u);
  EXPECT_EQ(state(), uint32_t{patch::kAttachCommitted});
  std::vector<uint8_t> expected = loop_of(40);
  std::copy(std::begin(kToItself), std::end(kToItself), expected.begin() + 10);
  EXPECT_EQ(code(42), expected) << "what follows the jump stays";
  // It comes by the jump, and nowhere else.
  run_until([this](uint64_t where) { return where == at(10); });
}

TEST_F(WriteJumps, OtherCodeIsLeftAlone) {
  start(loop_of(40));
  AttachJump wrong = jump(at(20), 6);
  wrong.original[5] = 0x91;
  const auto written = write({jump(at(10), 5), wrong});
  ASSERT_FALSE(written.ok());
  EXPECT_EQ(written.error().code, Code::kDamaged);
  EXPECT_EQ(state(), uint32_t{patch::kAttachPrepared});
  EXPECT_EQ(code(42), loop_of(40));
  EXPECT_TRUE(child_->running());
}

TEST_F(WriteJumps, GivesUpOnAThreadWithinAWindow) {
  // The window is the whole loop.
  start({kNop, kNop, kNop, kNop, kNop, kNop, 0xEB, 0xFD});  // back to the byte before the jump
  AttachJump whole = jump(at(0), 8);
  whole.original[6] = 0xEB;
  whole.original[7] = 0xFD;
  run_until([this](uint64_t where) { return where >= at(5) && where < at(8); });
  const auto written = write({whole});
  ASSERT_FALSE(written.ok());
  EXPECT_EQ(written.error().code, Code::kUnavailable);
  EXPECT_THAT(written.error().message, ::testing::HasSubstr("stays where its code"));
  EXPECT_EQ(state(), uint32_t{patch::kAttachPrepared});
}

// epoll_wait() is never restarted by the kernel: programs would see that they were stopped.
TEST_F(WriteJumps, BlockedCallDoesNotEnd) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  start(loop_of(40));
  child_.emplace([&] {
    const int poll = ::epoll_create1(0);
    epoll_event event{.events = EPOLLIN, .data = {}};
    ::epoll_ctl(poll, EPOLL_CTL_ADD, ends[0], &event);
    return ::epoll_wait(poll, &event, 1, -1) == 1 ? 7 : 8;
  });
  for (int stops = 0; stops < 50; ++stops) {
    const uint32_t prepared = patch::kAttachPrepared;
    const auto memory = ProcessMemory::open(child_->pid());
    ASSERT_TRUE(memory.ok() && memory->write(state_at(), &prepared, sizeof prepared).ok());
    const auto written = write({});
    ASSERT_TRUE(written.ok()) << written.error().message;
    ::usleep(100);
  }
  ASSERT_EQ(::write(ends[1], "x", 1), 1);
  EXPECT_EQ(child_->wait().describe(), "exit 7");
  ::close(ends[0]);
  ::close(ends[1]);
}

// Its stubs are not there any more.
TEST_F(WriteJumps, AgentThatHasGivenUpGetsNoJumps) {
  start(loop_of(40));
  const auto memory = ProcessMemory::open(child_->pid());
  ASSERT_TRUE(memory.ok());
  const uint32_t failed = patch::kAttachFailed;
  ASSERT_TRUE(memory->write(state_at(), &failed, sizeof failed).ok());
  const auto written = write({jump(at(10), 20)});
  ASSERT_FALSE(written.ok());
  EXPECT_EQ(written.error().code, Code::kUnavailable);
  EXPECT_EQ(state(), uint32_t{patch::kAttachFailed});
  EXPECT_EQ(code(42), loop_of(40));
}

TEST_F(WriteJumps, ProcessThatIsGone) {
  start(loop_of(10));
  auto memory = ProcessMemory::open(child_->pid());
  ASSERT_TRUE(memory.ok());
  child_->send_signal(SIGKILL);
  child_->wait();
  const auto written = write_jumps(child_->pid(), *memory, {jump(at(2), 5)}, state_at(), soon());
  ASSERT_FALSE(written.ok());
  EXPECT_EQ(written.error().code, Code::kNotFound);
}

}  // namespace
}  // namespace collect::inject

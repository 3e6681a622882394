// Calls that end without a return: which events an exception, a longjmp and the end of a thread
// leave, for hooks of all kinds. Frames are numbers here: the stack grows down from 1000.
#include "agent/ring/hooks/unwinding.h"

#include <gtest/gtest.h>
#include <setjmp.h>

#include "agent/ring/hooks/hooks_inline.h"
#include "agent/ring/open_calls.h"
#include "agent/shims/jump_target.h"
#include "tests/agent/ring/ring_drain.h"

namespace collect::agent {
namespace {

enum class Hooks : uint8_t { kCompiler, kSleds };

// As the shims do.
void hook(uint64_t n, atf::EventKind kind, uint64_t stack_pointer, Hooks hooks) {
  uint64_t address = function(n);
  Stream* stream = nullptr;
  HookFrame frame;
  frame.place = stack_pointer - kPlaceBelow + (hooks == Hooks::kSleds ? kPlaceOfSled : 0);
  frame.by_sled = hooks == Hooks::kSleds;
  if (record_short<true>(address, kind, stream, frame.place) ||
      record_selected<true>(address, kind, stream, frame.place)) {
    return;
  }
  general_event(stream, address, kind, frame);
}
void call(uint64_t n, uint64_t stack_pointer, Hooks hooks = Hooks::kCompiler) {
  hook(n, atf::EventKind::kCall, stack_pointer, hooks);
}
void leave(uint64_t n, uint64_t stack_pointer, Hooks hooks = Hooks::kCompiler) {
  hook(n, atf::EventKind::kReturn, stack_pointer, hooks);
}
void land(uint64_t n, uint64_t stack_pointer, uint64_t from = 0) {
  on_unwind({UnwindStep::kLanded, stack_pointer, function(n), from});
}
void catch_at(uint64_t stack_pointer) {
  on_unwind({UnwindStep::kCaught, stack_pointer});
}
void jump_to(uint64_t stack_pointer, uint64_t from = 0) {
  on_unwind({UnwindStep::kJumped, stack_pointer, 0, from});
}

class UnwindingTest : public ::testing::TestWithParam<uint8_t> {
 protected:
  // By the short path, and by the general one, which writes detail.
  void SetUp() override {
    Settings settings;
    settings.buffer_mb = 8;
    settings.detail = GetParam();
    ASSERT_TRUE(recorder_init(settings));
    start_recording();
  }
  // "+1 -1 !1": calls, returns and exceptions, by number.
  std::string events() {
    RingDrain drain;
    drain.finish();
    EXPECT_EQ(drain.lost(), 0u);
    std::string text;
    if (drain.streams.empty()) return text;
    const TakenStream& stream = drain.streams.begin()->second;
    EXPECT_EQ(stream.detail.lost_total, 0u);
    for (const atf::IndexEventV2& event : stream.events()) {
      text += event.event_kind == 1 ? '+' : event.event_kind == 2 ? '-' : '!';
      text += std::to_string(event.function_id - id_of(0)) + " ";
      EXPECT_EQ(event.detail_seq != atf::kNoDetail, GetParam() == 2 && event.event_kind != 3);
    }
    return text;
  }
};

TEST_P(UnwindingTest, CallsBelowALandingEndByTheException) {
  call(1, 1000);
  call(2, 900);
  call(3, 800);
  land(1, 1000);
  catch_at(1000);
  call(4, 900);
  leave(4, 900);
  leave(1, 1000);
  EXPECT_EQ(events(), "+1 +2 +3 !3 !2 +4 -4 -1 ");
}

// gcc: the hook of the return runs in the frame's own cleanup.
TEST_P(UnwindingTest, ReturnInACleanupIsTheException) {
  call(1, 1000);
  call(2, 900);
  call(3, 800);
  land(3, 800);
  leave(3, 800);
  land(2, 900);
  call(5, 850);  // a destructor
  leave(5, 850);
  leave(2, 900);
  land(1, 1000);
  catch_at(1000);
  leave(1, 1000);
  EXPECT_EQ(events(), "+1 +2 +3 !3 +5 -5 !2 -1 ");
}

TEST_P(UnwindingTest, CleanupThatThrowsAndCatchesItself) {
  call(1, 1000);
  call(2, 900);
  land(2, 900);
  call(3, 800);
  call(4, 700);
  land(3, 800);
  catch_at(800);
  leave(3, 800);
  // One that is not traced does the same.
  land(9, 750);
  catch_at(750);
  leave(2, 900);
  land(1, 1000);
  catch_at(1000);
  leave(1, 1000);
  EXPECT_EQ(events(), "+1 +2 +3 +4 !4 -3 !2 -1 ");
}

// A frame with two calls: gcc's hooks end the inner one, clang's do not.
TEST_P(UnwindingTest, CallsThatWereInlinedIntoTheFrameThatCatches) {
  call(1, 1000);
  call(2, 1000);
  land(1, 1000);
  leave(2, 1000);
  catch_at(1000);
  leave(1, 1000);
  call(1, 1000);
  call(2, 1000);
  call(3, 900);
  land(1, 1000);
  catch_at(1000);
  leave(1, 1000);
  EXPECT_EQ(events(), "+1 +2 !2 -1 +1 +2 +3 !3 !2 -1 ");
}

TEST_P(UnwindingTest, SledsArePassedByReturnsAlone) {
  call(1, 1000, Hooks::kSleds);
  call(1, 904, Hooks::kSleds);
  call(2, 808, Hooks::kSleds);
  land(1, 984);
  leave(1, 1000, Hooks::kSleds);
  EXPECT_EQ(events(), "+1 +1 +2 !2 !1 -1 ");
}

// arrays of variable length, and arguments on the stack: the frame is known by its function.
TEST_P(UnwindingTest, StackPointerThatMovesWithinTheFrame) {
  call(1, 1000);
  call(2, 700);
  land(1, 800);
  catch_at(800);
  call(3, 780);
  leave(3, 780);
  leave(1, 1000);
  call(4, 1000);
  call(5, 700);
  land(4, 800);
  leave(4, 800);
  EXPECT_EQ(events(), "+1 +2 !2 +3 -3 -1 +4 +5 !5 !4 ");
}

// Hooks of the program's own stand between the functions and ours, and take stack.
TEST_P(UnwindingTest, HooksThatWerePassedOn) {
  constexpr uint64_t kBetween = 48;
  call(1, 1000 - kBetween);
  call(1, 900 - kBetween);
  call(2, 800 - kBetween);
  land(1, 900);
  leave(1, 900 - kBetween);
  land(1, 1000);
  catch_at(1000);
  leave(1, 1000 - kBetween);
  EXPECT_EQ(events(), "+1 +1 +2 !2 !1 -1 ");
}

TEST_P(UnwindingTest, JumpEndsCallsWithoutAnEvent) {
  call(1, 1000);
  call(2, 900);
  call(3, 800);
  jump_to(1000, 750);
  call(4, 700);
  land(1, 1000);
  leave(1, 1000);
  EXPECT_EQ(events(), "+1 +2 +3 +4 !4 !1 ");
}

TEST_P(UnwindingTest, JumpToAnUnknownStackForgetsAllCalls) {
  call(1, 1000);
  call(2, 900);
  jump_to(kUnknownStack);
  land(1, 1000);
  leave(1, 1000);
  EXPECT_EQ(events(), "+1 +2 -1 ");
}

TEST_P(UnwindingTest, CallsOfAnotherStackStayOpen) {
  call(1, 300);
  call(2, 200);
  call(3, 1000);  // a coroutine
  call(4, 900);
  land(3, 1010, 600);
  jump_to(1020, 600);
  leave(2, 200);
  leave(1, 300);
  EXPECT_EQ(events(), "+1 +2 +3 +4 !4 -2 -1 ");
}

// No one said that it was jumped over.
TEST_P(UnwindingTest, CallBelowALaterOneWasGoneBefore) {
  call(1, 1000);
  call(2, 500);
  call(3, 900);
  land(1, 1000);
  catch_at(1000);
  leave(1, 1000);
  EXPECT_EQ(events(), "+1 +2 +3 !3 -1 ");
}

TEST_P(UnwindingTest, UnwindsOpenCallsWhenTheThreadEnds) {
  call(1, 1000);
  call(2, 900);
  leave(2, 900);
  call(3, 900);
  thread_ended(nullptr);
  EXPECT_EQ(events(), "+1 +2 -2 +3 !3 !1 ");
}

TEST_P(UnwindingTest, ReturnsOfCallsFromBeforeTheRecording) {
  leave(2, 900);
  leave(1, 1000);
  call(3, 900);
  leave(3, 900);
  EXPECT_EQ(events(), "-2 -1 +3 -3 ");
}

TEST_P(UnwindingTest, AcrossChunks) {
  constexpr uint64_t kDeep = 3 * kOpenCallChunkBytes / sizeof(OpenCall);
  constexpr uint64_t kTop = 16 * kDeep;
  std::string expected;
  for (uint64_t i = 0; i < kDeep; ++i) call(i % 7, kTop - 16 * i);
  for (uint64_t i = kDeep; i > kDeep / 2; --i) leave((i - 1) % 7, kTop - 16 * (i - 1));
  land(0, kTop);
  leave(0, kTop);
  for (uint64_t i = 0; i < kDeep; ++i) expected += '+' + std::to_string(i % 7) + " ";
  for (uint64_t i = kDeep; i > 0; --i) {
    expected += (i > kDeep / 2 ? '-' : '!') + std::to_string((i - 1) % 7) + " ";
  }
  EXPECT_TRUE(events() == expected);
}

// A handler that interrupted a hook: what it says is deferred with its events.
TEST_P(UnwindingTest, InASignalHandlerThatInterruptedAHook) {
  call(1, 1000);
  Stream& stream = *tls_stream;
  const auto here = reinterpret_cast<uint64_t>(__builtin_frame_address(0));
  stream.busy.store(here + 4096, std::memory_order_relaxed);  // the interrupted hook's
  call(2, 900);
  call(3, 800);
  land(2, 900);
  catch_at(900);
  leave(2, 900);
  call(4, 900);
  jump_to(1000);
  stream.busy.store(0, std::memory_order_relaxed);
  call(5, 900);
  land(1, 1000);
  leave(1, 1000);
  RingDrain drain;
  drain.finish();
  std::string kinds;
  for (const atf::IndexEventV2& event : drain.streams.begin()->second.events()) {
    kinds += std::to_string(event.event_kind) + std::to_string(event.function_id - id_of(0)) + " ";
  }
  EXPECT_EQ(kinds, "11 12 13 33 22 14 15 35 31 ");
}

// Each call that has ended, in whichever way, is one that a return is no more expected of.
TEST_P(UnwindingTest, FunctionFilterCountsEveryEnd) {
  begin_function_filter(FunctionFilterMode::kOnly);
  for (const uint64_t n : {uint64_t{1}, uint64_t{3}}) {
    const uint64_t id = id_of(n);
    ASSERT_TRUE(add_to_function_filter(&id, 1));
  }
  (void)commit_function_filter();
  call(1, 1000);
  call(2, 900);
  call(3, 800);
  call(2, 700);
  land(1, 1000);
  catch_at(1000);
  call(3, 800);
  call(4, 700);
  jump_to(1000);
  EXPECT_EQ(tls_stream->filter.now.open, 1u);
  leave(1, 1000);
  EXPECT_EQ(tls_stream->filter.now.open, 0u);
  begin_function_filter(FunctionFilterMode::kEverything);
  (void)commit_function_filter();
  EXPECT_EQ(events(), "+1 +3 !3 +3 -1 ");
}

INSTANTIATE_TEST_SUITE_P(Paths, UnwindingTest, ::testing::Values(0, 2));

// The real ones of this C library.
TEST(JumpTarget, IsTheStackPointerOfTheFrame) {
  jmp_buf target;
  volatile uint64_t lowest = 0;
  if (_setjmp(target) == 0) {
    lowest = reinterpret_cast<uint64_t>(&target) - 1024;
    const uint64_t found = jump_target(target);
    EXPECT_GE(found, lowest);
    // On arm64 the frame record is at the bottom of the frame.
    EXPECT_LE(found, reinterpret_cast<uint64_t>(__builtin_frame_address(0)));
    EXPECT_EQ(found % 16, 0u);
  }
  sigjmp_buf with_mask;
  if (sigsetjmp(with_mask, 1) == 0) {
    EXPECT_EQ(jump_target(with_mask), jump_target(target)) << "of the same frame";
  }
}

}  // namespace
}  // namespace collect::agent

// The ways in which events come, as they are in the product: the compiler's hooks, XRay's sleds,
// and the functions that stand in front of the unwinder's and the C library's.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <setjmp.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <thread>

#include "agent/ring/hooks/hooks.h"
#include "agent/ring/modules.h"
#include "agent/ring/open_calls.h"
#include "agent/ring/sleds/sleds.h"
#include "agent/ring/stream.h"
#include "tests/agent/ring/ring_drain.h"
#include "tests/agent/shims/lifecycle_stub.h"
#include "tests/agent/shims/traced.h"
#include "tests/child/forked_child.h"

extern "C" {
[[noreturn]] void __longjmp_chk(jmp_buf target, int value);
}

namespace collect::agent {
namespace {

constexpr uint16_t kShimValid = atf::kDetailLrValid | atf::kDetailFpValid | atf::kDetailSpValid;

struct Detail {
  atf::DetailHeaderV2 header;
  atf::FunctionPayload payload;
};

template <class Function>
uint64_t id(Function* function) {
  ModuleRange range;
  const auto address = reinterpret_cast<uint64_t>(function);
  EXPECT_TRUE(module_find(address, range));
  return uint64_t{range.module_id} << 32 | (address - range.base);
}

class ShimsTest : public testing::Test {
 protected:
  void SetUp() override { begin(0); }
  void TearDown() override { sleds_out(); }

  void begin(uint8_t detail) {
    Settings settings;
    settings.buffer_mb = 8;
    settings.detail = detail;
    ASSERT_TRUE(recorder_init(settings));
    ASSERT_EQ(sled_counts().functions, 6u) << (sleds_problem() != nullptr ? sleds_problem() : "");
    start_recording();
  }
  void again_with_detail() {
    RingDrain().finish();
    begin(2);
  }
  // "+leaf -leaf !leaf", of the thread that was recorded last.
  std::string events() {
    RingDrain drain;
    drain.finish();
    EXPECT_EQ(drain.lost(), 0u);
    if (drain.streams.empty()) return "";
    const std::map<uint64_t, std::string> names{
        {id(traced_leaf), "leaf"},   {id(traced_call), "call"},     {id(traced_throw), "throw"},
        {id(traced_catch), "catch"}, {id(traced_cleanup), "clean"}, {id(traced_target), "target"},
        {id(sled_leaf), "sleaf"},    {id(sled_other), "sother"},    {id(sled_call), "scall"},
        {id(sled_tail), "stail"},    {id(sled_add), "sadd"},        {id(sled_sum), "ssum"}};
    std::string text;
    for (const atf::IndexEventV2& event : drain.streams.rbegin()->second.events()) {
      const auto name = names.find(event.function_id);
      EXPECT_NE(name, names.end()) << std::hex << event.function_id;
      text += event.event_kind == 1 ? '+' : event.event_kind == 2 ? '-' : '!';
      text += (name == names.end() ? "?" : name->second) + " ";
    }
    return text;
  }
  std::vector<Detail> details() {
    RingDrain drain;
    drain.finish();
    std::vector<Detail> all;
    const std::vector<uint8_t> bytes = drain.streams.begin()->second.detail.bytes();
    for (size_t at = 0; at < bytes.size();) {
      Detail detail{};
      std::memcpy(&detail.header, bytes.data() + at, atf::kDetailHeaderBytes);
      std::memcpy(&detail.payload, bytes.data() + at + atf::kDetailHeaderBytes,
                  atf::kFunctionPayloadBytes);
      at += detail.header.total_length;
      all.push_back(detail);
    }
    EXPECT_EQ(all.size(), drain.streams.begin()->second.index.records);
    return all;
  }
};

TEST_F(ShimsTest, HooksOfTheCompiler) {
  traced_leaf();
  traced_call([] { traced_leaf(); });
  EXPECT_EQ(events(), "+leaf -leaf +call +leaf -leaf -call ");
}

// All that is known at such a hook: who called, and the function's frame.
TEST_F(ShimsTest, DetailOfTheCompilersHooks) {
  again_with_detail();
  traced_leaf();
  const std::vector<Detail> all = details();
  ASSERT_EQ(all.size(), 2u);
  const auto frame = reinterpret_cast<uint64_t>(seen.frame);
  for (const Detail& detail : all) {
    EXPECT_EQ(detail.header.flags, kShimValid);
    EXPECT_EQ(detail.payload.function_id, id(traced_leaf));
    EXPECT_EQ(detail.payload.lr, reinterpret_cast<uint64_t>(seen.return_address));
    EXPECT_EQ(detail.payload.fp, frame);
    // The bottom of that frame.
    EXPECT_LE(detail.payload.sp, frame);
    EXPECT_GT(detail.payload.sp, frame - 256);
    EXPECT_EQ(detail.payload.sp % 16, 0u);
    EXPECT_EQ(detail.payload.sp, all[0].payload.sp);
    for (const uint64_t word : detail.payload.x_regs) EXPECT_EQ(word, 0u);
  }
  EXPECT_EQ(all[0].header.event_type, uint16_t{3});  // a call, in the format
  EXPECT_EQ(all[1].header.event_type, uint16_t{4});  // a return
}

TEST_F(ShimsTest, ExceptionEndsTheFramesThatItLeaves) {
  traced_catch([] { traced_call([] { traced_throw(); }); });
  traced_leaf();
  EXPECT_EQ(events(), "+catch +call +throw !throw !call +leaf -leaf -catch +leaf -leaf ");
}

// A cleanup runs before the exception leaves its frame, and may catch one of its own.
TEST_F(ShimsTest, CleanupsRunWithinTheirFrame) {
  traced_catch([] { traced_cleanup(traced_throw, [] { traced_catch(traced_throw); }); });
  EXPECT_EQ(
      events(),
      "+catch +clean +throw !throw +catch +throw !throw +leaf -leaf -catch !clean +leaf -leaf "
      "-catch ");
}

// Nothing of a sled runs when its frame is unwound: only the landing above says so.
TEST_F(ShimsTest, ExceptionThroughFramesWithSleds) {
  traced_catch([] { sled_call([] { sled_call(traced_throw); }); });
  sled_call(traced_leaf);
  EXPECT_EQ(
      events(),
      "+catch +scall +scall +throw !throw !scall !scall +leaf -leaf -catch +scall +leaf -leaf "
      "-scall ");
}

// A frame that has caught continues, and returns: also when nothing of it is hooked by the
// compiler.
TEST_F(ShimsTest, FramesBelowOneThatIsNotTracedAreOver) {
  sled_call([] {
    try {
      sled_call([] { throw 1; });
    } catch (int) {
      sled_leaf(1);
    }
  });
  EXPECT_EQ(events(), "+scall +scall !scall +sleaf -sleaf -scall ");
}

jmp_buf target;

// The frames that are jumped over have no end; an exception later does not find them any more.
TEST_F(ShimsTest, JumpsOfEveryName) {
  const Callee jumps[] = {
      [] { longjmp(target, 1); },
      [] { _longjmp(target, 1); },
      [] { siglongjmp(target, 1); },
      [] { __longjmp_chk(target, 1); },
  };
  std::string expected;
  for (const Callee jump : jumps) {
    static Callee now;
    now = jump;
    traced_catch(
        [] { traced_target(target, [] { sled_call([] { sled_call(now); }); }, traced_throw); });
    expected += "+catch +target +scall +scall +throw !throw !target +leaf -leaf -catch ";
  }
  EXPECT_EQ(events(), expected);
}

// A jump within the frame, past calls that have returned.
TEST_F(ShimsTest, JumpBackToAFrameThatHasNothingOpen) {
  traced_target(target, [] { longjmp(target, 5); }, traced_leaf);
  EXPECT_EQ(events(), "+target +leaf -leaf -target ");
}

// Of a frame without a landing pad no one says that it was left but the end of the thread.
TEST_F(ShimsTest, ThreadThatEndsWithinItsCalls) {
  traced_leaf();
  std::thread([] { sled_call([] { sled_call([] { pthread_exit(nullptr); }); }); }).join();
  EXPECT_EQ(events(), "+scall +scall !scall !scall ");
}

TEST_F(ShimsTest, ThreadThatNamesItself) {
  std::thread([] {
    traced_leaf();
    EXPECT_EQ(pthread_setname_np(pthread_self(), "by-pthread"), 0);
  }).join();
  std::thread([] {
    EXPECT_EQ(pthread_setname_np(pthread_self(), "far-too-long-for-it"), ERANGE);
    traced_leaf();
    EXPECT_EQ(prctl(PR_SET_NAME, "by-prctl-and-cut"), 0);
    char name[16];
    EXPECT_EQ(prctl(PR_GET_NAME, name), 0);
    EXPECT_STREQ(name, "by-prctl-and-cu");
  }).join();
  EXPECT_EQ(prctl(-1, 0, 0, 0, 0), -1);
  EXPECT_EQ(errno, EINVAL);
  StreamInfo info{};
  stream_info(*stream_at(0), info);
  EXPECT_STREQ(info.name, "by-pthread");
  stream_info(*stream_at(1), info);
  EXPECT_STREQ(info.name, "by-prctl-and-cu");
}

TEST_F(ShimsTest, WithoutARecordingExceptionsAndJumpsPassThrough) {
  RingDrain().finish();
  traced_catch([] { traced_call(traced_throw); });
  traced_target(target, [] { longjmp(target, 1); }, traced_leaf);
  start_recording();
  traced_leaf();
  EXPECT_EQ(events(), "+leaf -leaf ");
}

// What a sled's block of registers holds where the function begins.
TEST_F(ShimsTest, DetailOfSleds) {
  again_with_detail();
  EXPECT_EQ(sled_sum(1, 20, 300, 4000, 50'000, 600'000), 3'866'941u);
  const std::vector<Detail> all = details();
  ASSERT_EQ(all.size(), 2u);
  const uint64_t arguments[] = {1, 20, 300, 4000, 50'000, 600'000};
  for (size_t i = 0; i < 6; ++i) EXPECT_EQ(all[0].payload.x_regs[i], arguments[i]) << i;
#if defined(__x86_64__)
  EXPECT_EQ(all[0].header.flags, 0x3F | kShimValid);
#else
  EXPECT_EQ(all[0].header.flags, 0xFF | kShimValid);
#endif
  EXPECT_EQ(all[1].header.flags, 0x03 | kShimValid);
  EXPECT_EQ(all[1].payload.x_regs[0], 3'866'941u);
  EXPECT_EQ(all[1].payload.x_regs[1], 600'000u);
  for (size_t i = 2; i < 8; ++i) EXPECT_EQ(all[1].payload.x_regs[i], 0u);
  const auto here = reinterpret_cast<uint64_t>(__builtin_frame_address(0));
  for (const Detail& detail : all) {
    EXPECT_EQ(detail.payload.function_id, id(sled_sum));
    EXPECT_EQ(detail.payload.fp, here) << "the function makes no frame of its own";
    EXPECT_LT(detail.payload.sp, here);
    EXPECT_EQ(detail.payload.sp, all[0].payload.sp);
    EXPECT_EQ(detail.payload.lr, all[0].payload.lr);
#if defined(__x86_64__)
    EXPECT_EQ(detail.payload.sp % 16, 8u) << "a call has just been made";
#endif
  }
  // Back into this test.
  ModuleRange range;
  ASSERT_TRUE(module_find(all[0].payload.lr, range));
  EXPECT_EQ(range.base, (module_find(reinterpret_cast<uint64_t>(&traced_leaf), range), range.base));
}

#if defined(__x86_64__)
// The return address is where the stack pointer is at the function's first instruction.
TEST_F(ShimsTest, StackOfASledBeginsWithTheReturnAddress) {
  again_with_detail();
  sled_leaf(1);
  RingDrain drain;
  drain.finish();
  const std::vector<uint8_t> bytes = drain.streams.begin()->second.detail.bytes();
  constexpr size_t kStack = atf::kDetailHeaderBytes + atf::kFunctionPayloadBytes;
  Detail call{};
  std::memcpy(&call.payload, bytes.data() + atf::kDetailHeaderBytes, atf::kFunctionPayloadBytes);
  ASSERT_GE(call.payload.stack_size, 8u);
  uint64_t first = 0;
  std::memcpy(&first, bytes.data() + kStack, sizeof first);
  EXPECT_EQ(first, call.payload.lr);
}
#endif

// The registers are the next function's arguments by then.
TEST_F(ShimsTest, TailCallHasNoResult) {
  again_with_detail();
  EXPECT_EQ(sled_tail(5), 12u);
  RingDrain drain;
  drain.finish();
  const TakenStream& stream = drain.streams.begin()->second;
  const std::vector<atf::IndexEventV2> events = stream.events();
  ASSERT_EQ(events.size(), 4u);
  const uint64_t ids[] = {id(sled_tail), id(sled_tail), id(sled_other), id(sled_other)};
  const std::vector<uint8_t> details = stream.detail.bytes();
  uint16_t flags[4];
  size_t at = 0;
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(events[i].function_id, ids[i]) << i;
    EXPECT_EQ(events[i].event_kind, i % 2 == 0 ? 1 : 2) << i;
    atf::DetailHeaderV2 header{};
    std::memcpy(&header, details.data() + at, sizeof header);
    flags[i] = header.flags;
    at += header.total_length;
  }
  EXPECT_EQ(flags[1], kShimValid);
  EXPECT_EQ(flags[3], 0x03 | kShimValid);
}

TEST_F(ShimsTest, SledsKeepArgumentsAndResultsInVectorRegisters) {
  EXPECT_EQ(sled_add(1.5, 2.25), 3.75);
  again_with_detail();
  EXPECT_EQ(sled_add(1.5, 2.25), 3.75);
  EXPECT_EQ(details().size(), 2u);
}

TEST_F(ShimsTest, SledsOfAFunctionFilter) {
  begin_function_filter(FunctionFilterMode::kAllBut);
  const uint64_t left_out = id(sled_leaf);
  ASSERT_TRUE(add_to_function_filter(&left_out, 1));
  (void)commit_function_filter();
  EXPECT_EQ(sled_leaf(1) + sled_other(1), 12u);
  sled_call(traced_leaf);
  EXPECT_EQ(events(), "+sother -sother +scall +leaf -leaf -scall ");
}

// ---- dlclose

bool changing_at_unload;
const char* plugin_path() {
  return SHIMS_PLUGIN;
}
const ModuleRecord* plugin_module() {
  const ModuleRecord* found = nullptr;
  for (uint32_t i = 0; i < module_count(); ++i) {
    if (std::strcmp(module_at(i).path, plugin_path()) == 0) found = &module_at(i);
  }
  return found;
}
void* open_plugin() {
  void* const library = dlopen(plugin_path(), RTLD_NOW);
  EXPECT_NE(library, nullptr) << dlerror();
  changing_at_unload = false;
  reinterpret_cast<void (*)(Callee)>(dlsym(library, "set_at_unload"))(
      [] { changing_at_unload = (g_state.load() & kStateModulesChanging) != 0; });
  (void)modules_scan();
  return library;
}

// From the beginning of a dlclose on another library may come to lie where the closed one was.
TEST_F(ShimsTest, LooksUpModulesAgainWhileOneIsClosed) {
  running = true;
  void* const library = open_plugin();
  const ModuleRecord* const module = plugin_module();
  ASSERT_NE(module, nullptr);
  EXPECT_EQ(module->unloaded_ns.load(), 0u);
  traced_leaf();
  EXPECT_EQ(dlclose(library), 0);
  EXPECT_TRUE(changing_at_unload);
  EXPECT_EQ(g_state.load() & kStateModulesChanging, 0u);
  EXPECT_NE(module->unloaded_ns.load(), 0u);
  traced_leaf();
  running = false;
  EXPECT_EQ(events(), "+leaf -leaf +leaf -leaf ");
}

// A module that stays loaded keeps its number while others come and go.
TEST_F(ShimsTest, ModulesKeepTheirNumbers) {
  running = true;
  const auto module_of = [](const void* address) {
    ModuleRange range{};
    EXPECT_TRUE(module_find(reinterpret_cast<uint64_t>(address), range));
    return range.module_id;
  };
  const void* const of_libc = dlsym(RTLD_NEXT, "gnu_get_libc_version");
  ASSERT_NE(of_libc, nullptr);
  const uint32_t libc = module_of(of_libc);
  const uint32_t program = module_of(reinterpret_cast<const void*>(&plugin_path));
  EXPECT_NE(libc, program);
  const uint32_t before = module_count();
  for (uint32_t round = 1; round <= 3; ++round) {
    const uint32_t changes = module_changes();
    void* const library = open_plugin();
    const ModuleRecord* const module = plugin_module();
    ASSERT_NE(module, nullptr);
    EXPECT_EQ(module->module_id, before + round - 1);
    EXPECT_EQ(module_of(dlsym(library, "set_at_unload")), module->module_id);
    EXPECT_EQ(module_count(), before + round) << "one more, and no other again";
    EXPECT_EQ(module_of(of_libc), libc);
    EXPECT_EQ(module_of(reinterpret_cast<const void*>(&plugin_path)), program);
    EXPECT_GT(module_changes(), changes);
    EXPECT_EQ(dlclose(library), 0);
    EXPECT_NE(module->unloaded_ns.load(), 0u);
    EXPECT_EQ(module_of(of_libc), libc);
  }
  for (uint32_t i = 0; i < before; ++i) EXPECT_EQ(module_at(i).unloaded_ns.load(), 0u) << i;
  running = false;
}

TEST_F(ShimsTest, WithoutAnAgentALibraryIsJustClosed) {
  void* const library = open_plugin();
  const ModuleRecord* const module = plugin_module();
  ASSERT_NE(module, nullptr);
  EXPECT_EQ(dlclose(library), 0);
  EXPECT_FALSE(changing_at_unload);
  EXPECT_EQ(module->unloaded_ns.load(), 0u) << "no one looked";
}

// ---- _exit

TEST_F(ShimsTest, ReportsTheExitCodeBeforeTheProcessEnds) {
  void (*const exits[])(int) = {[](int code) { ::_exit(code); }, [](int code) { ::_Exit(code); }};
  for (const auto exit_by : exits) {
    int report[2];
    ASSERT_EQ(pipe(report), 0);
    child::ForkedChild child([&] {
      exit_report = report[1];
      exit_by(200);
      return 0;
    });
    close(report[1]);
    int code = -1;
    EXPECT_EQ(read(report[0], &code, sizeof code), ssize_t{sizeof code});
    EXPECT_EQ(code, 200);
    EXPECT_EQ(read(report[0], &code, sizeof code), 0) << "reported twice";
    EXPECT_EQ(child.wait().describe(), "exit 200");
    close(report[0]);
  }
}

}  // namespace
}  // namespace collect::agent

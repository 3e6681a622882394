// XRay sleds: their machine code, as an independent assembler wrote it, and real ones in this
// program, patched in and out while threads run through them.
#include "agent/ring/sleds/sleds.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "agent/ring/hooks/hooks.h"
#include "agent/ring/modules.h"
#include "agent/ring/sleds/sled_code.h"
#include "agent/ring/sleds/xray_module.h"
#include "tests/agent/ring/ring_drain.h"

extern "C" {
uint64_t sled_leaf(uint64_t value);
uint64_t sled_other(uint64_t value);
extern collect_xray_module collect_xray_this_module;
}

namespace collect::agent {
namespace {

template <size_t kBytes>
std::vector<uint8_t> bytes(const uint8_t (&code)[kBytes]) {
  return {code, code + kBytes};
}

// clang -c; objdump -d: mov $0x12345678,%r10d; call s+0x1000; mov $-16,%r10d; jmp s-0x1000
TEST(SledCodeTest, BytesForX86) {
  uint8_t code[x86_64::SledCode::kBytes];
  ASSERT_TRUE(x86_64::SledCode::encode(SledKind::kEnter, 0x400000, 0x12345678, 0x401000, code));
  EXPECT_EQ(bytes(code), (std::vector<uint8_t>{0x41, 0xba, 0x78, 0x56, 0x34, 0x12, 0xe8, 0xf5, 0x0f,
                                               0x00, 0x00}));
  ASSERT_TRUE(x86_64::SledCode::encode(SledKind::kExit, 0x40000b, -16, 0x3ff000, code));
  EXPECT_EQ(bytes(code), (std::vector<uint8_t>{0x41, 0xba, 0xf0, 0xff, 0xff, 0xff, 0xe9, 0xea, 0xef,
                                               0xff, 0xff}));
  EXPECT_FALSE(x86_64::SledCode::encode(SledKind::kEnter, 0, 0, 0x8000000b, code));
  EXPECT_TRUE(x86_64::SledCode::encode(SledKind::kEnter, 0, 0, 0x8000000a, code));
  EXPECT_FALSE(x86_64::SledCode::encode(SledKind::kEnter, 0, int64_t{1} << 31, 0, code));
  const uint8_t entry[] = {0xeb, 0x09};
  const uint8_t exit[] = {0xc3, 0x2e};
  EXPECT_TRUE(x86_64::SledCode::is_idle(entry, SledKind::kEnter));
  EXPECT_FALSE(x86_64::SledCode::is_idle(exit, SledKind::kTail));
  EXPECT_TRUE(x86_64::SledCode::is_idle(exit, SledKind::kExit));
}

TEST(SledCodeTest, BytesForArm64) {
  const auto words = [](const uint8_t(&code)[aarch64::SledCode::kBytes]) {
    std::vector<uint32_t> all(aarch64::SledCode::kBytes / 4);
    memcpy(all.data(), code, sizeof code);
    return all;
  };
  uint8_t code[aarch64::SledCode::kBytes];
  // The branch is 16 bytes into the sled.
  ASSERT_TRUE(aarch64::SledCode::encode(SledKind::kEnter, 0x400000, 0x12345678, 0x401010, code));
  EXPECT_EQ(words(code), (std::vector<uint32_t>{0xd503201f, 0xa9bf47fe, 0x528acf11, 0x72a24691,
                                                0x94000400, 0xa8c147fe, 0xd503201f, 0xd503201f}));
  ASSERT_TRUE(aarch64::SledCode::encode(SledKind::kExit, 0x400000, -16, 0x3ff010, code));
  EXPECT_EQ(words(code), (std::vector<uint32_t>{0xd503201f, 0xa9bf47fe, 0x529ffe11, 0x72bffff1,
                                                0x97fffc00, 0xa8c147fe, 0xd503201f, 0xd503201f}));
  EXPECT_FALSE(aarch64::SledCode::encode(SledKind::kEnter, 0, 0, 0x8000010, code)) << "128 MB";
  EXPECT_TRUE(aarch64::SledCode::encode(SledKind::kEnter, 0, 0, 0x800000c, code));
  // What follows tells an exit from a tail call: ret, b, br x17.
  for (const auto& [next, kind] :
       {std::pair{0xd65f03c0u, SledKind::kExit}, std::pair{0x14000010u, SledKind::kTail},
        std::pair{0xd61f0220u, SledKind::kTail}}) {
    uint8_t sled[aarch64::SledCode::kBytes + 4] = {};
    memcpy(sled + aarch64::SledCode::kBytes, &next, sizeof next);
    EXPECT_EQ(aarch64::SledCode::kind_of(sled, SledKind::kExit), kind) << std::hex << next;
  }
}

std::atomic<uint64_t> entered{0};
std::atomic<uint64_t> left{0};
HookFrame sled_frame() {
  HookFrame frame;
  frame.by_sled = true;
  return frame;
}
void on_enter(uint64_t function, const uint64_t*, uint64_t) {
  entered.fetch_add(1, std::memory_order_relaxed);
  on_event(function, atf::EventKind::kCall, sled_frame());
}
void on_exit(uint64_t function, const uint64_t*, uint64_t) {
  left.fetch_add(1, std::memory_order_relaxed);
  on_event(function, atf::EventKind::kReturn, sled_frame());
}
void on_tail(uint64_t, const uint64_t*, uint64_t) {
  ADD_FAILURE() << "there is no tail call";
}

class SledsTest : public ::testing::Test {
 protected:
  void SetUp() override { set_up(FullPolicy::kDrop); }
  void set_up(FullPolicy full) {
    Settings settings;
    settings.buffer_mb = full == FullPolicy::kWait ? 1 : 8;  // what waits is kept whole by the test
    settings.full = full;
    ASSERT_TRUE(recorder_init(settings));
    static constexpr SledHandler kHandlers[] = {on_enter, on_exit, on_tail};
    sleds_register(collect_xray_this_module, kHandlers);
    ASSERT_EQ(sled_counts().functions, 2u) << (sleds_problem() != nullptr ? sleds_problem() : "");
    entered = left = 0;
  }
  void TearDown() override {
    sleds_out();
    sleds_unregister(collect_xray_this_module);
  }
  static uint64_t call_both() { return sled_leaf(41) + sled_other(1); }
};

TEST_F(SledsTest, CallsHandlersOnlyDuringARecording) {
  EXPECT_EQ(call_both(), 132u);
  EXPECT_EQ(entered, 0u);
  start_recording();
  EXPECT_EQ(sled_counts().patched, 2u);
  EXPECT_EQ(call_both(), 132u);
  EXPECT_EQ(entered, 2u);
  EXPECT_EQ(left, 2u);
  RingDrain drain;
  drain.finish();
  EXPECT_EQ(sled_counts().patched, 0u);
  EXPECT_EQ(call_both(), 132u);
  EXPECT_EQ(entered, 2u);
  EXPECT_EQ(drain.records(), 4u);
  const auto events = drain.streams.begin()->second.events();
  ModuleRange range;
  const auto leaf = reinterpret_cast<uint64_t>(&sled_leaf);
  ASSERT_TRUE(module_find(leaf, range));
  EXPECT_EQ(events[0].function_id, uint64_t{range.module_id} << 32 | (leaf - range.base));
  EXPECT_EQ(events[1].function_id, events[0].function_id);
}

TEST_F(SledsTest, PatchesOnlyFilteredFunctions) {
  start_recording();
  ModuleRange range;
  const auto leaf = reinterpret_cast<uint64_t>(&sled_leaf);
  ASSERT_TRUE(module_find(leaf, range));
  const uint64_t id = uint64_t{range.module_id} << 32 | (leaf - range.base);
  begin_function_filter(FunctionFilterMode::kOnly);
  ASSERT_TRUE(add_to_function_filter(&id, 1));
  EXPECT_EQ(commit_function_filter().functions_patched, 1u);
  EXPECT_EQ(call_both(), 132u);
  EXPECT_EQ(entered, 1u);
  begin_function_filter(FunctionFilterMode::kEverything);
  EXPECT_EQ(commit_function_filter().functions_patched, 2u);
  EXPECT_EQ(call_both(), 132u);
  EXPECT_EQ(entered, 3u);
  RingDrain drain;
  drain.finish();
  EXPECT_EQ(drain.records(), 6u);
}

// The calls of one thread, which calls one function after the other, never within: what a change
// may cost is the one call that it is in.
uint64_t torn_pairs(const TakenStream& stream) {
  uint64_t torn = 0;
  uint64_t open = 0;
  for (const atf::IndexEventV2& event : stream.events()) {
    const bool is_call = event.event_kind == 1;
    if (is_call ? open != 0 : open != event.function_id) ++torn;
    open = is_call ? event.function_id : 0;
  }
  return torn + (open != 0 ? 1 : 0);
}

class BusyThreads {
 public:
  BusyThreads() {
    for (int i = 0; i < 3; ++i) {
      threads_.emplace_back([this] {
        while (!done_.load(std::memory_order_relaxed)) {
          if (sled_leaf(41) + sled_other(1) != 132) wrong_.fetch_add(1);
        }
        running_.fetch_sub(1);
      });
    }
  }
  ~BusyThreads() { stop(); }
  // How many calls gave a wrong result. Takes what is recorded until the last thread is out of its
  // hook: with a full ring it waits there.
  uint64_t stop(RingDrain* drain = nullptr) {
    done_ = true;
    while (drain != nullptr && running_.load() != 0) drain->take();
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
    return wrong_;
  }

 private:
  std::atomic<bool> done_{false};
  std::atomic<int> running_{3};
  std::atomic<uint64_t> wrong_{0};
  std::vector<std::thread> threads_;
};

// Takes what is recorded meanwhile, for the threads wait when the ring is full.
void wait_for_calls(RingDrain& drain) {
  const uint64_t before = left.load();
  do {
    drain.take();
    std::this_thread::yield();
  } while (left.load() < before + 20);
}

TEST_F(SledsTest, PatchedInAndOutWhileThreadsCall) {
  BusyThreads threads;
  RingDrain drain;
  for (int i = 0; i < 2000; ++i) {
    sleds_in();
    if (i % 20 == 0) wait_for_calls(drain);
    sleds_out();
  }
  EXPECT_EQ(threads.stop(), 0u);
}

TEST_F(SledsTest, RecordingsBeginAndEndWhileThreadsCall) {
  BusyThreads threads;
  for (int i = 0; i < 200; ++i) {
    start_recording();
    RingDrain drain;
    wait_for_calls(drain);
    drain.finish();
    for (const auto& [id, stream] : drain.streams) {
      if (stream.index.lost_total != 0) continue;  // then pairs are torn for another reason
      EXPECT_LE(torn_pairs(stream), 2u) << "recording " << i;
    }
  }
  EXPECT_EQ(threads.stop(), 0u);
}

TEST_F(SledsTest, FiltersComeAndGoWhileThreadsCall) {
  TearDown();
  set_up(FullPolicy::kWait);
  ModuleRange range;
  const auto leaf = reinterpret_cast<uint64_t>(&sled_leaf);
  ASSERT_TRUE(module_find(leaf, range));
  const uint64_t id = uint64_t{range.module_id} << 32 | (leaf - range.base);
  BusyThreads threads;
  start_recording();
  RingDrain drain;
  constexpr uint64_t kChanges = 60;
  for (uint64_t i = 0; i < kChanges; ++i) {
    begin_function_filter(static_cast<FunctionFilterMode>(i % 3));
    ASSERT_TRUE(add_to_function_filter(&id, 1));
    (void)commit_function_filter();
    wait_for_calls(drain);
  }
  EXPECT_EQ(threads.stop(&drain), 0u);
  drain.finish();
  EXPECT_EQ(drain.lost(), 0u);
  EXPECT_GE(drain.streams.size(), 1u);
  for (const auto& [stream_id, stream] : drain.streams) {
    EXPECT_LE(torn_pairs(stream), 2 * kChanges + 2);
  }
}

// Kind 3: the entry of a function whose argument someone wants in a log. What is above it is no
// sled of ours, and no fault.
TEST_F(SledsTest, EntryWithAnArgumentIsAnEntry) {
  struct Entry {
    int64_t sled;
    int64_t function;
    uint8_t kind;
    uint8_t always;
    uint8_t version;
    uint8_t zero[13];
  };
  static constinit Entry entries[5] = {{1, 1, 1, 1, 1, {}}};  // not in .bss
  const auto* const real = static_cast<const Entry*>(collect_xray_this_module.map_begin);
  ASSERT_EQ(static_cast<const Entry*>(collect_xray_this_module.map_end) - real, 4);
  for (int i = 0; i < 4; ++i) {
    entries[i] = real[i];
    const int64_t moved =
        reinterpret_cast<intptr_t>(&real[i]) - reinterpret_cast<intptr_t>(&entries[i]);
    entries[i].sled += moved;
    entries[i].function += moved;
    if (entries[i].kind == 0) entries[i].kind = 3;
  }
  entries[4] = entries[0];
  entries[4].kind = 4;
  sleds_unregister(collect_xray_this_module);
  EXPECT_EQ(sled_counts().functions, 0u);
  collect_xray_module copy = collect_xray_this_module;
  copy.map_begin = entries;
  copy.map_end = entries + 5;
  static constexpr SledHandler kHandlers[] = {on_enter, on_exit, on_tail};
  sleds_register(copy, kHandlers);
  EXPECT_NE(copy.agent, nullptr);
  EXPECT_EQ(sled_counts().functions, 2u);
  start_recording();
  EXPECT_EQ(sled_counts().patched, 2u);
  EXPECT_EQ(call_both(), 132u);
  EXPECT_EQ(entered, 2u);
  EXPECT_EQ(left, 2u);
  RingDrain drain;
  drain.finish();
  EXPECT_EQ(drain.records(), 4u);
  EXPECT_EQ(sled_counts().patched, 0u);
  sleds_unregister(copy);
}

TEST_F(SledsTest, MapThatIsNoneIsRefused) {
  collect_xray_module copy = collect_xray_this_module;
  copy.agent = nullptr;
  static constexpr SledHandler kHandlers[] = {on_enter, on_exit, on_tail};
  const uint32_t functions = sled_counts().functions;
  const auto refused = [&](const char* why) {
    sleds_register(copy, kHandlers);
    EXPECT_EQ(copy.agent, nullptr) << why;
    ASSERT_NE(sleds_problem(), nullptr);
    EXPECT_NE(std::string(sleds_problem()).find(why), std::string::npos) << sleds_problem();
    copy = collect_xray_this_module;
    copy.agent = nullptr;
  };
  copy.map_end = copy.map_begin;
  refused("no xray_instr_map");
  copy.map_begin = copy.map_end = nullptr;
  refused("no xray_instr_map");
  copy.map_end = static_cast<const char*>(copy.map_end) - 8;
  refused("damaged");
  copy.map_end = reinterpret_cast<const void*>(UINTPTR_MAX);
  refused("damaged");
  // Entries elsewhere, with a wrong version, and that point anywhere: all in one.
  alignas(16) static constinit uint8_t entries[32 * 3] = {1};  // not in .bss
  entries[18] = 3;
  entries[32 + 18] = entries[64 + 18] = 2;
  entries[32 + 7] = 0x7f;
  copy.map_begin = entries;
  copy.map_end = entries + sizeof entries;
  refused("version other than 2");
  copy.map_begin = entries + 32;
  copy.map_end = entries + sizeof entries;
  refused("out of reach");
  copy.abi = 99;
  sleds_register(copy, kHandlers);
  EXPECT_EQ(copy.agent, nullptr);
  EXPECT_EQ(sled_counts().functions, functions);
}

}  // namespace
}  // namespace collect::agent

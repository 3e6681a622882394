// Messages of the agent as values of storage.
#include "daemon/ingest/link/wire_values.h"

#include <gtest/gtest.h>

namespace collect::ingest {
namespace {

TEST(WireValuesTest, ModulesAndStreams) {
  wire::Modules modules;
  wire::Module& module = *modules.add_modules();
  module.set_module_id(1);
  module.set_path("/lib/one.so");
  module.set_build_id("\x01\x02");
  module.set_base_address(2);
  module.set_size(3);
  module.set_loaded_ns(4);
  module.set_unloaded_ns(5);
  modules.add_modules()->set_module_id(6);
  const auto stored = to_storage(modules);
  ASSERT_EQ(stored.size(), 2u);
  EXPECT_EQ(stored[0].module_id, 1u);
  EXPECT_EQ(stored[0].path, "/lib/one.so");
  EXPECT_EQ(stored[0].build_id, (std::vector<uint8_t>{1, 2}));
  EXPECT_EQ(stored[0].base_address, 2u);
  EXPECT_EQ(stored[0].size, 3u);
  EXPECT_EQ(stored[0].loaded_ns, 4u);
  EXPECT_EQ(stored[0].unloaded_ns, 5u);
  EXPECT_EQ(stored[1].module_id, 6u);

  wire::StreamOpen open;
  open.set_stream_id(7);
  open.set_thread_id(8);
  open.set_thread_name("worker");
  open.set_start_ns(9);
  const storage::StreamInfo stream = to_storage(open);
  EXPECT_EQ(stream.stream_id, 7u);
  EXPECT_EQ(stream.thread_id, 8u);
  EXPECT_EQ(stream.thread_name, "worker");
  EXPECT_EQ(stream.start_ns, 9u);

  wire::StreamClose close;
  close.set_stream_id(10);
  close.set_thread_name("late name");
  close.set_end_ns(11);
  close.set_index_count(12);
  close.set_index_lost(13);
  close.set_detail_count(14);
  close.set_detail_lost(15);
  close.set_calls_left_out(16);
  const storage::StreamEnd end = to_storage(close);
  EXPECT_EQ(end.stream_id, 10u);
  EXPECT_EQ(end.thread_name, "late name");
  EXPECT_EQ(end.end_ns, 11u);
  EXPECT_EQ(end.index_count, 12u);
  EXPECT_EQ(end.index_lost, 13u);
  EXPECT_EQ(end.detail_count, 14u);
  EXPECT_EQ(end.detail_lost, 15u);
  EXPECT_EQ(end.calls_left_out, 16u);
}

TEST(WireValuesTest, ChangesOfTheDetail) {
  wire::DetailState change;
  change.set_at_ns(1);
  change.set_pre_roll_from_ns(2);
  change.set_pre_roll_records(3);
  change.set_reason("why");
  for (const auto& [mode, name] :
       {std::pair(wire::DETAIL_OFF, "off"), std::pair(wire::DETAIL_ARMED, "armed"),
        std::pair(wire::DETAIL_ON, "on")}) {
    change.set_mode(mode);
    const storage::DetailStateChange kept = to_storage(change);
    EXPECT_EQ(kept.mode, name);
    EXPECT_EQ(kept.at_ns, 1u);
    EXPECT_EQ(kept.pre_roll_from_ns, 2u);
    EXPECT_EQ(kept.pre_roll_records, 3u);
    EXPECT_EQ(kept.reason, "why");
    EXPECT_EQ(static_cast<int>(detail_mode(mode)), static_cast<int>(mode));
  }
}

TEST(WireValuesTest, StallsOfNoLengthAndOfOnePart) {
  wire::Stall stall;
  stall.set_kind(wire::Stall::STOPPED);
  stall.set_first_ns(100);
  stall.set_last_ns(100);
  EXPECT_TRUE(to_storage(stall).ok());
  stall.set_last_ns(150);
  const auto plain = to_storage(stall);
  ASSERT_TRUE(plain.ok() && plain->has_value());
  EXPECT_EQ((*plain)->stalled_ns, 50u);
  EXPECT_EQ((*plain)->count, 1u);
  stall.set_stalled_ns(50);
  EXPECT_TRUE(to_storage(stall).ok());
  stall.set_stalled_ns(49);
  EXPECT_FALSE(to_storage(stall).ok()) << "one stall has no pauses";
  stall.set_count(1);
  EXPECT_FALSE(to_storage(stall).ok());
  stall.set_count(2);
  const auto joined = to_storage(stall);
  ASSERT_TRUE(joined.ok() && joined->has_value());
  EXPECT_EQ((*joined)->stalled_ns, 49u);
  EXPECT_EQ((*joined)->count, 2u);
  stall.set_stalled_ns(51);
  EXPECT_FALSE(to_storage(stall).ok());
}

TEST(WireValuesTest, KindsOfStallsAndOfTimesOffTheProcessor) {
  using Kind = storage::StallKind;
  const auto kept = [](int kind) {
    wire::Stall stall;
    stall.set_kind(static_cast<wire::Stall::Kind>(kind));
    stall.set_first_ns(100);
    stall.set_last_ns(150);
    const auto known = to_storage(stall);
    EXPECT_TRUE(known.ok());
    return known.ok() && *known ? std::optional((*known)->kind) : std::nullopt;
  };
  EXPECT_EQ(kept(wire::Stall::PAGE_WAIT), Kind::kPageWait);
  EXPECT_EQ(kept(wire::Stall::STOPPED), Kind::kStopped);
  EXPECT_EQ(kept(wire::Stall::SUSPENDED), Kind::kSuspended);
  EXPECT_EQ(kept(wire::Stall::BLOCKED), Kind::kBlocked);
  EXPECT_EQ(kept(wire::Stall::PREEMPTED), Kind::kPreempted);
  EXPECT_EQ(kept(wire::Stall::LOCK), Kind::kLock);
  EXPECT_EQ(kept(wire::Stall::SAMPLE), Kind::kSample);
  EXPECT_EQ(kept(99), std::nullopt);
}

// Their sum is no time, however many were joined.
TEST(WireValuesTest, SamplesTakeNoTime) {
  wire::Stall stall;
  stall.set_kind(wire::Stall::SAMPLE);
  stall.set_first_ns(100);
  stall.set_last_ns(150);
  stall.set_count(3);
  const auto known = to_storage(stall);
  ASSERT_TRUE(known.ok() && *known);
  EXPECT_EQ((*known)->stalled_ns, 0u);
  EXPECT_EQ((*known)->count, 3u);
}

TEST(WireValuesTest, LockOfAWaitAndItsOwner) {
  wire::Stall stall;
  stall.set_kind(wire::Stall::LOCK);
  stall.set_first_ns(100);
  stall.set_last_ns(150);
  stall.set_place(0x5581f0001020);
  stall.set_owner(4711);
  const auto known = to_storage(stall);
  ASSERT_TRUE(known.ok() && *known);
  EXPECT_EQ((*known)->place, 0x5581f0001020u);
  EXPECT_EQ((*known)->owner, 4711u);
}

// Only what belongs to that end is kept: a program that exited has no signal.
TEST(WireValuesTest, EndOfAProcess) {
  using How = storage::ProcessEnd::How;
  const auto kept = [](int how) {
    wire::ProcessEnd end;
    end.set_how(static_cast<wire::ProcessEnd::How>(how));
    end.set_exit_code(300);
    end.set_signal(11);
    end.set_core_dumped(true);
    return to_storage(end);
  };
  EXPECT_EQ(kept(wire::ProcessEnd::HOW_UNSPECIFIED), (storage::ProcessEnd{How::kNotKnown}));
  EXPECT_EQ(kept(wire::ProcessEnd::EXITED), (storage::ProcessEnd{How::kExited, 300}));
  EXPECT_EQ(kept(wire::ProcessEnd::SIGNALED), (storage::ProcessEnd{How::kSignaled, 0, 11, true}));
  EXPECT_EQ(kept(wire::ProcessEnd::EXECED), (storage::ProcessEnd{How::kExeced}));
  EXPECT_EQ(kept(wire::ProcessEnd::UNKNOWN), (storage::ProcessEnd{How::kUnknown}));
  EXPECT_EQ(kept(99), (storage::ProcessEnd{How::kUnknown})) << "of a later version";
}

}  // namespace
}  // namespace collect::ingest

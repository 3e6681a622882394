// What goes over the data channel, and in which order; acks, cuts and resuming.
#include "agent/drain/ship/shipper.h"
#include "tests/agent/drain/drain_fixture.h"

namespace collect::agent {
namespace {

class DrainDataTest : public DrainTest {};

TEST_F(DrainDataTest, ExplainsBeforeItShips) {
  Settings settings = connecting();
  settings.max_depth = 12;
  settings.longer_than_ns = 3456;
  ASSERT_TRUE(drain_start(settings));
  const uint32_t first = fake::add_stream(4711, "worker \xff name");
  fake::write_index(first, 100);
  fake::write_detail(first, 40);
  collector.welcome_pair();
  EXPECT_EQ(collector.data_hello.process_id(), collector.control_hello.process_id());
  EXPECT_EQ(collector.data_hello.process_id().size(), 16u);
  EXPECT_EQ(collector.data_hello.pid(), static_cast<uint32_t>(getpid()));
  EXPECT_EQ(collector.data_hello.recording(), 1u);
  EXPECT_TRUE(collector.data_hello.is_recording());
  EXPECT_EQ(collector.data_hello.os(), wire::OS_LINUX);
  EXPECT_EQ(collector.data_hello.clock_type(), 3u);
  EXPECT_NE(collector.data_hello.executable().find("agent_drain"), std::string::npos);

  wire::RecordingStart start;
  const auto frame = collector.take();
  ASSERT_TRUE(frame && frame->type == FrameType::kRecordingStart);
  ASSERT_TRUE(start.ParseFromString(frame->body));
  EXPECT_EQ(start.recording(), 1u);
  EXPECT_EQ(start.atf_version(), 2u);
  EXPECT_EQ(start.start_ns(), recording_start_ns());
  EXPECT_EQ(start.max_depth(), 12u);
  EXPECT_EQ(start.longer_than_ns(), 3456u);
  EXPECT_EQ(start.late_ns(), 0u);
  EXPECT_EQ(start.start_unix_ns(), 1'700'000'000'000'000'000u);
  ASSERT_EQ(collector.take()->type, FrameType::kModules);
  ASSERT_EQ(collector.take()->type, FrameType::kStreamOpen);
  ASSERT_EQ(collector.modules.size(), 1u);
  EXPECT_EQ(collector.modules[0].path(), "/usr/bin/program");
  EXPECT_EQ(collector.modules[0].build_id(), std::string(19, '\0') + "\x42");
  EXPECT_EQ(collector.modules[0].module_id(), 0u);
  EXPECT_EQ(collector.modules[0].size(), 0x5000u);
  EXPECT_EQ(collector.modules[0].loaded_ns(), 66u);
  EXPECT_EQ(collector.modules[0].unloaded_ns(), 0u);
  EXPECT_EQ(collector.modules[0].base_address(), 0x7f0000000000u);
  EXPECT_EQ(collector.opened[first].thread_id(), 4711u);
  EXPECT_EQ(collector.opened[first].recording(), 1u);
  EXPECT_EQ(collector.opened[first].start_ns(), 500u);
  EXPECT_EQ(collector.opened[first].thread_name(), "worker ? name");

  collector.take_records(first, 0, 100);
  collector.take_records(first, 1, 40);
  expect_index(first, 100);
  std::vector<uint8_t> details;
  for (uint64_t n = 0; n < 40; ++n) {
    const auto record = fake::detail_record(n);
    details.insert(details.end(), record.begin(), record.end());
  }
  EXPECT_EQ(collector.lane(first, 1).bytes, details);
}

TEST_F(DrainDataTest, ModuleGoesBeforeThePageThatRefersToIt) {
  ASSERT_TRUE(drain_start(connecting()));
  const uint32_t stream = fake::add_stream(1, "main");
  collector.welcome_pair();
  collector.take_until(FrameType::kStreamOpen);
  // Loaded in the moment between the drain's look at the modules and its look at the records.
  fake::after_next_span([] { fake::add_module("/usr/lib/plugin.so"); });
  fake::write_index(stream, 10);
  collector.take_records(stream, 0, 10);
  ASSERT_EQ(collector.modules.size(), 2u);
  EXPECT_EQ(collector.modules[1].module_id(), 1u);
  EXPECT_EQ(collector.modules[1].path(), "/usr/lib/plugin.so");
}

// So many in that moment that not all of them fit in what is sent at once.
TEST_F(DrainDataTest, SendsManyModulesBeforeThePageThatUsesThem) {
  constexpr size_t kModules = 1000;
  ASSERT_TRUE(drain_start(connecting()));
  const uint32_t stream = fake::add_stream(1, "main");
  collector.welcome_pair();
  collector.take_until(FrameType::kStreamOpen);
  fake::after_next_span([] {
    for (size_t i = 1; i < kModules; ++i) {
      fake::add_module(("/usr/lib/" + std::string(200, 'x') + std::to_string(i)).c_str());
    }
  });
  fake::write_index(stream, 10);
  collector.take_records(stream, 0, 10);
  EXPECT_EQ(collector.modules.size(), kModules);
}

TEST_F(DrainDataTest, SendsAnUnloadedModuleOnceMore) {
  fake::add_module("/usr/lib/plugin.so");
  ASSERT_TRUE(drain_start(connecting()));
  collector.welcome_pair();
  collector.take_until(FrameType::kModules);
  fake::unload_module(1);
  collector.take_until(FrameType::kModules);
  ASSERT_EQ(collector.modules.size(), 3u);
  EXPECT_EQ(collector.modules[2].module_id(), 1u);
  EXPECT_EQ(collector.modules[2].unloaded_ns(), 77u);
}

TEST_F(DrainDataTest, ManyModulesTakeManyFrames) {
  const std::string long_path(500, 'm');
  for (int i = 1; i < 1000; ++i) fake::add_module("/" + long_path + std::to_string(i));
  ASSERT_TRUE(drain_start(connecting()));
  const uint32_t stream = fake::add_stream(1, "main");
  fake::write_index(stream, 5);
  collector.welcome_pair();
  collector.take_records(stream, 0, 5);
  ASSERT_EQ(collector.modules.size(), 1000u);
  for (uint32_t i = 0; i < 1000; ++i) ASSERT_EQ(collector.modules[i].module_id(), i);
}

TEST_F(DrainDataTest, IndexLanesGoBeforeDetailLanes) {
  ASSERT_TRUE(drain_start(connecting()));
  const uint32_t one = fake::add_stream(1, "one");
  const uint32_t two = fake::add_stream(2, "two");
  for (const uint32_t stream : {one, two}) {
    fake::write_detail(stream, 2000);
    fake::write_index(stream, 20000);
  }
  collector.welcome_pair();
  bool detail_seen = false;
  while (collector.lane(one, 1).next < 2000 || collector.lane(two, 1).next < 2000) {
    const auto frame = collector.take();
    ASSERT_TRUE(frame);
    if (frame->type != FrameType::kPage) continue;
    if (frame->page.lane == Lane::kDetail) detail_seen = true;
    if (frame->page.lane == Lane::kIndex) {
      EXPECT_FALSE(detail_seen);
    }
  }
  expect_index(one, 20000);
  expect_index(two, 20000);
}

TEST_F(DrainDataTest, StreamsTakeTurns) {
  ASSERT_TRUE(drain_start(connecting()));
  const uint32_t one = fake::add_stream(1, "one");
  const uint32_t two = fake::add_stream(2, "two");
  fake::write_index(one, 100000);
  fake::write_index(two, 100000);
  collector.welcome_pair();
  while (collector.lane(one, 0).next < 100000 || collector.lane(two, 0).next < 100000) {
    ASSERT_TRUE(collector.take());
    const auto ahead = static_cast<int64_t>(collector.lane(one, 0).next) -
                       static_cast<int64_t>(collector.lane(two, 0).next);
    // One page of 64 KiB is 2048 records.
    ASSERT_LE(std::abs(ahead), 2048);
  }
  expect_index(one, 100000);
  expect_index(two, 100000);
}

// A thread that finds no page keeps its processor until the drain lets it sleep.
TEST_F(DrainDataTest, ThreadsAreAnsweredAfterEachBatch) {
  constexpr uint32_t kStreams = 5 * kMaxBatchPages;
  fake::spans_since_preparation = fake::most_spans = 0;
  for (uint32_t i = 0; i < kStreams; ++i) fake::write_index(fake::add_stream(i + 1, "worker"), 1);
  ASSERT_TRUE(drain_start(connecting()));
  collector.welcome_pair();
  for (uint32_t pages = 0; pages < kStreams;) {
    const auto frame = collector.take();
    ASSERT_TRUE(frame);
    pages += frame->type == FrameType::kPage;
  }
  drain_stop(0);
  EXPECT_LE(fake::most_spans, kMaxBatchPages);
}

TEST_F(DrainDataTest, AcksFreeAndClosedStreamsAreReleased) {
  ASSERT_TRUE(drain_start(connecting()));
  const uint32_t stream = fake::add_stream(1, "main");
  fake::write_index(stream, 50);
  collector.welcome_pair();
  collector.take_records(stream, 0, 50);
  collector.send_ack();
  ASSERT_TRUE(eventually([&] { return fake::acknowledged(stream, Lane::kIndex) == 50; }));
  fake::write_index(stream, 7);
  fake::end_stream(stream);
  collector.take_until(FrameType::kStreamClose);
  EXPECT_EQ(collector.closed[stream].index_count(), 57u);
  EXPECT_EQ(collector.closed[stream].end_ns(), 9000u);
  expect_index(stream, 57);
  EXPECT_FALSE(fake::was_released(stream));
  collector.send_ack();
  EXPECT_TRUE(eventually([&] { return fake::was_released(stream); }));
}

TEST_F(DrainDataTest, AckReachesNoFurtherThanWhatWasSent) {
  ASSERT_TRUE(drain_start(connecting()));
  const uint32_t stream = fake::add_stream(1, "main");
  fake::write_index(stream, 50);
  collector.welcome_pair();
  collector.take_records(stream, 0, 50);
  wire::Ack ack;
  ack.add_positions()->set_stream_id(stream);
  ack.mutable_positions(0)->set_index_next(UINT64_MAX);
  ack.mutable_positions(0)->set_closed(true);  // it is not
  auto* unknown = ack.add_positions();
  unknown->set_stream_id(4000000000);
  unknown->set_index_next(5);
  collector.control.send(FrameType::kAck, ack);
  ASSERT_TRUE(eventually([&] { return fake::acknowledged(stream, Lane::kIndex) != 0; }));
  EXPECT_EQ(fake::acknowledged(stream, Lane::kIndex), 50u);
  fake::write_index(stream, 5);
  collector.take_records(stream, 0, 55);
  expect_index(stream, 55);
}

TEST_F(DrainDataTest, LossesAddUpAndTheLastHasAPage) {
  ASSERT_TRUE(drain_start(connecting()));
  const uint32_t stream = fake::add_stream(1, "main");
  fake::write_index(stream, 10);
  collector.welcome_pair();
  collector.take_records(stream, 0, 10);
  fake::lose_index(stream, 4, kLostRingFull);
  fake::write_index(stream, 10);
  collector.take_records(stream, 0, 20);
  EXPECT_EQ(collector.lane(stream, 0).lost_total, 4u);
  EXPECT_EQ(collector.lane(stream, 0).lost_reasons, kLostRingFull);
  fake::lose_index(stream, 3, kLostRingFull);
  fake::end_stream(stream);
  const GotFrame loss = collector.take_until(FrameType::kPage);
  EXPECT_EQ(loss.page.record_count, 0u);
  EXPECT_EQ(loss.page.first_seq, 20u);
  EXPECT_EQ(loss.page.lost_total, 7u);
  collector.take_until(FrameType::kStreamClose);
  EXPECT_EQ(collector.closed[stream].index_lost(), 7u);
}

TEST_F(DrainDataTest, CloseHasEveryNumberOfItsStream) {
  ASSERT_TRUE(drain_start(connecting()));
  const uint32_t stream = fake::add_stream(1, "its \xff name");
  fake::write_index(stream, 10);
  fake::write_detail(stream, 20);
  fake::lose_index(stream, 3, kLostRingFull);
  fake::lose(stream, Lane::kDetail, 4, kLostNoMemory);
  fake::leave_out(stream, 5);
  fake::end_stream(stream);
  collector.welcome_pair();
  collector.take_until(FrameType::kStreamClose);
  const wire::StreamClose& close = collector.closed[stream];
  EXPECT_EQ(close.stream_id(), stream);
  EXPECT_EQ(close.thread_name(), "its ? name");
  EXPECT_EQ(close.end_ns(), 9000u);
  EXPECT_EQ(close.index_count(), 10u);
  EXPECT_EQ(close.index_lost(), 3u);
  EXPECT_EQ(close.detail_count(), 20u);
  EXPECT_EQ(close.detail_lost(), 4u);
  EXPECT_EQ(close.calls_left_out(), 5u);
  EXPECT_EQ(collector.lane(stream, 1).lost_total, 4u);
  EXPECT_EQ(collector.lane(stream, 1).lost_reasons, kLostNoMemory);
}

// The link is cut while a frame is on its way; the collector has the first part of the data.
TEST_F(DrainDataTest, ContinuesAfterACutWithinAFrame) {
  ASSERT_TRUE(drain_start(connecting()));
  const uint32_t stream = fake::add_stream(1, "main");
  fake::write_index(stream, 200000);
  collector.welcome_pair();
  const std::string process = collector.data_hello.process_id();
  collector.take_records(stream, 0, 10000);
  const uint64_t stored = collector.lane(stream, 0).next;
  ASSERT_EQ(collector.data.swallow(777777), 777777u);
  collector.data.close();
  collector.control.close();

  collector.welcome_pair(true);
  EXPECT_EQ(collector.data_hello.process_id(), process);
  collector.opened.clear();  // everything is explained again
  collector.modules.clear();
  collector.take_until(FrameType::kStreamOpen);
  EXPECT_EQ(collector.modules.size(), 1u);
  const GotFrame page = collector.take_until(FrameType::kPage);
  EXPECT_EQ(page.page.first_seq, stored);
  collector.take_records(stream, 0, 200000);
  expect_index(stream, 200000);
}

TEST_F(DrainDataTest, CollectorThatForgotGetsAllThatIsHeld) {
  ASSERT_TRUE(drain_start(connecting()));
  const uint32_t stream = fake::add_stream(1, "main");
  fake::write_index(stream, 100);
  collector.welcome_pair();
  collector.take_records(stream, 0, 100);
  wire::Ack ack;
  ack.add_positions()->set_stream_id(stream);
  ack.mutable_positions(0)->set_index_next(60);
  collector.control.send(FrameType::kAck, ack);
  ASSERT_TRUE(eventually([&] { return fake::acknowledged(stream, Lane::kIndex) == 60; }));
  collector.data.close();
  collector.control.close();
  collector.lane(stream, 0) = {};
  collector.welcome_pair(false);
  collector.take_records(stream, 0, 100);
  EXPECT_EQ(collector.lane(stream, 0).jumps, 60u);  // acknowledged, and given back
  EXPECT_EQ(collector.lane(stream, 0).bytes.size(), 40u * 32);
}

TEST_F(DrainDataTest, PagesAreEncodedIfTheCollectorWantsThem) {
  constexpr uint32_t kRecords = 150'000;
  for (const bool wanted : {true, false}) {
    fake::reset();
    ScriptedCollector one;
    one.features = wanted ? uint64_t{wire::kFeatureColumns} : 0;
    Settings settings = connecting();
    set_address(settings, one.address());
    ASSERT_TRUE(drain_start(settings));
    const uint32_t stream = fake::add_stream(1, "main");
    fake::write_index(stream, kRecords);
    fake::write_detail(stream, 20'000);
    one.welcome_pair();
    one.take_records(stream, 0, kRecords);
    one.take_records(stream, 1, 20'000);
    EXPECT_EQ(one.encoded_pages != 0, wanted);
    const StoredLane& stored = one.lane(stream, 0);
    EXPECT_EQ(stored.jumps + stored.repeats, 0u);
    ASSERT_EQ(stored.bytes.size(), kRecords * size_t{32});
    for (uint64_t n = 0; n < kRecords; ++n) {
      const auto record = fake::index_record(stream, n);
      ASSERT_EQ(std::memcmp(stored.bytes.data() + n * 32, record.bytes, 32), 0) << "record " << n;
    }
    drain_stop(0);
  }
}

TEST_F(DrainDataTest, CloseThatWasNotAcknowledgedIsRepeated) {
  ASSERT_TRUE(drain_start(connecting()));
  const uint32_t stream = fake::add_stream(1, "main");
  fake::write_index(stream, 10);
  fake::end_stream(stream);
  collector.welcome_pair();
  collector.take_until(FrameType::kStreamClose);
  collector.closed.clear();
  collector.data.close();
  collector.control.close();
  collector.welcome_pair(true);
  collector.take_until(FrameType::kStreamClose);
  expect_index(stream, 10);  // the records were not repeated
  collector.data.close();
  collector.control.close();
  // Resume says that it is closed: nothing is left to say.
  collector.welcome_pair(true);
  EXPECT_TRUE(eventually([&] { return fake::was_released(stream); }));
}

TEST_F(DrainDataTest, HundredsOfShortThreadsComeAndGo) {
  ASSERT_TRUE(drain_start(connecting()));
  collector.welcome_pair();
  for (uint32_t round = 0; round < 10; ++round) {
    std::vector<uint32_t> streams;
    for (uint32_t i = 0; i < 30; ++i) {
      streams.push_back(fake::add_stream(round * 30 + i, "short"));
      fake::write_index(streams.back(), i);
      fake::end_stream(streams.back());
    }
    for (const uint32_t stream : streams) {
      while (!collector.closed.contains(stream)) ASSERT_TRUE(collector.take());
    }
    for (uint32_t i = 0; i < 30; ++i) expect_index(streams[i], i);
    // An Ack holds 64 positions.
    collector.opened.clear();
    for (const uint32_t stream : streams) collector.opened[stream] = {};
    collector.send_ack();
    ASSERT_TRUE(eventually([] { return fake::streams_held() == 0; }));
  }
}

}  // namespace
}  // namespace collect::agent

// What goes before records: the recording, its detail, the modules and the streams, as it is put
// into a buffer that may be too small for it.
#include "agent/drain/ship/metadata_sender.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "proto/wire/wire.pb.h"
#include "tests/agent/drain/sent_frames.h"
#include "tests/agent/fake_recorder.h"

namespace collect::agent {
namespace {

using wire::FrameType;

class MetadataSenderTest : public testing::Test {
 protected:
  MetadataSenderTest() {
    fake::reset();
    Settings settings;
    settings.atf_version = 1;
    settings.max_depth = 77;
    settings.max_rate = 88;
    settings.longer_than_ns = 1234;
    metadata_sender_->set_recording_settings(settings);
    metadata_sender_->set_late(55);
    start_recording();
    metadata_sender_->begin_recording(false);
  }
  // All that is to be sent now, each frame's type and body.
  std::vector<SentFrame> send() {
    EXPECT_TRUE(metadata_sender_->send(*streams_, *out_));
    return take_frames(*out_);
  }
  // Leaves less room in the buffer than that.
  void fill_up(size_t room) {
    const collect_wire_Bye bye = collect_wire_Bye_init_zero;
    while (out_->room() >= room) {
      ASSERT_TRUE(out_->push(FrameType::kBye, collect_wire_Bye_fields, &bye));
    }
  }
  template <class Message>
  static Message message(const SentFrame& frame) {
    Message message;
    EXPECT_TRUE(message.ParseFromString(frame.body));
    return message;
  }
  // The ids of the modules in these frames.
  static std::vector<uint32_t> modules(const std::vector<SentFrame>& frames) {
    std::vector<uint32_t> ids;
    for (const SentFrame& frame : frames) {
      if (frame.type != FrameType::kModules) continue;
      const auto some = message<wire::Modules>(frame);
      EXPECT_GT(some.modules_size(), 0);
      EXPECT_LE(some.modules_size(), static_cast<int>(wire::kMaxModulesPerFrame));
      for (const wire::Module& module : some.modules()) ids.push_back(module.module_id());
    }
    return ids;
  }

  std::unique_ptr<MetadataSender> metadata_sender_ = std::make_unique<MetadataSender>();
  std::unique_ptr<StreamTable> streams_ = std::make_unique<StreamTable>();
  std::unique_ptr<SendBuffer> out_ = std::make_unique<SendBuffer>();
};

TEST_F(MetadataSenderTest, EverythingOnceInItsOrder) {
  fake::add_module("/usr/bin/program");
  const uint32_t stream = fake::add_stream(9, "worker \x80");
  streams_->refresh();
  metadata_sender_->add_detail_state(2, {100, 90, 7}, "command");
  const std::vector<SentFrame> frames = send();
  ASSERT_EQ(frames.size(), 4u);

  EXPECT_EQ(frames[0].type, FrameType::kRecordingStart);
  wire::RecordingStart start;
  start.set_recording(1);
  start.set_start_ns(recording_start_ns());
  start.set_start_unix_ns(recording_start_unix_ns());
  start.set_atf_version(1);
  start.set_max_depth(77);
  start.set_max_rate(88);
  start.set_longer_than_ns(1234);
  start.set_late_ns(55);
  EXPECT_EQ(frames[0].body, start.SerializeAsString());

  EXPECT_EQ(frames[1].type, FrameType::kDetailState);
  const auto state = message<wire::DetailState>(frames[1]);
  EXPECT_EQ(state.mode(), wire::DETAIL_ON);
  EXPECT_EQ(state.at_ns(), 100u);
  EXPECT_EQ(state.reason(), "command");
  EXPECT_EQ(state.pre_roll_from_ns() + state.pre_roll_records(), 97u);

  EXPECT_EQ(frames[2].type, FrameType::kModules);
  wire::Modules modules;
  wire::Module& module = *modules.add_modules();
  module.set_path("/usr/bin/program");
  module.set_build_id(std::string(19, '\0') + '\x42');
  module.set_base_address(0x7f0000000000);
  module.set_size(0x5000);
  module.set_loaded_ns(66);
  EXPECT_EQ(frames[2].body, modules.SerializeAsString());

  EXPECT_EQ(frames[3].type, FrameType::kStreamOpen);
  const auto open = message<wire::StreamOpen>(frames[3]);
  EXPECT_EQ(open.recording(), 1u);
  EXPECT_EQ(open.stream_id(), stream);
  EXPECT_EQ(open.thread_id(), 9u);
  EXPECT_EQ(open.start_ns(), 500u);
  EXPECT_TRUE(open.thread_name().starts_with("worker "));

  EXPECT_TRUE(send().empty()) << "nothing is sent twice";
  metadata_sender_->begin_link();
  streams_->begin_handshake();
  EXPECT_EQ(send().size(), 4u) << "a new collector knows nothing";
  metadata_sender_->begin_recording(false);
  EXPECT_EQ(send().size(), 2u) << "the recording and the modules; its detail has not changed";
}

TEST_F(MetadataSenderTest, ThreadWithAnotherNameIsSentAgain) {
  const uint32_t stream = fake::add_stream(9, "program");
  fake::add_stream(10, "other");
  streams_->refresh();
  (void)send();
  fake::rename_stream(stream, "worker");
  const std::vector<SentFrame> frames = send();
  ASSERT_EQ(frames.size(), 1u);
  EXPECT_EQ(frames[0].type, FrameType::kStreamOpen);
  const auto open = message<wire::StreamOpen>(frames[0]);
  EXPECT_EQ(open.stream_id(), stream);
  EXPECT_EQ(open.thread_name(), "worker");
  EXPECT_EQ(open.named_ns(), 502u);
  EXPECT_TRUE(send().empty());
  // A frame that did not fit comes when there is room.
  fake::rename_stream(stream, "later");
  fill_up(sizeof(wire::FrameHeader));
  EXPECT_FALSE(metadata_sender_->send(*streams_, *out_));
  (void)take_frames(*out_);
  ASSERT_EQ(send().size(), 1u);
  EXPECT_TRUE(send().empty());
}

TEST_F(MetadataSenderTest, KeepsTheNewestDetailChanges) {
  (void)send();
  for (uint64_t n = 0; n < kMaxDetailStates + 3; ++n) {
    metadata_sender_->add_detail_state(1 + n % 2, {1000 + n, 0, 0}, "command");
  }
  for (int link = 0; link < 2; ++link) {
    std::vector<uint64_t> times;
    for (const SentFrame& frame : send()) {
      if (frame.type != FrameType::kDetailState) continue;
      const auto state = message<wire::DetailState>(frame);
      EXPECT_EQ(state.mode(), state.at_ns() % 2 == 0 ? wire::DETAIL_ARMED : wire::DETAIL_ON);
      times.push_back(state.at_ns());
    }
    ASSERT_EQ(times.size(), kMaxDetailStates);
    for (uint64_t i = 0; i < times.size(); ++i) EXPECT_EQ(times[i], 1003 + i);
    metadata_sender_->begin_link();
  }
  // Exactly as many as there is room for: all of them.
  metadata_sender_->begin_recording(false);
  for (uint64_t n = 0; n < kMaxDetailStates; ++n)
    metadata_sender_->add_detail_state(1, {n + 1, 0, 0}, "");
  uint64_t expected = 1;
  for (const SentFrame& frame : send()) {
    if (frame.type != FrameType::kDetailState) continue;
    EXPECT_EQ(message<wire::DetailState>(frame).at_ns(), expected++);
  }
  EXPECT_EQ(expected, kMaxDetailStates + 1);
}

TEST_F(MetadataSenderTest, SendsEachModuleAndItsUnloadOnce) {
  std::vector<uint32_t> all;
  for (uint32_t i = 0; i < 2 * wire::kMaxModulesPerFrame + 3; ++i) {
    fake::add_module("/lib/" + std::to_string(i));
    all.push_back(i);
  }
  fake::unload_module(3);
  EXPECT_TRUE(metadata_sender_->modules_changed());
  EXPECT_EQ(modules(send()), all);
  EXPECT_FALSE(metadata_sender_->modules_changed());
  const std::vector<uint32_t> unloaded{0, 7, 8, 9, 17, static_cast<uint32_t>(all.size() - 2)};
  for (const uint32_t id : unloaded) fake::unload_module(id);
  const std::vector<SentFrame> frames = send();
  EXPECT_EQ(modules(frames), unloaded);
  for (const SentFrame& frame : frames) {
    const auto some = message<wire::Modules>(frame);
    for (const wire::Module& module : some.modules()) {
      EXPECT_EQ(module.unloaded_ns(), 77u);
      EXPECT_EQ(module.path(), "/lib/" + std::to_string(module.module_id()));
    }
  }
  fake::add_module("/lib/last");
  EXPECT_EQ(modules(send()), std::vector<uint32_t>{static_cast<uint32_t>(all.size())});
  EXPECT_TRUE(send().empty());
  metadata_sender_->begin_link();
  EXPECT_EQ(modules(send()).size(), all.size() + 1);
}

TEST_F(MetadataSenderTest, SendsTheRestWhenThereIsRoom) {
  for (uint32_t i = 0; i < 40; ++i) fake::add_module("/lib/" + std::string(400, 'x'));
  (void)fake::add_stream(1, "one");
  (void)fake::add_stream(2, "two");
  streams_->refresh();
  // Too little for a frame of modules: what comes before them goes, and nothing behind them.
  fill_up(collect_wire_Modules_size + sizeof(wire::FrameHeader) - 200);
  EXPECT_FALSE(metadata_sender_->send(*streams_, *out_));
  std::vector<SentFrame> frames = take_frames(*out_);
  EXPECT_EQ(frames.back().type, FrameType::kRecordingStart);
  EXPECT_TRUE(metadata_sender_->modules_changed());
  frames = send();
  EXPECT_EQ(modules(frames).size(), 40u);
  EXPECT_EQ(frames.back().type, FrameType::kStreamOpen);
  // A buffer that is full takes nothing.
  metadata_sender_->begin_link();
  streams_->begin_handshake();
  fill_up(sizeof(wire::FrameHeader));
  EXPECT_FALSE(metadata_sender_->send(*streams_, *out_));
  for (const SentFrame& frame : take_frames(*out_)) EXPECT_EQ(frame.type, FrameType::kBye);
  frames = send();
  EXPECT_EQ(frames.front().type, FrameType::kRecordingStart);
  EXPECT_EQ(frames.back().type, FrameType::kStreamOpen);
  // Streams that find no room come when there is some, each once.
  metadata_sender_->begin_link();
  streams_->begin_handshake();
  EXPECT_TRUE(metadata_sender_->report_modules(*out_));
  fill_up(sizeof(wire::FrameHeader) + 60);
  EXPECT_FALSE(metadata_sender_->send(*streams_, *out_));
  size_t opened = 0;
  for (int round = 0; round < 2; ++round) {
    if (round == 1) {
      EXPECT_TRUE(metadata_sender_->send(*streams_, *out_));
    }
    for (const SentFrame& frame : take_frames(*out_))
      opened += frame.type == FrameType::kStreamOpen;
  }
  EXPECT_EQ(opened, 2u);
}

TEST_F(MetadataSenderTest, EmptyRecordingWithoutACommandIsKept) {
  fake::add_module("/usr/bin/program");
  metadata_sender_->begin_recording(true);
  // The fake has lost events of threads without a stream: that is something.
  EXPECT_FALSE(metadata_sender_->keeps_recording(*streams_));
  EXPECT_FALSE(send().empty());
  metadata_sender_->begin_recording(true);
  metadata_sender_->recording_was_asked_for();
  EXPECT_FALSE(metadata_sender_->keeps_recording(*streams_));
}

}  // namespace
}  // namespace collect::agent

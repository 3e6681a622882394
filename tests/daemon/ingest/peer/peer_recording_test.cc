// What a process says of its recordings, by hand: what is kept of it, what is refused, and in which
// words.
#include <gmock/gmock.h>

#include "storage/manifest/manifest.h"
#include "tests/daemon/ingest/peer/peer_fixture.h"

namespace collect::ingest {
namespace {

using fakes::FrameSocket;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using wire::FrameType;

class PeerRecordingTest : public PeerTest {
 protected:
  // Connects again with a recording, if one is wanted, and sends this; what the agent receives.
  std::string refusal_of(bool is_control, FrameType type,
                         const google::protobuf::MessageLite& message, bool records = true) {
    peer_->drop_links("the next one");
    said_recording_ = 0;
    connect();
    if (records) {
      start_recording(++recording_);
      open_stream(1, recording_);
    }
    say(is_control ? control_ : data_, type, message);
    const auto refuse = next(is_control ? control_ : data_, FrameType::kRefuse);
    if (!refuse) return "";
    EXPECT_FALSE(peer_->connected());
    EXPECT_EQ(refuse->parsed<wire::Refuse>().code(), wire::REFUSE_PROTOCOL);
    EXPECT_TRUE(refuse->parsed<wire::Refuse>().retry());
    FrameSocket& other = is_control ? data_ : control_;
    EXPECT_TRUE(next(other, FrameType::kRefuse).has_value()) << "on both channels";
    EXPECT_EQ(shown().status, refuse->parsed<wire::Refuse>().reason());
    return refuse->parsed<wire::Refuse>().reason();
  }
  storage::Manifest manifest_of(const SessionSnapshot& session) {
    const auto manifest = storage::read_manifest(posix_, session.directory);
    EXPECT_TRUE(manifest.ok());
    return manifest.ok() ? *manifest : storage::Manifest();
  }
  storage::Manifest sealed_manifest() {
    const auto session = when([](const auto& one) { return is_over(one.state); });
    return session ? manifest_of(*session) : storage::Manifest();
  }
  uint32_t recording_ = 0;
};

wire::Modules modules_of(std::initializer_list<const char*> paths) {
  wire::Modules modules;
  for (const char* path : paths) {
    wire::Module& module = *modules.add_modules();
    module.set_module_id(static_cast<uint32_t>(modules.modules_size()));
    module.set_path(path);
  }
  return modules;
}

wire::WantFunctionFilter want(const std::string& only, const std::string& except) {
  wire::WantFunctionFilter want;
  want.set_only(only);
  want.set_except(except);
  return want;
}

// ---- functions that are called too often

TEST_F(PeerRecordingTest, SwitchesOffHotFunctionsOnce) {
  begin();
  connect();
  wire::RecordingStart start;
  start.set_recording(1);
  start.set_atf_version(2);
  start.set_start_ns(1'000'000);
  start.set_max_rate(10);
  say(data_, FrameType::kRecordingStart, start);
  open_stream(1);
  send_events(1, 0, 32 * 10);
  EXPECT_FALSE(next(control_, FrameType::kCommand).has_value());
  send_events(1, 32 * 10, 2);  // one more call of the first function
  const auto frame = wait_for(control_, FrameType::kCommand);
  ASSERT_TRUE(frame.has_value());
  const auto command = frame->parsed<wire::Command>();
  EXPECT_EQ(command.set_function_filter().mode(), wire::SetFunctionFilter::LESS);
  EXPECT_TRUE(command.set_function_filter().last());
  EXPECT_THAT(command.set_function_filter().function_ids(), ElementsAre(0x1234));
  wire::CommandResult result;
  result.set_command_id(command.command_id());
  result.set_ok(true);
  result.set_at_ns(5'000'000);
  say(control_, FrameType::kCommandResult, result);
  send_events(1, 32 * 10 + 2, 2);
  const auto second = wait_for(control_, FrameType::kCommand);
  ASSERT_TRUE(second.has_value());
  EXPECT_THAT(second->parsed<wire::Command>().set_function_filter().function_ids(),
              ElementsAre(0x1235));
  result.set_command_id(second->parsed<wire::Command>().command_id());
  result.set_ok(false);
  result.set_error("another function filter is being set");
  say(control_, FrameType::kCommandResult, result);
  end_recording();
  const storage::Manifest manifest = sealed_manifest();
  EXPECT_EQ(manifest.identity.max_rate, 10u);
  ASSERT_EQ(manifest.function_filters.size(), 1u);
  const auto& off = manifest.function_filters[0].switched_off;
  ASSERT_EQ(off.size(), 1u) << "what the agent refused is not off";
  EXPECT_EQ(off[0].function_id, 0x1234u);
  EXPECT_EQ(off[0].at_ns, 5'000'000u);
  EXPECT_EQ(off[0].calls_per_second, 34'375u) << "11 calls in 320 us";
}

// ---- before a recording

TEST_F(PeerRecordingTest, WishIsPassedOnWithWhatIsLoaded) {
  process_.features = wire::kFeatureStartFilter;
  begin();
  connect();
  say(control_, FrameType::kModules, modules_of({"/bin/a", "/lib/b.so"}));
  EXPECT_GE(used(principal::Resource::kMemory), 2 * (2 * sizeof(storage::ModuleInfo) + 15));
  say(control_, FrameType::kWantFunctionFilter, want("one;;two*;", "x"));
  ASSERT_EQ(watching_.wishes.size(), 1u);
  EXPECT_THAT(watching_.wishes[0].only, ElementsAre("one", "two*"));
  EXPECT_THAT(watching_.wishes[0].except, ElementsAre("x"));
  ASSERT_EQ(watching_.wishes[0].modules.size(), 2u);
  EXPECT_EQ(watching_.wishes[0].modules[1].path, "/lib/b.so");
  storage::FunctionFilter filter;
  filter.only = {"one"};
  filter.functions = 2;
  peer_->note_start_filter({2, {"two*"}, ""}, filter);
  ASSERT_TRUE(shown().start_filter.has_value());
  EXPECT_EQ(shown().start_filter->functions, 2u);
  wire::RecordingStart start;
  start.set_recording(1);
  start.set_atf_version(2);
  start.set_start_ns(1'000'000);
  start.set_late_ns(3'000'000);
  say(data_, FrameType::kRecordingStart, start);
  EXPECT_THAT(peer_->modules(), IsEmpty()) << "the recording names its own";
  EXPECT_LE(used(principal::Resource::kMemory), kSessionMemory + kStreamMemory)
      << "the wish is over";
  const auto session = session_in(SessionState::kActive);
  ASSERT_TRUE(session.has_value());
  EXPECT_EQ(session->late_ns, 3'000'000u);
  ASSERT_TRUE(session->start_filter.has_value());
  EXPECT_EQ(session->start_filter->functions, 2u);
  end_recording();
  const storage::Manifest manifest = sealed_manifest();
  ASSERT_EQ(manifest.function_filters.size(), 1u);
  EXPECT_EQ(manifest.function_filters[0].at_ns, 1'000'000u) << "from its beginning";
  EXPECT_EQ(manifest.function_filters[0].functions, 2u);
  ASSERT_FALSE(manifest.notes.empty());
  EXPECT_THAT(manifest.notes[0].what, HasSubstr("began 3 ms late"));
}

TEST_F(PeerRecordingTest, SoManyModulesAreKept) {
  process_.features = wire::kFeatureStartFilter;
  begin();
  connect();
  wire::Modules modules;
  uint32_t next_id = 0;
  for (uint32_t at = 0; at < wire::kMaxModulesPerFrame; ++at) modules.add_modules();
  while (next_id < storage::kMaxModules) {
    for (wire::Module& module : *modules.mutable_modules()) module.set_module_id(next_id++);
    say(control_, FrameType::kModules, modules);
  }
  EXPECT_EQ(peer_->modules().size(), storage::kMaxModules);
  for (wire::Module& module : *modules.mutable_modules()) module.set_module_id(next_id++);
  modules.mutable_modules(0)->set_module_id(5);
  modules.mutable_modules(0)->set_path("/lib/again.so");
  say(control_, FrameType::kModules, modules);
  EXPECT_EQ(peer_->modules().size(), storage::kMaxModules);
  EXPECT_EQ(peer_->modules()[5].path, "/lib/again.so") << "what is known is taken over";
  EXPECT_TRUE(peer_->connected());
}

TEST_F(PeerRecordingTest, WishesHaveLimits) {
  process_.features = wire::kFeatureStartFilter;
  begin();
  const std::string most(wire::kMaxFilterText, 'x');
  const auto refused = [this](FrameType type, const google::protobuf::MessageLite& message,
                              bool records = false) {
    return refusal_of(true, type, message, records);
  };
  EXPECT_EQ(refused(FrameType::kWantFunctionFilter, want(most, most)), "");
  EXPECT_THAT(refused(FrameType::kWantFunctionFilter, want(most + "x", "")), HasSubstr("longer"));
  EXPECT_THAT(refused(FrameType::kWantFunctionFilter, want("", most + "x")), HasSubstr("longer"));
  wire::Modules many;
  for (uint32_t id = 0; id < wire::kMaxModulesPerFrame; ++id) many.add_modules();
  EXPECT_EQ(refused(FrameType::kModules, many), "");
  many.add_modules();
  EXPECT_EQ(refused(FrameType::kModules, many), "more than 16 modules in one frame");
  const std::string path(kMaxPathBytes, 'p');
  EXPECT_EQ(refused(FrameType::kModules, modules_of({path.c_str()})), "");
  EXPECT_THAT(refused(FrameType::kModules, modules_of({(path + "p").c_str()})),
              HasSubstr("path or build id is longer"));
  // While it records they come on data, and once is enough.
  const std::string none_wanted =
      "modules on the control channel, and no function filter is asked for";
  EXPECT_EQ(refused(FrameType::kModules, modules_of({"/bin/a"}), true), none_wanted);
  EXPECT_EQ(refused(FrameType::kWantFunctionFilter, want("a", "")), "");
  say(control_, FrameType::kWantFunctionFilter, want("a", ""));
  EXPECT_THAT(shown().status, HasSubstr("asked for twice"));
  EXPECT_EQ(refused(FrameType::kWantFunctionFilter, want("a", "")), "");
  say(control_, FrameType::kModules, modules_of({"/bin/a"}));
  EXPECT_EQ(shown().status, none_wanted);
  process_.features = 0;
  EXPECT_EQ(refused(FrameType::kModules, modules_of({"/bin/a"})), none_wanted);
  EXPECT_THAT(refused(FrameType::kWantFunctionFilter, want("a", "")), HasSubstr("not agreed on"));
}

TEST_F(PeerRecordingTest, BeforeItsRecordingBeganNothingOfItIsTaken) {
  begin();
  const auto refused = [this](FrameType type, const google::protobuf::MessageLite& message) {
    return refusal_of(false, type, message, false);
  };
  wire::StreamOpen open;
  open.set_recording(1);
  open.set_stream_id(4);
  wire::StreamClose close;
  close.set_stream_id(4);
  wire::RecordingEnd end;
  end.set_recording(1);
  wire::RecordingStart start;
  start.set_atf_version(2);
  EXPECT_EQ(refused(FrameType::kModules, modules_of({"/bin/a"})),
            "modules before a recording began");
  EXPECT_EQ(refused(FrameType::kDetailState, wire::DetailState()),
            "a detail state before a recording began");
  EXPECT_EQ(refused(FrameType::kStalls, wire::Stalls()), "stalls before a recording began");
  EXPECT_EQ(refused(FrameType::kStreamOpen, open), "stream 4 of a recording that did not begin");
  EXPECT_EQ(refused(FrameType::kStreamClose, close), "close of stream 4, which is not open");
  EXPECT_EQ(refused(FrameType::kRecordingEnd, end), "the end of a recording that did not begin");
  EXPECT_EQ(refused(FrameType::kRecordingStart, start), "a recording is numbered from 1");
  start.set_recording(1);
  start.set_atf_version(1);
  EXPECT_EQ(refused(FrameType::kRecordingStart, start),
            "the recording's ATF version is not that of the hello");
}

// ---- in a recording

TEST_F(PeerRecordingTest, LimitsOfNames) {
  begin();
  const auto refused = [this](FrameType type, const google::protobuf::MessageLite& message) {
    return refusal_of(false, type, message);
  };
  wire::StreamClose close;
  close.set_stream_id(1);
  wire::StreamOpen open;
  open.set_stream_id(2);
  for (const size_t over : {0, 1}) {
    const std::string name(kMaxNameBytes + over, 'n');
    const std::string expected = over == 0 ? "" : "a thread's name is too long";
    open.set_recording(recording_ + 1);
    open.set_thread_name(name);
    EXPECT_EQ(refused(FrameType::kStreamOpen, open), expected);
    close.set_thread_name(name);
    EXPECT_EQ(refused(FrameType::kStreamClose, close), expected);
    wire::Modules modules = modules_of({"/bin/a"});
    modules.mutable_modules(0)->set_path(std::string(kMaxPathBytes + over, 'p'));
    const std::string longer =
        over == 0 ? "" : "a module's path or build id is longer than the protocol allows";
    EXPECT_EQ(refused(FrameType::kModules, modules), longer);
    modules.mutable_modules(0)->set_path("/bin/a");
    modules.mutable_modules(0)->set_build_id(std::string(kMaxBuildIdBytes + over, 'b'));
    EXPECT_EQ(refused(FrameType::kModules, modules), longer);
  }
  open.set_thread_name("");
  open.set_recording(recording_);  // the one before
  EXPECT_EQ(refused(FrameType::kStreamOpen, open), "stream 2 of a recording that did not begin");
  wire::RecordingEnd end;
  end.set_recording(recording_);
  EXPECT_EQ(refused(FrameType::kRecordingEnd, end), "the end of a recording that did not begin");
}

TEST_F(PeerRecordingTest, RefusesOtherChannelsFramesAndSkipsUnknownOnes) {
  begin();
  for (const FrameType type :
       {FrameType::kDial, FrameType::kHello, FrameType::kResume, FrameType::kWelcome,
        FrameType::kChallenge, FrameType::kProof, FrameType::kRecordingStart,
        FrameType::kStreamOpen, FrameType::kRecordingEnd, FrameType::kStalls, FrameType::kAck,
        FrameType::kCommand, FrameType::kClockProbe}) {
    const std::string number = std::to_string(static_cast<unsigned>(type));
    EXPECT_EQ(refusal_of(true, type, wire::Heartbeat()),
              "frame type " + number + " does not belong on the control channel");
  }
  for (const FrameType type :
       {FrameType::kDial, FrameType::kProof, FrameType::kAck, FrameType::kCommandResult,
        FrameType::kHeartbeat, FrameType::kBye, FrameType::kWantFunctionFilter}) {
    const std::string number = std::to_string(static_cast<unsigned>(type));
    EXPECT_EQ(refusal_of(false, type, wire::Heartbeat()),
              "frame type " + number + " does not belong on the data channel");
  }
  for (const unsigned later : {8, 15, 24, 31, 41, 1000}) {
    for (const bool is_control : {true, false}) {
      EXPECT_EQ(refusal_of(is_control, static_cast<FrameType>(later), wire::Heartbeat()), "")
          << later;
      EXPECT_TRUE(peer_->connected());
    }
  }
}

TEST_F(PeerRecordingTest, AgentThatRefusesIsShownWithItsReason) {
  begin();
  wire::Refuse refuse;
  refuse.set_reason("enough");
  for (const bool is_control : {true, false}) {
    connect();
    say(is_control ? control_ : data_, FrameType::kRefuse, refuse);
    EXPECT_FALSE(peer_->connected());
    EXPECT_EQ(shown().status, "refused by the agent: enough");
    EXPECT_EQ(shown().state, AgentState::kDisconnected);
  }
}

TEST_F(PeerRecordingTest, AnotherRecordingEndsTheOneBefore) {
  begin();
  connect();
  start_recording(2);
  const auto first = session_in(SessionState::kActive);
  ASSERT_TRUE(first.has_value());
  start_recording(2);  // said twice
  start_recording(3);
  ASSERT_TRUE(when([&](const auto& one) {
    return one.recording == 2 && one.state == SessionState::kRecovered &&
           one.status == "the agent began another recording without its end";
  }));
  ASSERT_TRUE(when([](const auto& one) { return one.recording == 3; }));
  EXPECT_EQ(reported_.session_count(), 2u);
  start_recording(1);
  EXPECT_EQ(shown().status, "recording 1 after recording 3");
  EXPECT_FALSE(peer_->connected());
}

TEST_F(PeerRecordingTest, ThreadsAndModulesAreListed) {
  begin();
  connect();
  start_recording();
  say(data_, FrameType::kModules, modules_of({"/bin/a"}));
  for (uint32_t stream = 40; stream > 0; --stream) open_stream(stream);
  open_stream(3);  // said twice
  const auto threads = peer_->threads();
  ASSERT_EQ(threads.size(), 40u);
  for (uint32_t stream = 1; stream <= 40; ++stream) {
    EXPECT_EQ(threads[stream - 1].thread_id, 100 + stream);
    EXPECT_EQ(threads[stream - 1].name, "thread " + std::to_string(stream));
  }
  ASSERT_EQ(peer_->modules().size(), 1u);
  EXPECT_EQ(peer_->modules()[0].path, "/bin/a");
  wire::StreamClose close;
  close.set_stream_id(5);
  say(data_, FrameType::kStreamClose, close);
  EXPECT_EQ(peer_->threads().size(), 39u);
  end_recording();
  EXPECT_THAT(peer_->threads(), IsEmpty());
}

TEST_F(PeerRecordingTest, DetailIsShown) {
  begin();
  connect();
  start_recording();
  ASSERT_TRUE(session_in(SessionState::kActive).has_value());
  wire::DetailState change;
  change.set_mode(wire::DETAIL_ON);
  change.set_at_ns(5);
  say(data_, FrameType::kDetailState, change);
  EXPECT_EQ(shown().detail, DetailMode::kOn);
  EXPECT_TRUE(when([](const auto& one) { return one.detail == DetailMode::kOn; }));
  wire::Heartbeat beat;
  beat.set_detail(wire::DETAIL_ARMED);
  say(control_, FrameType::kHeartbeat, beat);
  EXPECT_EQ(shown().detail, DetailMode::kArmed);
  EXPECT_TRUE(when([](const auto& one) { return one.detail == DetailMode::kArmed; }));
  // Of a later version of the protocol: the nearest that is known.
  beat.set_detail(static_cast<wire::DetailMode>(9));
  say(control_, FrameType::kHeartbeat, beat);
  EXPECT_EQ(shown().detail, DetailMode::kOn);
  change.set_mode(wire::DETAIL_OFF);
  change.set_at_ns(6);
  say(data_, FrameType::kDetailState, change);
  EXPECT_EQ(shown().detail, DetailMode::kOff);
  change.set_mode(static_cast<wire::DetailMode>(9));
  change.set_at_ns(7);
  say(data_, FrameType::kDetailState, change);
  EXPECT_EQ(shown().detail, DetailMode::kOn);
  beat.set_detail(wire::DETAIL_OFF);
  say(control_, FrameType::kHeartbeat, beat);
  EXPECT_EQ(shown().detail, DetailMode::kOff);
  const size_t shown_before = watching_.agents.size();
  say(control_, FrameType::kHeartbeat, beat);
  EXPECT_EQ(watching_.agents.size(), shown_before) << "no news";
  // Pages that go as they are make none either; encoded ones do.
  beat.set_link_raw_bytes(10);
  beat.set_link_sent_bytes(10);
  say(control_, FrameType::kHeartbeat, beat);
  EXPECT_EQ(watching_.agents.size(), shown_before);
  beat.set_link_sent_bytes(9);
  say(control_, FrameType::kHeartbeat, beat);
  EXPECT_EQ(watching_.agents.size(), shown_before + 1);
  EXPECT_EQ(shown().link_raw_bytes, 10u);
  EXPECT_EQ(shown().link_sent_bytes, 9u);
}

// Threads without a stream: counted by heartbeats of this recording, and by its end.
TEST_F(PeerRecordingTest, CountsEventsWithoutAStreamAsLost) {
  begin();
  connect();
  start_recording();
  wire::Heartbeat beat;
  beat.set_recording(7);
  beat.set_lost_without_stream(1000);
  say(control_, FrameType::kHeartbeat, beat);
  beat.set_recording(1);
  beat.set_lost_without_stream(5);
  say(control_, FrameType::kHeartbeat, beat);
  end_recording();
  EXPECT_EQ(sealed_manifest().lost_without_stream, 5u);
  start_recording(2);
  wire::RecordingEnd end;
  end.set_recording(2);
  end.set_lost_without_stream(6);
  say(data_, FrameType::kRecordingEnd, end);
  const auto ended = [](const auto& one) { return one.recording == 2 && is_over(one.state); };
  ASSERT_TRUE(when(ended));
  EXPECT_EQ(manifest_of(*reported_.session(ended)).lost_without_stream, 6u);
}

TEST_F(PeerRecordingTest, FunctionFilterHoldsForLaterRecordingsToo) {
  begin();
  connect();
  storage::FunctionFilter filter;
  filter.at_ns = 77;
  filter.only = {"main"};
  peer_->note_function_filter(filter);
  start_recording();
  ASSERT_TRUE(session_in(SessionState::kActive).has_value());
  storage::FunctionFilter everything;
  everything.at_ns = 99;
  peer_->note_function_filter(everything);
  end_recording();
  const storage::Manifest manifest = sealed_manifest();
  ASSERT_GE(manifest.function_filters.size(), 1u);
  EXPECT_EQ(manifest.function_filters[0].at_ns, 77u);
  start_recording(2);
  end_recording(2);
  ASSERT_TRUE(when([](const auto& one) { return one.recording == 2 && is_over(one.state); }));
  const auto second = reported_.session([](const auto& one) { return one.recording == 2; });
  EXPECT_THAT(manifest_of(*second).function_filters, IsEmpty());
}

// ---- what a former collector left

TEST_F(PeerRecordingTest, ResumesTheNewerOfTwoOpenRecordings) {
  const auto left = [this](uint32_t recording) {
    storage::SessionIdentity identity;
    identity.process_id.fill(1);
    identity.recording = recording;
    identity.pid = 4711;
    auto writer = storage::Session::create(posix_, options_.storage, identity);
    EXPECT_TRUE(writer.ok());
    storage::SessionPath session_path;
    session_path.pid = 4711;
    session_path.name = (*writer)->name();
    session_path.directory = (*writer)->directory();
    return session_path;
  };
  for (const bool newer_first : {true, false}) {
    const storage::SessionPath older = left(1);
    const storage::SessionPath newer = left(2);
    storage::ResumeKey old_key, new_key;
    old_key.bytes.fill(1);
    new_key.bytes.fill(2);
    begin();
    const SystemTime start = SystemTime(std::chrono::seconds(5));
    const auto restore_older = [&] { peer_->restore(older, old_key, 1, start); };
    if (!newer_first) restore_older();
    peer_->restore(newer, new_key, 2, start);
    if (newer_first) restore_older();
    EXPECT_EQ(peer_->resume_key().bytes, new_key.bytes);
    EXPECT_EQ(shown().state, AgentState::kDisconnected);
    EXPECT_EQ(shown().status,
              "recorded when the collector ended; its session waits for it to come back");
    EXPECT_EQ(core_->budget.used(principal::Resource::kSessions), 2u);
    EXPECT_EQ(core_->budget.used(principal::Resource::kMemory), 2 * kSessionMemory);
    EXPECT_EQ(core_->budget.used(principal::Resource::kInodes), 2 * storage::kFilesPerSession);
    ASSERT_TRUE(when([&](const auto& one) {
      return one.name == older.name && one.state == SessionState::kRecovered &&
             one.status == "a later recording of the same process was begun" &&
             one.start_time == start;
    }));
    EXPECT_EQ(core_->budget.used(principal::Resource::kSessions), 1u);
    EXPECT_TRUE(loop_.run_until([&] { return peer_->agent().session == newer.name; }));
    said_recording_ = 2;
    connect();
    EXPECT_TRUE(next(data_, FrameType::kWelcome)->parsed<wire::Welcome>().resumed());
    peer_->drop_links("over");
    run();
    peer_.reset();
    core_->stop_threads();
    run();
  }
}

}  // namespace
}  // namespace collect::ingest

// What an agent says of itself, in each form that the collector keeps it in.
#include "daemon/ingest/handshake.h"

#include <gtest/gtest.h>

namespace collect::ingest {
namespace {

// No two fields alike, so that none can be taken for another.
wire::Hello full_hello() {
  wire::Hello hello;
  hello.set_process_id("0123456789abcdef");
  hello.set_os(wire::OS_ANDROID);
  hello.set_arch(wire::ARCH_ARM64);
  hello.set_pid(11);
  hello.set_parent_pid(12);
  hello.set_process_name("name");
  hello.set_device_id("serial");
  hello.set_device_model("model");
  hello.set_boot_id("boot");
  hello.set_tag("tag");
  hello.set_clock_type(3);
  hello.set_atf_version(2);
  hello.set_agent_version("7.8");
  hello.set_executable("/bin/name");
  hello.set_detail(wire::DETAIL_ARMED);
  return hello;
}

wire::RecordingStart full_start() {
  wire::RecordingStart start;
  start.set_recording(21);
  start.set_start_ns(22);
  start.set_start_unix_ns(23);
  start.set_atf_version(1);
  start.set_max_depth(24);
  start.set_longer_than_ns(25);
  return start;
}

void expect_agent(const AgentSnapshot& agent) {
  EXPECT_EQ(std::string(agent.process_id.begin(), agent.process_id.end()), "0123456789abcdef");
  EXPECT_EQ(agent.process_name, "name");
  EXPECT_EQ(agent.executable, "/bin/name");
  EXPECT_EQ(agent.pid, 11u);
  EXPECT_EQ(agent.parent_pid, 12u);
  EXPECT_EQ(agent.device_id, "serial");
  EXPECT_EQ(agent.device_model, "model");
  EXPECT_EQ(agent.os, "android");
  EXPECT_EQ(agent.arch, "arm64");
  EXPECT_EQ(agent.tag, "tag");
  EXPECT_EQ(agent.agent_version, "7.8");
}

TEST(HandshakeTest, AnAgentIsShownAsItsHelloSays) {
  const AgentSnapshot agent = agent_from_hello(full_hello());
  expect_agent(agent);
  EXPECT_EQ(agent.detail, DetailMode::kArmed);
  // Of a later version of the protocol: what is not known here is the nearest that is.
  wire::Hello later = full_hello();
  later.set_detail(static_cast<wire::DetailMode>(9));
  EXPECT_EQ(agent_from_hello(later).detail, DetailMode::kOn);
}

TEST(HandshakeTest, ASessionKeepsItAndShowsItAgain) {
  const storage::SessionIdentity identity = identity_from(full_hello(), full_start());
  EXPECT_EQ(identity.recording, 21u);
  EXPECT_EQ(identity.start_ns, 22u);
  EXPECT_EQ(identity.start_unix_ns, 23u);
  EXPECT_EQ(identity.version, atf::Version::kV1);
  EXPECT_EQ(identity.max_depth, 24u);
  EXPECT_EQ(identity.longer_than_ns, 25u);
  EXPECT_EQ(identity.boot_id, "boot");
  EXPECT_EQ(identity.clock, atf::ClockType::kBoottime);
  EXPECT_EQ(identity.os, atf::Os::kAndroid);
  EXPECT_EQ(identity.arch, atf::Arch::kArm64);
  expect_agent(agent_from_identity(identity));
}

TEST(HandshakeTest, ModulesAndStreams) {
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

// Only what belongs to that end is kept: a program that exited has no signal.
TEST(HandshakeTest, TheEndOfAProcess) {
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

// What an agent says of itself, in each form that the collector keeps it in.
#include "daemon/ingest/link/handshake.h"

#include <gtest/gtest.h>

#include <functional>

#include "daemon/ingest/link/limits.h"

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
  start.set_max_rate(25);
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

TEST(HandshakeTest, AgentIsShownAsItsHelloSays) {
  const AgentSnapshot agent = agent_from_hello(full_hello());
  expect_agent(agent);
  EXPECT_EQ(agent.detail, DetailMode::kArmed);
  // Of a later version of the protocol: what is not known here is the nearest that is.
  wire::Hello later = full_hello();
  later.set_detail(static_cast<wire::DetailMode>(9));
  EXPECT_EQ(agent_from_hello(later).detail, DetailMode::kOn);
}

TEST(HandshakeTest, SessionKeepsItAndShowsItAgain) {
  const storage::SessionIdentity identity = identity_from(full_hello(), full_start());
  EXPECT_EQ(identity.recording, 21u);
  EXPECT_EQ(identity.start_ns, 22u);
  EXPECT_EQ(identity.start_unix_ns, 23u);
  EXPECT_EQ(identity.version, atf::Version::kV1);
  EXPECT_EQ(identity.max_depth, 24u);
  EXPECT_EQ(identity.max_rate, 25u);
  EXPECT_EQ(identity.longer_than_ns, 25u);
  EXPECT_EQ(identity.boot_id, "boot");
  EXPECT_EQ(identity.clock, atf::ClockType::kBoottime);
  EXPECT_EQ(identity.os, atf::Os::kAndroid);
  EXPECT_EQ(identity.arch, atf::Arch::kArm64);
  expect_agent(agent_from_identity(identity));
}

TEST(HandshakeTest, EachLimitOfAHello) {
  const auto served = [](const std::function<void(wire::Hello&)>& change) {
    wire::Hello hello = full_hello();
    hello.set_channel(wire::CHANNEL_CONTROL);
    hello.set_nonce("0123456789abcdef");
    hello.set_min_version(wire::kProtocolVersion);
    hello.set_max_version(wire::kProtocolVersion);
    change(hello);
    return !check_untrusted_hello(hello).has_value();
  };
  using Hello = wire::Hello;
  EXPECT_TRUE(served([](Hello&) {}));
  EXPECT_TRUE(served([](Hello& h) { h.set_min_version(1), h.set_max_version(9); }));
  EXPECT_FALSE(served([](Hello& h) { h.set_min_version(wire::kProtocolVersion + 1); }));
  EXPECT_FALSE(served([](Hello& h) { h.set_max_version(wire::kProtocolVersion - 1); }));
  EXPECT_TRUE(served([](Hello& h) { h.set_channel(wire::CHANNEL_DATA); }));
  EXPECT_FALSE(served([](Hello& h) { h.set_channel(wire::CHANNEL_UNSPECIFIED); }));
  for (const size_t bytes : {15, 17}) {
    EXPECT_FALSE(served([&](Hello& h) { h.set_process_id(std::string(bytes, 'x')); }));
    EXPECT_FALSE(served([&](Hello& h) { h.set_nonce(std::string(bytes, 'x')); }));
  }
  for (const uint32_t known : {1, 2}) {
    EXPECT_TRUE(served([&](Hello& h) { h.set_atf_version(known); }));
  }
  for (const uint32_t other : {0, 3}) {
    EXPECT_FALSE(served([&](Hello& h) { h.set_atf_version(other); }));
  }
  const auto numbers = [&](auto set, int first, int last) {
    for (int value = first - 1; value <= last + 1; ++value) {
      EXPECT_EQ(served([&](Hello& h) { set(h, value); }), value >= first && value <= last) << value;
    }
  };
  numbers([](Hello& h, int value) { h.set_os(static_cast<wire::Os>(value)); }, 1, 5);
  numbers([](Hello& h, int value) { h.set_arch(static_cast<wire::Arch>(value)); }, 1, 2);
  numbers([](Hello& h, int value) { h.set_clock_type(static_cast<uint32_t>(value)); }, 1, 3);
  for (const size_t over : {0, 1}) {
    const std::string name(kMaxNameBytes + over, 'n');
    EXPECT_EQ(served([&](Hello& h) { h.set_process_name(name); }), over == 0);
    EXPECT_EQ(served([&](Hello& h) { h.set_device_id(name); }), over == 0);
    EXPECT_EQ(served([&](Hello& h) { h.set_device_model(name); }), over == 0);
    EXPECT_EQ(served([&](Hello& h) { h.set_boot_id(name); }), over == 0);
    EXPECT_EQ(served([&](Hello& h) { h.set_tag(name); }), over == 0);
    EXPECT_EQ(served([&](Hello& h) { h.set_agent_version(name); }), over == 0);
    const std::string path(kMaxPathBytes + over, 'p');
    EXPECT_EQ(served([&](Hello& h) { h.set_executable(path); }), over == 0);
  }
}

TEST(HandshakeTest, ExplainsWhyAHelloIsRefused) {
  const auto refusal = [](const std::function<void(wire::Hello&)>& change) {
    wire::Hello hello = full_hello();
    hello.set_channel(wire::CHANNEL_CONTROL);
    hello.set_nonce("0123456789abcdef");
    hello.set_min_version(wire::kProtocolVersion);
    hello.set_max_version(wire::kProtocolVersion);
    change(hello);
    const auto found = check_untrusted_hello(hello);
    if (!found) return std::string("none");
    EXPECT_FALSE(found->retry) << "it would say the same again";
    return std::to_string(found->code) + ": " + found->reason;
  };
  using Hello = wire::Hello;
  const std::string version = std::to_string(wire::REFUSE_VERSION) + ": ";
  const std::string protocol = std::to_string(wire::REFUSE_PROTOCOL) + ": ";
  EXPECT_EQ(refusal([](Hello& h) { h.set_min_version(88), h.set_max_version(99); }),
            version + "this collector speaks version " + std::to_string(wire::kProtocolVersion) +
                " of the protocol, the agent versions 88 to 99");
  EXPECT_EQ(refusal([](Hello& h) { h.set_atf_version(9); }),
            version + "ATF version 9 is not 1 or 2");
  EXPECT_EQ(refusal([](Hello& h) { h.set_channel(wire::CHANNEL_UNSPECIFIED); }),
            protocol + "the hello names no channel");
  EXPECT_EQ(refusal([](Hello& h) { h.set_process_id("abc"); }),
            protocol + "the hello's process id has 3 bytes instead of 16");
  EXPECT_EQ(refusal([](Hello& h) { h.set_nonce("abcd"); }),
            protocol + "the hello's nonce has 4 bytes instead of 16");
  EXPECT_EQ(refusal([](Hello& h) { h.set_tag(std::string(999, 't')); }),
            protocol + "a name in the hello is longer than the protocol allows");
  EXPECT_EQ(refusal([](Hello& h) { h.set_arch(static_cast<wire::Arch>(9)); }),
            protocol + "the hello's os, arch or clock type is unknown");
}

TEST(HandshakeTest, UnknownSystemIsShownAsThat) {
  const auto shown = [](int os, int arch) {
    wire::Hello hello = full_hello();
    hello.set_os(static_cast<wire::Os>(os));
    hello.set_arch(static_cast<wire::Arch>(arch));
    const AgentSnapshot agent = agent_from_hello(hello);
    return agent.os + " " + agent.arch;
  };
  EXPECT_EQ(shown(wire::OS_IOS, wire::ARCH_ARM64), "ios arm64");
  EXPECT_EQ(shown(wire::OS_ANDROID, wire::ARCH_X86_64), "android x86_64");
  EXPECT_EQ(shown(wire::OS_MACOS, wire::ARCH_ARM64), "macos arm64");
  EXPECT_EQ(shown(wire::OS_LINUX, wire::ARCH_X86_64), "linux x86_64");
  EXPECT_EQ(shown(wire::OS_WINDOWS, 9), "windows unknown");
  EXPECT_EQ(shown(99, 0), "unknown unknown");
}

TEST(HandshakeTest, DialledAgentsNeedNoToken) {
  wire::Hello hello = full_hello();
  hello.set_nonce("0123456789abcdef");
  const auto context = begin_proofs(hello, true);
  ASSERT_TRUE(context.has_value());
  EXPECT_FALSE(check_token({}, *context, "token"));
  const auto connected = begin_proofs(hello, false);
  ASSERT_TRUE(check_token({}, *connected, "token").has_value());
  EXPECT_FALSE(check_token({}, *connected, ""));
}

}  // namespace
}  // namespace collect::ingest

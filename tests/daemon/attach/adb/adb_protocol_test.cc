// Expected values are lines and answers of a real adb server (29.0.6) and of /proc/net/unix.
#include "daemon/attach/adb/adb_protocol.h"

#include <gtest/gtest.h>

#include "daemon/attach/adb/adb_address.h"
#include "daemon/attach/unix_sockets.h"

namespace collect::attach {
namespace {

// Feeds the answer in the pieces that the decoder asks for; the bytes it took, or the error.
Result<size_t> feed(AdbAnswer& answer, std::string_view bytes) {
  size_t at = 0;
  while (answer.wanted() != 0) {
    if (bytes.size() - at < answer.wanted()) return Error{Code::kTruncated, "more is wanted"};
    const size_t piece = answer.wanted();
    COLLECT_TRY(answer.take(bytes.substr(at, piece)));
    at += piece;
  }
  return at;
}

TEST(AdbProtocolTest, RequestsHaveFourHexDigitsOfLength) {
  EXPECT_EQ(*adb_request("host:version"), "000chost:version");
  EXPECT_EQ(*adb_request(""), "0000");
  EXPECT_EQ(adb_request(std::string(kMaxAdbRequestBytes, 'x'))->substr(0, 4), "ffff");
  EXPECT_EQ(adb_request(std::string(kMaxAdbRequestBytes + 1, 'x')).code(), Code::kLimit);
}

TEST(AdbProtocolTest, AnswersAreReadExactlyToTheirEnd) {
  AdbAnswer version(AdbAnswer::Parts::kStatusAndText);
  EXPECT_EQ(*feed(version, "OKAY00040029more"), 12u);
  EXPECT_EQ(version.text(), "0029");
  AdbAnswer transport(AdbAnswer::Parts::kStatus);
  EXPECT_EQ(*feed(transport, "OKAYbytes of the device"), 4u);
  EXPECT_FALSE(transport.is_failure());
  AdbAnswer empty(AdbAnswer::Parts::kText);
  EXPECT_EQ(*feed(empty, "0000"), 4u);
  EXPECT_EQ(empty.text(), "");
  AdbAnswer closed(AdbAnswer::Parts::kStatus);
  EXPECT_EQ(*feed(closed, "FAIL0006closed"), 14u);
  EXPECT_TRUE(closed.is_failure());
  EXPECT_EQ(closed.text(), "closed");
}

TEST(AdbProtocolTest, EveryPrefixNeedsMoreAndFlipsAreDetected) {
  const std::string whole = "OKAY0004abcd";
  for (size_t size = 0; size < whole.size(); ++size) {
    AdbAnswer answer(AdbAnswer::Parts::kStatusAndText);
    ASSERT_FALSE(feed(answer, whole.substr(0, size)).ok()) << size;
  }
  for (size_t at = 0; at < 8; ++at) {  // status and length
    for (int bit = 0; bit < 8; ++bit) {
      std::string bytes = whole;
      bytes[at] = static_cast<char>(bytes[at] ^ (1 << bit));
      AdbAnswer answer(AdbAnswer::Parts::kStatusAndText);
      const Result<size_t> taken = feed(answer, bytes);
      if (at < 4) {
        EXPECT_EQ(taken.code(), Code::kDamaged) << at;
      } else {
        EXPECT_TRUE(!taken.ok() || answer.text() != "abcd") << at << " " << bit;
      }
    }
  }
  AdbAnswer http(AdbAnswer::Parts::kStatus);
  EXPECT_EQ(feed(http, "HTTP/1.1 400 Bad Request").code(), Code::kDamaged);
}

TEST(AdbDeviceListTest, LinesOfEveryKind) {
  const AdbDeviceList list = parse_adb_devices(
      "R58M123ABC             device usb:1-1 product:o1s model:SM_G991B device:o1s transport_id:1\n"
      "emulator-5554          device product:sdk model:sdk_gphone device:emu transport_id:2\n"
      "192.168.1.5:5555       offline transport_id:3\n"
      "HT12                   unauthorized usb:3-2 transport_id:4\n"
      "0123                   no permissions (user in plugdev group; are your udev rules wrong?); "
      "see [http://developer.android.com/tools/device.html] usb:1-4 transport_id:5\n"
      "(no serial number)     device usb:1-9 transport_id:6\n"
      "adb-R5-x._adb-tls-connect._tcp device product:p model:M device:d transport_id:7\n");
  EXPECT_EQ(list.left_out, 0u);
  ASSERT_EQ(list.devices.size(), 7u);
  EXPECT_EQ(list.devices[0].serial, "R58M123ABC");
  EXPECT_EQ(list.devices[0].model, "SM_G991B");
  EXPECT_EQ(list.devices[0].connection, "usb");
  EXPECT_TRUE(list.devices[0].is_usable);
  EXPECT_EQ(list.devices[0].reason, "");
  EXPECT_EQ(list.devices[1].connection, "emulator");
  EXPECT_EQ(list.devices[2].reported_state, "offline");
  EXPECT_EQ(list.devices[2].connection, "network");
  EXPECT_NE(list.devices[2].advice.find("adb connect 192.168.1.5:5555"), std::string::npos);
  EXPECT_EQ(list.devices[3].model, "");
  EXPECT_FALSE(list.devices[3].is_usable);
  EXPECT_NE(list.devices[3].advice.find("prompt"), std::string::npos);
  EXPECT_TRUE(list.devices[4].reported_state.starts_with("no permissions (user in plugdev"));
  EXPECT_NE(list.devices[4].advice.find("udev"), std::string::npos);
  EXPECT_FALSE(list.devices[5].is_usable);
  EXPECT_EQ(list.devices[6].connection, "network");
}

TEST(AdbDeviceListTest, EveryStateSaysWhatToDo) {
  const auto line = [](const std::string& text) { return parse_adb_devices(text).devices.at(0); };
  const std::pair<const char*, const char*> cases[] = {
      {"A unauthorized", "confirm the prompt"},
      {"A authorizing", "wait a moment"},
      {"A connecting", "wait a moment"},
      {"A offline usb:1-1", "`adb reconnect offline`"},
      {"A no permissions; see [x]", "udev rule"},
      {"A recovery", "`adb reboot`"},
      {"A sideload", "`adb reboot`"},
      {"A rescue", "`adb reboot`"},
      {"A bootloader", "`adb reboot`"},
      {"A host", "`adb reboot`"},
      {"A something_new", "`adb devices -l`"},
      {"(no serial number) device", "`adb -t`"},
      {"x:1 offline", "`adb disconnect x:1 && adb connect x:1`"},
      // What a shell would take for something else is not pasted into one.
      {"-x:1 offline", "with `adb disconnect`"},
      {"x;y:1 offline", "with `adb disconnect`"},
  };
  for (const auto& [text, advice] : cases) {
    const SourceDevice device = line(text);
    EXPECT_FALSE(device.is_usable) << text;
    EXPECT_NE(device.reason, "") << text;
    EXPECT_NE(device.advice.find(advice), std::string::npos) << text << ": " << device.advice;
  }
}

TEST(AdbDeviceListTest, OddLinesAreCountedAndLimitsHold) {
  EXPECT_TRUE(parse_adb_devices("").devices.empty());
  EXPECT_EQ(parse_adb_devices("only_a_serial\n\n").left_out, 1u);
  EXPECT_EQ(parse_adb_devices(std::string(kMaxSerialBytes, 's') + " device\n").left_out, 0u);
  EXPECT_EQ(parse_adb_devices(std::string(kMaxSerialBytes + 1, 's') + " device\n").left_out, 1u);
  std::string many;
  for (size_t i = 0; i <= kMaxAdbDevices; ++i) many += "s" + std::to_string(i) + " device\n";
  EXPECT_EQ(parse_adb_devices(many).devices.size(), kMaxAdbDevices);
  EXPECT_EQ(parse_adb_devices(many).left_out, 1u);
}

std::string packet(char stream, const std::string& data) {
  return std::string{stream, static_cast<char>(data.size()), 0, 0, 0} + data;
}

TEST(ShellV2Test, PacketsOfOutputErrorsAndTheExitCode) {
  const std::string whole = packet(1, "one ") + packet(2, "oh") + packet(1, "two") +
                            packet(9, "?") + packet(3, std::string(1, '\x07'));
  const Result<ShellOutput> shell = parse_shell_v2(whole);
  ASSERT_TRUE(shell.ok());
  EXPECT_EQ(shell->output, "one two");
  EXPECT_EQ(shell->errors, "oh");
  EXPECT_EQ(shell->exit_code, 7);
  for (size_t size = 0; size < whole.size(); ++size) {
    EXPECT_EQ(parse_shell_v2(whole.substr(0, size)).code(), Code::kTruncated) << size;
  }
  const std::string huge{1, 1, 0, 16, 0};  // 1 MiB and one byte
  EXPECT_EQ(parse_shell_v2(huge).code(), Code::kDamaged);
}

// Seen: 3 MiB of them for each phone, in several copies, and in the log.
TEST(ShellV2Test, KeepsErrorsOfADeviceUpToTheLimit) {
  std::string bytes;
  for (int packet = 0; packet < 3; ++packet) {
    bytes += std::string("\x02\x00\x00\x10\x00", 5) + std::string(kMaxShellPacketBytes, '\xff');
  }
  bytes += std::string("\x03\x01\x00\x00\x00\x01", 6);
  const Result<ShellOutput> shell = parse_shell_v2(bytes);
  ASSERT_TRUE(shell.ok());
  EXPECT_EQ(shell->errors, std::string(kMaxShellErrorBytes, '\xff'));
  EXPECT_EQ(shell->exit_code, 1);
}

TEST(UnixSocketsTest, OnlyListenersOfAgentsAreFound) {
  const std::string text =
      "Num       RefCount Protocol Flags    Type St Inode Path\n"
      "0000000000000000: 00000002 00000000 00010000 0001 01 101 @collect_agent_4711\n"
      "0000000000000000: 00000003 00000000 00000000 0001 03 102 @collect_agent_4711\n"  // accepted
      "0000000000000000: 00000002 00000000 00010000 0001 01 103 @collect_agent_12\r\n"
      "0000000000000000: 00000002 00000000 00010000 0002 01 104 @collect_agent_13\n"  // datagram
      "0000000000000000: 00000002 00000000 00010000 0001 01 105 /dev/collect_agent_14\n"
      "0000000000000000: 00000002 00000000 00010000 0001 01 106 @collect_agent_\n"
      "0000000000000000: 00000002 00000000 00010000 0001 01 107 @collect_agent_15 and more\n"
      "0000000000000000: 00000002 00000000 00010000 0001 01 108 @collect_agent_12345678901\n"
      "0000000000000000: 00000002 00000000 00010000 0001 01 109\n"
      "cat: /proc/net/unix: Permission denied\n";
  const ListeningAgents found = parse_listening_agents(text);
  EXPECT_EQ(found.names, (std::vector<std::string>{"collect_agent_12", "collect_agent_4711"}));
  EXPECT_EQ(found.left_out, 0u);
  for (size_t size = 0; size < text.size(); ++size) {
    for (const std::string& name : parse_listening_agents(text.substr(0, size)).names) {
      EXPECT_TRUE(name.starts_with("collect_agent_")) << size;
    }
  }
}

TEST(UnixSocketsTest, NoMoreAgentsThanTheLimit) {
  std::string text;
  for (size_t i = 0; i <= kMaxAgentsPerDevice; ++i) {
    text += "0: 2 0 00010000 0001 01 1 @collect_agent_" + std::to_string(i) + "\n";
  }
  EXPECT_EQ(parse_listening_agents(text).names.size(), kMaxAgentsPerDevice);
  EXPECT_EQ(parse_listening_agents(text).left_out, 1u);
}

TEST(AdbAddressTest, FromTheSettingOrAsAdbTakesIt) {
  std::map<std::string, std::string> variables;
  const EnvironmentVariable environment = [&variables](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  };
  const auto text = [&environment](const std::string& setting) {
    const Result<AdbAddress> address = adb_address(setting, environment);
    return address.ok() ? address->text() : "error";
  };
  EXPECT_EQ(text("auto"), "127.0.0.1:5037");
  EXPECT_EQ(text("off"), "off");
  EXPECT_EQ(text("localhost:7000"), "127.0.0.1:7000");
  EXPECT_EQ(text("tcp:7000"), "127.0.0.1:7000");
  EXPECT_EQ(text("[::1]:7000"), "[::1]:7000");
  EXPECT_EQ(text("unix:/run/adb"), "unix:/run/adb");
  EXPECT_EQ(text("127.0.0.1:5037x"), "error");
  EXPECT_EQ(text("127.0.0.1:65536"), "error");
  const std::string path = "/" + std::string(106, 'x');
  EXPECT_EQ(text("unix:" + path), "unix:" + path);
  const std::string host(255, 'h');
  EXPECT_EQ(text(host + ":1"), host + ":1");
  for (const std::string& wrong :
       {std::string(), std::string("7000"), std::string("host"), std::string("host:"),
        std::string("host:0"), std::string("host:65536"), std::string("unix:adb"),
        std::string("::1:7000"), "unix:" + path + "x", host + "h:1"}) {
    EXPECT_EQ(text(wrong), "error") << wrong;
  }
  variables["ANDROID_ADB_SERVER_PORT"] = "15037";
  EXPECT_EQ(text("auto"), "127.0.0.1:15037");
  variables["ANDROID_ADB_SERVER_ADDRESS"] = "127.0.0.2";
  EXPECT_EQ(text("auto"), "127.0.0.2:15037");
  variables["ANDROID_ADB_SERVER_ADDRESS"] = "localhost";
  EXPECT_EQ(text("auto"), "127.0.0.1:15037");
  variables["ANDROID_ADB_SERVER_PORT"] = "0";
  EXPECT_EQ(text("auto"), "error");
  variables["ADB_SERVER_SOCKET"] = "localfilesystem:/tmp/adb";
  EXPECT_EQ(text("auto"), "unix:/tmp/adb");
  variables["ADB_SERVER_SOCKET"] = "vsock:3:5037";
  EXPECT_EQ(text("auto"), "error");
}

}  // namespace
}  // namespace collect::attach

// Messages as usbmuxd writes them, and as no one should. The property lists are written out here as
// Python's plistlib writes them.
#include "daemon/attach/usbmux/usbmux_message.h"

#include <gtest/gtest.h>

#include "daemon/attach/usbmux/usbmux_limits.h"

namespace collect::attach {
namespace {

Bytes bytes_of(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

std::string plist(const std::string& dictionary) {
  return "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!DOCTYPE plist PUBLIC \"-//Apple//DTD PLIST "
         "1.0//EN\" \"http://www.apple.com/DTDs/PropertyList-1.0.dtd\">\n<plist "
         "version=\"1.0\">\n<dict>\n" +
         dictionary + "</dict>\n</plist>\n";
}

std::string attached(const std::string& properties) {
  return plist(
      "\t<key>DeviceID</key>\n\t<integer>7</integer>\n\t<key>MessageType</key>\n"
      "\t<string>Attached</string>\n\t<key>Properties</key>\n\t<dict>\n" +
      properties + "\t</dict>\n");
}

const std::string kAttached = attached(
    "\t\t<key>ConnectionSpeed</key>\n\t\t<integer>480000000</integer>\n"
    "\t\t<key>ConnectionType</key>\n\t\t<string>USB</string>\n"
    "\t\t<key>DeviceID</key>\n\t\t<integer>7</integer>\n"
    "\t\t<key>ProductID</key>\n\t\t<integer>4776</integer>\n"
    "\t\t<key>SerialNumber</key>\n\t\t<string>00008110-001A2B3C4D5E801E</string>\n");

std::string header(uint32_t length, uint32_t version, uint32_t kind, uint32_t tag) {
  std::string bytes;
  for (const uint32_t word : {length, version, kind, tag}) {
    for (uint32_t i = 0; i < 4; ++i) bytes.push_back(static_cast<char>(word >> 8 * i & 0xFF));
  }
  return bytes;
}

Result<UsbmuxMessage> decode(const std::string& body) {
  return decode_usbmux_body(0, bytes_of(body));
}

TEST(UsbmuxMessage, AttachedHasIdSerialAndConnection) {
  const auto message = decode(kAttached);
  ASSERT_TRUE(message.ok());
  EXPECT_EQ(message->kind, UsbmuxMessage::Kind::kAttached);
  EXPECT_EQ(message->device_id, 7u);
  EXPECT_EQ(message->serial, "00008110-001A2B3C4D5E801E");
  EXPECT_EQ(message->connection, "USB");
}

TEST(UsbmuxMessage, ResultDetachedPairedAndWhatIsNew) {
  const auto result = decode(
      plist("<key>MessageType</key><string>Result</string><key>Number</key><integer>3</integer>"));
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->kind, UsbmuxMessage::Kind::kResult);
  EXPECT_EQ(result->number, 3u);
  const std::string id = "<key>DeviceID</key><integer>4294967295</integer>";
  const auto detached = decode(plist("<key>MessageType</key><string>Detached</string>" + id));
  ASSERT_TRUE(detached.ok());
  EXPECT_EQ(detached->kind, UsbmuxMessage::Kind::kDetached);
  EXPECT_EQ(detached->device_id, 4294967295u);
  const auto paired = decode(plist("<key>MessageType</key><string>Paired</string>" + id));
  ASSERT_TRUE(paired.ok());
  EXPECT_EQ(paired->kind, UsbmuxMessage::Kind::kPaired);
  const auto other = decode(plist("<key>MessageType</key><string>Sung</string>"));
  ASSERT_TRUE(other.ok());
  EXPECT_EQ(other->kind, UsbmuxMessage::Kind::kOther);
  EXPECT_EQ(other->other_kind, "Sung");
}

TEST(UsbmuxMessage, DeviceWithoutSerialOrConnectionIsStillADevice) {
  const auto message = decode(attached(""));
  ASSERT_TRUE(message.ok());
  EXPECT_EQ(message->kind, UsbmuxMessage::Kind::kAttached);
  EXPECT_EQ(message->serial, "");
}

std::string device_list(const std::string& devices) {
  return plist("<key>DeviceList</key>\n<array>\n" + devices + "</array>\n");
}

std::string list_entry(uint32_t id, const std::string& type = "Attached") {
  return "<dict><key>DeviceID</key><integer>" + std::to_string(id) +
         "</integer><key>MessageType</key><string>" + type +
         "</string><key>Properties</key><dict><key>SerialNumber</key><string>serial" +
         std::to_string(id) + "</string></dict></dict>\n";
}

TEST(UsbmuxMessage, ListOfDevices) {
  const auto none = decode(device_list(""));
  ASSERT_TRUE(none.ok());
  EXPECT_EQ(none->kind, UsbmuxMessage::Kind::kDevices);
  EXPECT_TRUE(none->devices.empty());
  const auto two = decode(device_list(list_entry(3) + list_entry(4)));
  ASSERT_TRUE(two.ok());
  ASSERT_EQ(two->devices.size(), 2u);
  EXPECT_EQ(two->devices[1].device_id, 4u);
  EXPECT_EQ(two->devices[1].serial, "serial4");
  std::string many;
  for (uint32_t id = 0; id < kMaxUsbmuxDevices; ++id) many += list_entry(id);
  ASSERT_TRUE(decode(device_list(many)).ok());
  for (const std::string& bad :
       {many + list_entry(kMaxUsbmuxDevices), list_entry(1, "Detached"), list_entry(1, "Sung"),
        std::string("<string>x</string>"), std::string("<dict/>")}) {
    EXPECT_FALSE(decode(device_list(bad)).ok()) << bad.substr(0, 100);
  }
}

TEST(UsbmuxMessage, RejectsInvalidMessages) {
  const std::string type = "<key>MessageType</key>";
  const std::string bad[] = {
      "",
      "nothing",
      "<plist version=\"1.0\"><array/></plist>",
      "<plist version=\"1.0\"><string>Attached</string></plist>",
      plist(type + "<string>Result</string>"),
      plist(type + "<string>Result</string><key>Number</key><string>0</string>"),
      plist(type + "<string>Result</string><key>Number</key><integer>4294967296</integer>"),
      plist(type + "<string>Result</string><key>Number</key><integer>-1</integer>"),
      plist(type + "<string>Attached</string><key>Properties</key><dict/>"),
      plist(type + "<string>Attached</string><key>DeviceID</key><integer>1</integer>"),
      plist(type + "<string>Detached</string>"),
      attached("<key>SerialNumber</key><string>bell \x07</string>"),
      attached("<key>SerialNumber</key><string>\xC3\xA4</string>"),
      attached("<key>SerialNumber</key><string>" + std::string(kMaxUsbmuxTextBytes + 1, 'x') +
               "</string>"),
  };
  for (const std::string& body : bad) {
    const auto message = decode(body);
    ASSERT_FALSE(message.ok()) << body;
    EXPECT_EQ(message.code(), Code::kDamaged) << body;
  }
  EXPECT_TRUE(decode(attached("<key>SerialNumber</key><string>" +
                              std::string(kMaxUsbmuxTextBytes, 'x') + "</string>"))
                  .ok());
  EXPECT_FALSE(decode(std::string(kMaxUsbmuxMessageBytes + 1, ' ')).ok());
}

// The outcome is an error or values, within the limits.
TEST(UsbmuxMessage, EveryPrefixAndEveryChangedByte) {
  for (size_t length = 0; length < kAttached.size(); ++length) {
    const auto message = decode(kAttached.substr(0, length));
    if (message.ok()) {
      EXPECT_LE(message->serial.size(), kMaxUsbmuxTextBytes);
    }
  }
  for (size_t at = 0; at < kAttached.size(); ++at) {
    for (const char flip : {'\x01', '\x20', '\x7F'}) {
      std::string changed = kAttached;
      changed[at] = static_cast<char>(changed[at] ^ flip);
      const auto message = decode(changed);
      if (message.ok()) {
        EXPECT_LE(message->serial.size(), kMaxUsbmuxTextBytes);
      }
    }
  }
}

TEST(UsbmuxMessage, DeeplyNestedPlistIsNotFollowed) {
  std::string body = "<plist version=\"1.0\">";
  while (body.size() + 7 < kMaxUsbmuxMessageBytes) body += "<array>";
  EXPECT_FALSE(decode(body).ok());
}

TEST(UsbmuxHeader, LimitsOfItsFields) {
  const uint32_t least = sizeof(UsbmuxHeader) + 1;
  const auto good = decode_usbmux_header(bytes_of(header(least, 1, 8, 0x01020304)));
  ASSERT_TRUE(good.ok());
  EXPECT_EQ(good->message_bytes, least);
  EXPECT_EQ(good->tag, 0x01020304u);
  EXPECT_TRUE(decode_usbmux_header(bytes_of(header(kMaxUsbmuxMessageBytes, 1, 8, 0))).ok());
  for (const uint32_t length : {0u, 1u, 15u, 16u, kMaxUsbmuxMessageBytes + 1, 0xFFFFFFFFu}) {
    const auto bad = decode_usbmux_header(bytes_of(header(length, 1, 8, 0)));
    ASSERT_FALSE(bad.ok()) << length;
    EXPECT_EQ(bad.code(), Code::kDamaged) << length;
    EXPECT_NE(bad.error().message.find(std::to_string(length) + " bytes"), std::string::npos);
    EXPECT_NE(bad.error().message.find("65536"), std::string::npos) << "the most";
  }
  EXPECT_EQ(decode_usbmux_header(bytes_of(header(least, 0, 8, 0))).code(), Code::kUnsupported);
  EXPECT_EQ(decode_usbmux_header(bytes_of(header(least, 1, 1, 0))).code(), Code::kUnsupported);
  const std::string whole = header(least, 1, 8, 0);
  for (size_t length = 0; length < whole.size(); ++length) {
    EXPECT_EQ(decode_usbmux_header(bytes_of(whole.substr(0, length))).code(), Code::kTruncated);
  }
}

TEST(UsbmuxRequest, HeaderAndKeysAreThere) {
  const std::string request = usbmux_connect(5, 7, 7720);
  EXPECT_EQ(request.substr(0, 16), header(static_cast<uint32_t>(request.size()), 1, 8, 5));
  const std::string keys[] = {
      "<key>MessageType</key>\n\t<string>Connect</string>",
      "<key>DeviceID</key>\n\t<integer>7</integer>",
      "<key>PortNumber</key>\n\t<integer>10270</integer>",  // 7720 in network byte order
      "<key>kLibUSBMuxVersion</key>\n\t<integer>3</integer>",
      "<key>ProgName</key>\n\t<string>collectord</string>",
      "<key>ClientVersionString</key>\n\t<string>collectord</string>",
  };
  for (const std::string& key : keys) {
    EXPECT_NE(request.find(key), std::string::npos) << key << " in\n" << request.substr(16);
  }
  EXPECT_NE(usbmux_listen(1).find("<string>Listen</string>"), std::string::npos);
  EXPECT_NE(usbmux_list_devices(1).find("<string>ListDevices</string>"), std::string::npos);
}

}  // namespace
}  // namespace collect::attach

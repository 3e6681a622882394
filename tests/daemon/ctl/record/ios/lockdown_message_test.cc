// Messages as lockdownd writes them, and as no one should. The property lists are written out here
// as Python's plistlib writes them; requests and answers are those of libimobiledevice's
// lockdownd_query_type and lockdownd_get_value.
#include "daemon/ctl/record/ios/lockdown_message.h"

#include <gtest/gtest.h>

namespace collect::ctl {
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

std::string entry(const std::string& key, const std::string& value) {
  return "\t<key>" + key + "</key>\n\t<string>" + value + "</string>\n";
}

const std::string kName = plist(entry("Key", "DeviceName") + entry("Request", "GetValue") +
                                entry("Value", "Anna\xE2\x80\x99s iPhone"));

Result<LockdownAnswer> decode(const std::string& body) {
  return decode_lockdown_answer(bytes_of(body));
}

TEST(LockdownRequest, LengthIsBigEndianAndKeysAreThere) {
  const std::string request = lockdown_get_value("ProductVersion");
  const size_t size = request.size() - 4;
  ASSERT_LT(size, 65536u);
  EXPECT_EQ(request.substr(0, 4),
            std::string({0, 0, static_cast<char>(size >> 8), static_cast<char>(size & 0xFF)}));
  for (const char* key : {"<key>Label</key>\n\t<string>collectctl</string>",
                          "<key>Key</key>\n\t<string>ProductVersion</string>",
                          "<key>Request</key>\n\t<string>GetValue</string>"}) {
    EXPECT_NE(request.find(key), std::string::npos) << key << " in\n" << request.substr(4);
  }
  const std::string type = lockdown_query_type();
  EXPECT_NE(type.find("<string>QueryType</string>"), std::string::npos);
  EXPECT_EQ(type.find("<key>Key</key>"), std::string::npos);
}

TEST(LockdownAnswer, ValueTypeAndError) {
  const auto name = decode(kName);
  ASSERT_TRUE(name.ok());
  EXPECT_EQ(name->request, "GetValue");
  EXPECT_EQ(name->value, "Anna\xE2\x80\x99s iPhone");
  EXPECT_EQ(name->error, "");
  const auto type =
      decode(plist(entry("Request", "QueryType") + entry("Type", "com.apple.mobile.lockdown")));
  ASSERT_TRUE(type.ok());
  EXPECT_EQ(type->type, "com.apple.mobile.lockdown");
  const auto refused = decode(plist(entry("Error", "MissingValue") + entry("Request", "GetValue")));
  ASSERT_TRUE(refused.ok());
  EXPECT_EQ(refused->error, "MissingValue");
  const auto old = decode(plist(entry("Request", "GetValue") + entry("Result", "Failure")));
  ASSERT_TRUE(old.ok());
  EXPECT_EQ(old->error, "Failure");
  const auto both = decode(plist(entry("Error", "InvalidHostID") + entry("Request", "GetValue") +
                                 entry("Result", "Failure")));
  EXPECT_EQ(both->error, "InvalidHostID") << "which says more";
  const auto done = decode(plist(entry("Request", "GetValue") + entry("Result", "Success")));
  EXPECT_EQ(done->error, "");
  // A number is no text: the value is not there.
  const auto number =
      decode(plist(entry("Request", "GetValue") + "<key>Value</key><integer>1</integer>"));
  ASSERT_TRUE(number.ok());
  EXPECT_EQ(number->value, "");
}

TEST(LockdownAnswer, RejectsInvalidAnswers) {
  for (const std::string& body :
       {std::string(), std::string("nothing"),
        std::string("<plist version=\"1.0\"><array/></plist>"), plist(""),
        plist(entry("Value", "17.5")), std::string(kMaxLockdownMessageBytes + 1, ' ')}) {
    const auto answer = decode(body);
    ASSERT_FALSE(answer.ok()) << body.substr(0, 200);
    EXPECT_EQ(answer.code(), Code::kDamaged);
  }
}

TEST(LockdownAnswer, RejectsTooLongTexts) {
  const std::string longest(kMaxLockdownTextBytes, 'x');
  for (const char* key : {"Type", "Value", "Error", "Result"}) {
    EXPECT_TRUE(decode(plist(entry("Request", "GetValue") + entry(key, longest))).ok()) << key;
    const auto longer = decode(plist(entry("Request", "GetValue") + entry(key, longest + "x")));
    EXPECT_EQ(longer.code(), Code::kDamaged) << key;
    EXPECT_EQ(longer.error().message, "lockdownd sent a text of more than 256 bytes") << key;
  }
  EXPECT_TRUE(decode(plist(entry("Request", longest))).ok());
  EXPECT_EQ(decode(plist(entry("Request", longest + "x"))).code(), Code::kDamaged);
  std::string body = kName + std::string(kMaxLockdownMessageBytes - kName.size(), '\n');
  EXPECT_TRUE(decode(body).ok());
  body += "\n";
  EXPECT_EQ(decode(body).error().message, "lockdownd sent too long a property list");
}

TEST(LockdownAnswer, EveryPrefixAndEveryChangedByte) {
  for (size_t length = 0; length < kName.size(); ++length) {
    const auto answer = decode(kName.substr(0, length));
    if (answer.ok()) {
      EXPECT_LE(answer->value.size(), kMaxLockdownTextBytes);
    }
  }
  for (size_t at = 0; at < kName.size(); ++at) {
    for (const char flip : {'\x01', '\x20', '\x7F'}) {
      std::string changed = kName;
      changed[at] = static_cast<char>(changed[at] ^ flip);
      const auto answer = decode(changed);
      if (answer.ok()) {
        EXPECT_LE(answer->value.size(), kMaxLockdownTextBytes);
      }
    }
  }
}

TEST(LockdownLength, HighestByteFirstAndWithinItsLimit) {
  const auto length = decode_lockdown_length(bytes_of(std::string("\x00\x00\x01\x02", 4)));
  ASSERT_TRUE(length.ok());
  EXPECT_EQ(*length, 0x102u);
  EXPECT_TRUE(decode_lockdown_length(bytes_of(std::string("\x00\x01\x00\x00", 4))).ok());
  for (const std::string& bad :
       {std::string("\x00\x00\x00\x00", 4), std::string("\x00\x01\x00\x01", 4),
        std::string("\xFF\xFF\xFF\xFF", 4), std::string("\x00\x00\x01", 3), std::string()}) {
    EXPECT_EQ(decode_lockdown_length(bytes_of(bad)).code(), Code::kDamaged);
  }
}

}  // namespace
}  // namespace collect::ctl

#include "storage/read/session_manifest.h"

#include <gtest/gtest.h>

#include <functional>
#include <sstream>

#include "daemon/ctl/terminal/text_out.h"

namespace collect::ctl {
namespace {

TEST(SessionManifest, ReadsThePublicFormat) {
  const auto manifest = read::SessionManifest::parse(R"({"threads":[{"id":3,"has_detail":true}],
    "time_start_ns":5,"modules":[{"module_id":4159724229,"path":"<main>"}],
    "symbols":[{"function_id":"0xF7f05ac500000001","module_id":4159724229,"symbol_index":1,
    "name":"_main"}],"format_version":"2.1"})");
  ASSERT_TRUE(manifest.ok());
  const read::SessionManifest& read = manifest.value();
  ASSERT_NE(read.thread(3), nullptr);
  EXPECT_EQ(read.thread(3)->has_detail, true);
  EXPECT_FALSE(read.thread(3)->says(storage::kEventsKey));
  EXPECT_EQ(read.thread(0), nullptr);
  EXPECT_TRUE(read.problems.empty());
  EXPECT_EQ(read::NameTable(read).name_of(0xF7F05AC500000001), "_main");
  EXPECT_EQ(read::NameTable(read).name_of(0xF7F05AC500000002), "<main>+0x2");
}

TEST(SessionManifest, ForgivesRawControlCharactersAndBadUtf8) {
  const auto manifest = read::SessionManifest::parse(
      "{\"threads\":[],\n\"symbols\":[{\"function_id\":\"0x1\",\"name\":\"a\nb\tc\\\"\\\\\x01\"}]"
      "}");
  ASSERT_TRUE(manifest.ok());
  EXPECT_EQ(manifest.value().symbols[0].name, "a\nb\tc\"\\\x01");
  const auto bytes = read::SessionManifest::parse(
      "{\"threads\":[],\"symbols\":[{\"function_id\":\"0x1\",\"name\":\"a\xFF\x01z\"}]}");
  ASSERT_TRUE(bytes.ok());
  EXPECT_EQ(bytes.value().symbols[0].name, "a?\x01z");
}

TEST(SessionManifest, GarbageIsRefused) {
  for (const char* text : {"", "{", "[]", "42", "{\"threads\":{}}", "{\"modules\":[]}"}) {
    EXPECT_FALSE(read::SessionManifest::parse(text).ok()) << text;
  }
}

TEST(SessionManifest, WrongTypesAreProblemsAndNotCrashes) {
  const auto manifest =
      read::SessionManifest::parse(R"({"threads":[1,{"id":-1},{"id":"x"},{"id":7},{"id":7},
    {"id":4294967296}],"modules":[null,{"module_id":"0"}],"gaps":[3,{"thread":1}],"totals":[],
    "symbols":[[],{"function_id":7},{"function_id":"0x"},{"function_id":"0x1g"},{"name":"n"}]})");
  ASSERT_TRUE(manifest.ok());
  EXPECT_EQ(manifest.value().threads.size(), 1u);
  EXPECT_TRUE(manifest.value().symbols.empty());
  EXPECT_EQ(manifest.value().problems.size(), 5u + 2u + 2u + 5u);
  EXPECT_EQ(manifest.value().problems[0].place, "/threads/0/id");
}

TEST(SessionManifest, ProblemsHaveALimit) {
  std::string text = R"({"threads":[)";
  for (size_t i = 0; i <= read::SessionManifest::kMaxProblems; ++i) text += "0,";
  text += R"({"id":1}]})";
  const auto manifest = read::SessionManifest::parse(text);
  ASSERT_TRUE(manifest.ok());
  EXPECT_EQ(manifest.value().problems.size(), read::SessionManifest::kMaxProblems);
}

// Ids that share a place in the cache must not share a name.
TEST(NameTable, AnswersStayRightUnderTheCache) {
  read::SessionManifest manifest;
  for (uint64_t id = 0; id < 20000; ++id) {
    manifest.symbols.push_back({id * 7, "f" + std::to_string(id)});
  }
  const read::NameTable names(manifest);
  for (int round = 0; round < 2; ++round) {
    for (uint64_t id = 0; id < 20000; ++id) {
      ASSERT_EQ(names.name_of(id * 7), "f" + std::to_string(id));
    }
  }
  EXPECT_EQ(names.name_of(1), "0x1");
}

std::string written(const std::function<void(TextOut&)>& write) {
  std::ostringstream out;
  {
    TextOut text(out);
    write(text);
  }
  return out.str();
}

TEST(TextOut, Numbers) {
  EXPECT_EQ(written([](TextOut& out) { out.dec(UINT64_MAX); }), "18446744073709551615");
  EXPECT_EQ(written([](TextOut& out) { out.dec(42, 5); }), "   42");
  EXPECT_EQ(written([](TextOut& out) { out.hex(0); }), "0x0");
  EXPECT_EQ(written([](TextOut& out) { out.hex(UINT64_MAX); }), "0xffffffffffffffff");
  EXPECT_EQ(written([](TextOut& out) { out.micros(1234567, 10); }), "  1234.567");
  EXPECT_EQ(written([](TextOut& out) { out.micros(-5, 0); }), "-0.005");
  EXPECT_EQ(written([](TextOut& out) { out.micros(INT64_MIN, 0); }), "-9223372036854775.808");
  EXPECT_EQ(written([](TextOut& out) { out.repeat(' ', 100); }), std::string(100, ' '));
}

TEST(TextOut, JsonStrings) {
  EXPECT_EQ(written([](TextOut& out) { out.json_string("a\"b\\c\n\x7F"); }),
            "\"a\\\"b\\\\c\\n\\u007f\"");
  EXPECT_EQ(written([](TextOut& out) { out.json_string("\xC3\xA9\xF0\x9F\x98\x80"); }),
            "\"\xC3\xA9\xF0\x9F\x98\x80\"");
}

TEST(TextOut, PrintableKeepsTheTerminalSafe) {
  EXPECT_EQ(written([](TextOut& out) { out.printable("a\x1b[2J\xC2\x9B\xC3\xA9\xFF"); }),
            "a\\x1b[2J\\u{9b}\xC3\xA9\\xff");
  EXPECT_EQ(written([](TextOut& out) { out.printable("abcdef", 5); }), "ab…");
  EXPECT_EQ(written([](TextOut& out) { out.sentence("a\\b\n"); }), "a\\b\\n");
}

TEST(TextOut, TextLargerThanTheBuffer) {
  const std::string large(200000, 'x');
  EXPECT_EQ(written([&](TextOut& out) { out.put(large); }), large);
}

}  // namespace
}  // namespace collect::ctl

#include "formats/wtf/binary/header.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "formats/wtf/layout.h"

namespace collect::wtf {
namespace {

TEST(Header, PrintedAndReadIsTheSame) {
  FileHeader header;
  header.timebase_ms = 1700000000000.25;
  header.flags = {std::string(kFlagHighResolutionTimes), std::string(kFlagTimesAsCount)};
  header.context->uri = "u\"\n";
  header.context->title = "标题";
  header.context->icon_uri = "i";
  header.context->task_id = "7";
  header.context->arguments = {"a", ""};
  header.context->user_agent = {"v", "nodejs", "linux", "p", "server"};
  header.metadata = R"({"a":[1]})";
  const std::string text = print_header(header);
  Findings findings;
  const auto read = parse_header(text, 0, findings);
  ASSERT_TRUE(read.has_value());
  EXPECT_TRUE(findings.list().empty());
  EXPECT_EQ(print_header(*read), text);
  EXPECT_EQ(read->timebase_ms, header.timebase_ms);
  // Another parser sees the documented members.
  const auto json = nlohmann::json::parse(text, nullptr, false);
  EXPECT_EQ(json["type"], "file_header");
  EXPECT_EQ(json["timebase"], 1700000000000.25);
  EXPECT_EQ(json["contextInfo"]["contextType"], "script");
  EXPECT_EQ(json["contextInfo"]["icon"]["uri"], "i");
  EXPECT_EQ(json["contextInfo"]["args"].size(), 2u);
  EXPECT_EQ(json["contextInfo"]["userAgent"]["device"], "server");
  EXPECT_EQ(json["metadata"]["a"][0], 1);
}

TEST(Header, SaysWhatTheViewerRefuses) {
  const auto refused = [](std::string_view text) {
    Findings findings;
    (void)parse_header(text, 0, findings);
    return findings.has(Rule::kHeaderJson);
  };
  EXPECT_TRUE(refused("{nope"));
  EXPECT_TRUE(refused("[]"));
  EXPECT_TRUE(refused("{}")) << "no timebase";
  EXPECT_TRUE(refused(R"({"timebase":"1"})"));
  EXPECT_TRUE(refused(R"({"timebase":0,"flags":"x"})"));
  EXPECT_TRUE(refused(R"({"timebase":0,"contextInfo":{"contextType":"process"}})"));
  EXPECT_TRUE(refused(R"({"timebase":0} x)"));
  EXPECT_FALSE(refused(R"({"timebase":1.5})"));
  EXPECT_FALSE(refused(R"({"timebase":0,"flags":["zzz"],"contextInfo":{"contextType":"script"}})"));
}

TEST(Header, HasALimit) {
  const auto with_bytes = [](size_t bytes) {
    std::string text = R"({"timebase":0,"title":"")";
    text.insert(text.size() - 1, bytes - text.size() - 1, 'x');
    return text + "}";
  };
  Findings findings;
  EXPECT_TRUE(parse_header(with_bytes(kMaxHeaderJsonBytes), 0, findings).has_value());
  EXPECT_FALSE(parse_header(with_bytes(kMaxHeaderJsonBytes + 1), 0, findings).has_value());
  EXPECT_EQ(findings.errors(), 1u);
}

TEST(Header, OddKindsOfMembersArePassedOver) {
  Findings findings;
  const auto header = parse_header(
      R"({"timebase":1,"flags":[1,"a"],"contextInfo":{"contextType":"script","uri":7,"args":null,)"
      R"("icon":null,"userAgent":"x","title":{"deep":[]}},"metadata":[1]})",
      0, findings);
  ASSERT_TRUE(header.has_value());
  EXPECT_TRUE(findings.list().empty());
  EXPECT_EQ(header->flags, (std::vector<std::string>{"", "a"}));
  EXPECT_EQ(header->metadata, "[1]");
  EXPECT_EQ(header->context->uri, "");
}

}  // namespace
}  // namespace collect::wtf

#include "daemon/web/page_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace collect::web {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(PageRequestTest, EveryPathComesThroughAsItIs) {
  PageRequest request;
  request.directory = "/tmp/not \xff UTF-8\n\"/pid_1";
  request.can_change = true;
  request.symbols = {{"/a", "/b\xfe"}, {}};
  const auto read = PageRequest::parse(request.to_json());
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->directory, request.directory);
  EXPECT_TRUE(read->can_change);
  ASSERT_TRUE(read->symbols.has_value());
  EXPECT_THAT(read->symbols->directories, ElementsAre("/a", "/b\xfe"));
  EXPECT_THAT(read->symbols->roots, IsEmpty());
}

TEST(PageRequestTest, RoundTripsThroughJson) {
  PageRequest request;
  request.directory = "/a";
  request.want = PageWant::kRecord;
  request.first_ns = 0xFFFF'FFFF'FFFF'FFF0;
  request.thread = 7;
  request.record = 0xFFFF'FFFF'FFFF'FFF1;
  request.function = "f<\xff>(int)";
  const auto read = PageRequest::parse(request.to_json());
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->want, PageWant::kRecord);
  EXPECT_EQ(read->first_ns, request.first_ns);
  EXPECT_EQ(read->last_ns, std::numeric_limits<uint64_t>::max());
  EXPECT_EQ(read->thread, 7u);
  EXPECT_EQ(read->record, request.record);
  EXPECT_EQ(read->function, request.function);
  std::string unknown = request.to_json();
  unknown.replace(unknown.find("\"want\":3"), 8, "\"want\":9");
  EXPECT_EQ(PageRequest::parse(unknown).code(), Code::kDamaged);
}

TEST(PageRequestTest, WithoutSymbolsNoNamesAreLookedUp) {
  const auto read = PageRequest::parse(PageRequest{"/a", false, std::nullopt}.to_json());
  ASSERT_TRUE(read.ok());
  EXPECT_FALSE(read->symbols.has_value());
  EXPECT_FALSE(read->can_change);
}

TEST(PageRequestTest, EveryPrefixIsNoRequest) {
  const std::string text = PageRequest{"/a/b", true, PageRequest::Symbols{{"/c"}, {"/"}}}.to_json();
  for (size_t bytes = 0; bytes < text.size(); ++bytes) {
    const auto read = PageRequest::parse(text.substr(0, bytes));
    ASSERT_FALSE(read.ok()) << bytes;
    EXPECT_EQ(read.code(), Code::kDamaged);
  }
  EXPECT_FALSE(PageRequest::parse("{\"directory\":\"/a\",\"can_change\":true}").ok());
  EXPECT_FALSE(PageRequest::parse("{\"directory\":[47],\"can_change\":1}").ok());
}

TEST(PageRequestTest, DistinguishesAnErrorFromAPage) {
  EXPECT_EQ(error_in_page(page_error_json("it broke: \"\xff\"")), "it broke: \"\xef\xbf\xbd\"");
  EXPECT_EQ(error_in_page("<!doctype html>{"), std::nullopt);
  EXPECT_EQ(error_in_page("{\"error\":"), "the page was not made");
  EXPECT_EQ(error_in_page("{\"version\":1}"), "the page was not made");
  EXPECT_EQ(error_in_page("{\"version\":1}", PageWant::kWindow), std::nullopt);
  EXPECT_EQ(error_in_page("{\"error\":\"it broke\"}", PageWant::kBars), "it broke");
  EXPECT_EQ(error_in_page("{\"error\":7}"), "the page was not made");
}

}  // namespace
}  // namespace collect::web

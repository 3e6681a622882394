// The page's data as a browser reads it: an HTML parser ends a script element at the first
// "</script", wherever that is; what is before it has to be the JSON.
#include "formats/html/writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace collect::html {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

class Written final : public ByteSink {
 public:
  Status write(Bytes bytes) override {
    text.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    return is_full ? Status(Error{Code::kNoSpace, "full"}) : Status();
  }
  std::string text;
  bool is_full = false;
};

std::string written(const Page& page) {
  Written out;
  const Status status = write_page(page, out);
  EXPECT_TRUE(status.ok());
  return out.text;
}

json data_of(const std::string& html) {
  const std::string begin = "<script id=\"data\" type=\"application/json\">";
  const size_t at = html.find(begin);
  EXPECT_NE(at, std::string::npos);
  const size_t end = html.find("</script", at);
  return json::parse(html.substr(at + begin.size(), end - at - begin.size()), nullptr, false);
}

Page small_page() {
  Page page;
  page.title = "app (42)";
  page.facts = {{"events", "4"}};
  page.missing = {"1 event was lost"};
  page.first_ns = 1000;
  page.last_ns = 11000;
  page.names = {"main", "work"};
  page.places = {"src/main.c:12", ""};
  page.modules = {"app", "app"};
  Thread thread;
  thread.name = "main (42)";
  thread.activity = {2, 0, 2};
  thread.number = 3;
  Bar several;
  several.depth = 1;
  several.first_ns = 1500;
  several.last_ns = 1700;
  several.name = 1;
  several.calls = 12;
  several.covered_ns = 90;
  Bar call;
  call.first_ns = 1000;
  call.last_ns = 11000;
  call.calls = 1;
  call.covered_ns = 10000;
  call.is_call = call.is_whole = true;
  call.begin_ns = 900;
  call.total_ns = 9000;
  call.self_ns = 4000;
  call.end = "returned";
  call.record_of_end = 7;
  thread.bars = {call, several};
  thread.deeper_calls = 5;
  thread.has_all_calls = true;
  thread.stalls = {{2000, 3000}};
  thread.gaps = {{4000, 4000}};
  thread.tree.nodes.push_back({0, 0, 10000, 4000, 1});
  thread.tree.nodes.push_back({1, 1, 6000, 6000, 1});
  thread.tree.nodes.push_back({0, Tree::kAfterLoss, 0, 0, 0});
  page.threads.push_back(thread);
  page.functions = {{1, 1, 6000, 6000, 6000, 6001, 6002}};
  page.markers = {{1200, "here"}};
  return page;
}

TEST(HtmlWriter, DataIsThatOfTheDocument) {
  EXPECT_EQ(data_of(written(small_page())), json::parse(R"text({
      "version": 1, "title": "app (42)", "facts": [["events", "4"]],
      "missing": ["1 event was lost"], "origin": "1000", "first_ns": 1000, "last_ns": 11000,
      "names": ["main", "work"], "places": ["src/main.c:12", ""],
      "modules": {"of": [0, 0], "names": ["app"]},
      "threads": [{"name": "main (42)", "number": 3, "all_calls": true, "deeper_calls": 5,
                   "bars": [[0, 0, 10000, 0, 1, 10000, 1, 9000, 4000, -100, "returned", -1, 7],
                            [1, 500, 200, 1, 12, 90]],
                   "activity": [2, 0, 2], "stalls": [[2000, 3000]],
                   "gaps": [[4000, 4000]],
                   "tree": {"parent": [0, 0, 1, 0], "name": [-1, 0, 1, -2],
                            "total": [0, 10000, 6000, 0], "self": [0, 4000, 6000, 0],
                            "calls": [0, 1, 1, 0]}}],
      "functions": [[1, 1, 6000, 6000, 6000, 6001, 6002]], "markers": [[200, "here"]]})text"));
}

TEST(HtmlWriter, WritesAPageForAnEmptyRecording) {
  const json data = data_of(written({}));
  EXPECT_TRUE(data["threads"].empty());
  EXPECT_EQ(data["names"], json::array());
}

// A peer chooses the names of functions and threads.
TEST(HtmlWriter, NamesCannotEndTheScript) {
  const std::string evil = "</script><script>alert(1)</script><!-- \" \\ \x01 @DATA@";
  Page page = small_page();
  page.names[0] = page.title = page.threads[0].name = page.missing[0] = evil;
  page.markers[0].text = evil;
  page.facts = {{evil, evil}};
  const std::string html = written(page);
  EXPECT_THAT(html, Not(HasSubstr("<script>alert")));
  const json data = data_of(html);
  for (const json& text : {data["names"][0], data["title"], data["threads"][0]["name"],
                           data["missing"][0], data["facts"][0][1], data["markers"][0][1]}) {
    EXPECT_EQ(text, evil);
  }
  EXPECT_EQ(written(small_page()).find("@DATA@"), std::string::npos);
}

TEST(HtmlWriter, BytesThatAreNoTextAreReplaced) {
  Page page = small_page();
  page.names[1] = "caf\xE9";
  EXPECT_FALSE(data_of(written(page)).is_discarded());
}

// It works from a mail or a USB stick: nothing is fetched.
TEST(HtmlWriter, PageLoadsNoOtherFiles) {
  const std::string html = written(small_page());
  EXPECT_THAT(html, HasSubstr("default-src 'none'"));
  EXPECT_THAT(html, Not(HasSubstr("connect-src")));
  EXPECT_THAT(html, Not(HasSubstr("http://")));
  // Perfetto's, which is opened by a click where there is a server to ask for the trace.
  const size_t address = html.find("https://");
  EXPECT_EQ(html.substr(address, 23), "https://ui.perfetto.dev");
  EXPECT_EQ(html.find("https://", address + 1), std::string::npos);
  EXPECT_THAT(html, Not(HasSubstr(" src=")));
}

// It asks its own server, and no one else.
TEST(HtmlWriter, PageThatIsServedMayAsk) {
  Page page = small_page();
  page.can_ask = true;
  const std::string html = written(page);
  EXPECT_THAT(html, HasSubstr("; connect-src 'self'\""));
  EXPECT_EQ(data_of(html)["can_ask"], true);
}

TEST(HtmlWriter, DataAloneAreTheSame) {
  Written out;
  ASSERT_TRUE(write_page_data(small_page(), out).ok());
  EXPECT_EQ(json::parse(out.text), data_of(written(small_page())));
}

TEST(HtmlWriter, ErrorOfTheSinkIsReturned) {
  Written out;
  out.is_full = true;
  EXPECT_EQ(write_page(small_page(), out).code(), Code::kNoSpace);
}

TEST(HtmlWriter, PageThatCanBeRefreshedSaysSo) {
  Page page = small_page();
  EXPECT_FALSE(data_of(written(page)).contains("can_refresh"));
  EXPECT_FALSE(data_of(written(page)).contains("is_recording"));
  page.can_refresh = page.is_recording = true;
  EXPECT_EQ(data_of(written(page))["is_recording"], true);
  EXPECT_EQ(data_of(written(page))["can_refresh"], true);
}

// A server allows the script and the style by their hashes: they have to be these bytes, and there
// must be no other ones.
TEST(HtmlWriter, ScriptAndStyleAreWhatThePageHas) {
  Page page = small_page();
  page.names[0] = "<script>alert(1)</script><style>";
  const std::string html = written(page);
  const auto count_of = [&html](const std::string& text) {
    size_t count = 0;
    for (size_t at = html.find(text); at != std::string::npos; at = html.find(text, at + 1))
      ++count;
    return count;
  };
  EXPECT_EQ(count_of("<script>" + std::string(page_script()) + "</script>"), 1u);
  EXPECT_EQ(count_of("<style>" + std::string(page_style()) + "</style>"), 1u);
  EXPECT_EQ(count_of("<script"), 2u) << "the data and the script";
  EXPECT_EQ(count_of("<style"), 1u);
  for (const char* forbidden : {" style=\"", " onclick=", " onload=", " onerror=", "javascript:"}) {
    EXPECT_EQ(count_of(forbidden), 0u) << forbidden;
  }
  EXPECT_GT(page_script().size(), 1000u);
  EXPECT_GT(page_style().size(), 100u);
}

}  // namespace
}  // namespace collect::html

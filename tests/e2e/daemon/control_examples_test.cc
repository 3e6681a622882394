// The examples of daemon/control/CONTROL.md, one after the other, as they stand there: by grpcurl
// or buf against a collector that records the program that they are about. Only the process that is
// attached to has another number.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <regex>

#include "tests/e2e/collector_process.h"
#include "tests/e2e/grpc_tool.h"

namespace collect::e2e {
namespace {

using nlohmann::json;

struct Example {
  std::string method;   // "ListAgents"; empty: grpcurl's list
  std::string request;  // as the document has it
};

// Every grpcurl command of an indented block that asks localhost:7711, over several lines too.
std::vector<Example> examples() {
  std::ifstream file(std::string(E2E_SOURCE) + "/daemon/control/CONTROL.md");
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  static const std::regex command(
      "\n    grpcurl -plaintext (?:-d '([^']*)' )?localhost:7711 "
      "(?:list|collect\\.control\\.v1\\.Collector/(\\w+))");
  std::vector<Example> found;
  for (std::sregex_iterator at(text.begin(), text.end(), command), end; at != end; ++at) {
    found.push_back({(*at)[2].str(), (*at)[1].matched ? (*at)[1].str() : "{}"});
  }
  return found;
}

size_t count_of(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

class Examples : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (!tool_.is_there()) {
      GTEST_SKIP() << GetParam() << " names no program (deploy/test.sh sets it)";
    }
  }
  std::string state() {
    const Ending listed = collector_.ctl({"--json", "sessions"});
    const json all = json::parse(listed.output, nullptr, false);
    if (!all.is_object() || all["sessions"].empty()) return "";
    const json& newest = all["sessions"][0];
    if (newest.value("events", uint64_t{0}) == 0) return "";
    return newest.value("state", "");
  }

  const GrpcTool tool_{GetParam()};
  Scratch scratch_;
  CollectorProcess collector_{scratch_};
};

TEST_P(Examples, AllOfThemDoWhatTheySay) {
  const std::vector<Example> all = examples();
  std::ifstream file(std::string(E2E_SOURCE) + "/daemon/control/CONTROL.md");
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  ASSERT_EQ(all.size(), count_of(text, "\n    grpcurl -plaintext "))
      << "an example is written in a way that this test does not read";
  ASSERT_GE(all.size(), 10u);
  for (const Example& example : all) {
    SCOPED_TRACE(example.method + " " + example.request);
    // Rules of an example before would keep the program idle.
    ASSERT_TRUE(tool_.call(collector_, scratch_, "SetRules", "{}").exited_with(0));
    ChildProcess program(scratch_.path(), {traced_program("renderer"), "600000"},
                         collector_.tracing());
    ASSERT_TRUE(eventually(seconds(30), [&] { return state() == "recording"; }));
    if (example.method == "ConvertSession") {
      (void)collector_.ctl({"stop"});
      ASSERT_TRUE(eventually(seconds(30), [&] { return state() == "complete"; }));
    }
    ChildProcess unprepared(scratch_.path(),
                            {traced_program("unprepared"), "20", "1", scratch_ / "never"});
    const std::string pid = std::to_string(unprepared.pid());
    if (example.method == "DetachProcess") {
      const Ending attached =
          tool_.call(collector_, scratch_, "AttachProcess", "{\"pid\": " + pid + "}");
      ASSERT_TRUE(attached.exited_with(0)) << attached.output << attached.errors;
    }
    const std::string request =
        std::regex_replace(example.request, std::regex("\"pid\": [0-9]+"), "\"pid\": " + pid);
    const Ending ending = example.method.empty()
                              ? tool_.list_methods(collector_, scratch_)
                              : tool_.call(collector_, scratch_, example.method, request);
    EXPECT_TRUE(ending.exited_with(0)) << ending.output << ending.errors;
    EXPECT_EQ(ending.output.find("\"error\""), std::string::npos) << ending.output;
    for (ChildProcess* one : {&program, &unprepared}) one->send_signal(SIGKILL);
    (void)unprepared.wait(seconds(10));
    (void)program.wait(seconds(10));
    ASSERT_TRUE(eventually(seconds(30), [&] { return state() != "recording"; }));
  }
}

INSTANTIATE_TEST_SUITE_P(Tools, Examples, testing::Values("COLLECT_BUF", "COLLECT_GRPCURL"),
                         [](const auto& test) { return std::string(test.param).substr(8); });

}  // namespace
}  // namespace collect::e2e

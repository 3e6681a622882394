#include "formats/core/text/environment_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace collect {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// "NAME", or "NAME, near NEAREST".
std::vector<std::string> unknown(const std::vector<std::string>& environment) {
  std::vector<const char*> entries;
  for (const std::string& entry : environment) entries.push_back(entry.c_str());
  entries.push_back(nullptr);
  std::vector<std::string> found;
  for_each_unknown_variable(entries.data(), [&found](const UnknownVariable& variable) {
    found.emplace_back(variable.name);
    if (!variable.nearest.empty()) found.back().append(", near ").append(variable.nearest);
  });
  return found;
}

TEST(EnvironmentNamesTest, MisspeltNamesAreSaidWithTheNearest) {
  EXPECT_THAT(
      unknown({"COLLECT_BUFER_MB=8", "HOME=/root", "COLLECT_TOKENFILE=x", "COLLECT_BUFFER=1",
               "COLLECT_CONTROL_TLS_NAMES=x", "COLLECT_NO_SUCH_THING=1", "COLLECT_=1",
               "COLLECT_CONTROLL", "PATH=COLLECT_X", "COLLECTOR=1"}),
      ElementsAre("COLLECT_BUFER_MB, near COLLECT_BUFFER_MB",
                  "COLLECT_TOKENFILE, near COLLECT_TOKEN_FILE",
                  "COLLECT_BUFFER, near COLLECT_BUFFER_MB",
                  "COLLECT_CONTROL_TLS_NAMES, near COLLECT_CONTROL_TLS_NAME",
                  "COLLECT_NO_SUCH_THING", "COLLECT_", "COLLECT_CONTROLL, near COLLECT_CONTROL"));
}

TEST(EnvironmentNamesTest, OneSentenceForAllWhoWarn) {
  const auto sentence = [](const UnknownVariable& unknown) {
    std::string text;
    put_unknown_variable(
        unknown, [&text](std::string_view words) { text += words; },
        [](std::string_view name) { return "<" + std::string(name) + ">"; });
    return text;
  };
  EXPECT_EQ(sentence({"COLLECT_TAGS", "COLLECT_TAG"}),
            "unknown variable <COLLECT_TAGS>; did you mean COLLECT_TAG?");
  EXPECT_EQ(sentence({"COLLECT_X", ""}), "unknown variable <COLLECT_X>");
}

// The agent's COLLECT_CONNECT and the commands' COLLECT_CONTROL are both within reach.
TEST(EnvironmentNamesTest, NearerOfTwoNamesIsSaid) {
  EXPECT_THAT(unknown({"COLLECT_CONNECL=1", "COLLECT_CONTROT=1"}),
              ElementsAre("COLLECT_CONNECL, near COLLECT_CONNECT",
                          "COLLECT_CONTROT, near COLLECT_CONTROL"));
}

TEST(EnvironmentNamesTest, KnownNamesAreNotSaid) {
  std::vector<std::string> environment = {"COLLECT=1", "COLLECTION_=1", "COLLECT_TAG"};
  for (const std::string_view name : kAgentVariables)
    environment.push_back(std::string(name) + "=1");
  for (const std::string_view name : kCommandLineVariables)
    environment.push_back(std::string(name) + "=1");
  EXPECT_THAT(unknown(environment), IsEmpty());
}

// A compiler that runs under `collectctl run -- make` starts its linker with these.
TEST(EnvironmentNamesTest, NamesOfGccAreItsOwn) {
  EXPECT_THAT(
      unknown({"COLLECT_GCC=gcc", "COLLECT_GCC_OPTIONS=-O2", "COLLECT_LTO_WRAPPER=/usr/lib"}),
      IsEmpty());
}

}  // namespace
}  // namespace collect

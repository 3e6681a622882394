#include "formats/core/environment_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace collect {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string> unknown(const std::vector<std::string>& environment) {
  std::vector<const char*> entries;
  for (const std::string& entry : environment) entries.push_back(entry.c_str());
  entries.push_back(nullptr);
  return unknown_variables(entries.data());
}

TEST(EnvironmentNamesTest, MisspeltNamesAreSaidWithTheNearest) {
  EXPECT_THAT(unknown({"COLLECT_BUFER_MB=8", "HOME=/root", "COLLECT_TOKENFILE=x",
                       "COLLECT_CONTROL_TLS_NAMES=x", "COLLECT_NO_SUCH_THING=1"}),
              ElementsAre("unknown variable COLLECT_BUFER_MB; did you mean COLLECT_BUFFER_MB?",
                          "unknown variable COLLECT_TOKENFILE; did you mean COLLECT_TOKEN_FILE?",
                          "unknown variable COLLECT_CONTROL_TLS_NAMES; did you mean "
                          "COLLECT_CONTROL_TLS_NAME?",
                          "unknown variable COLLECT_NO_SUCH_THING"));
}

TEST(EnvironmentNamesTest, KnownNamesAreNotSaid) {
  std::vector<std::string> environment = {"COLLECT=1", "COLLECTION_=1", "COLLECT_TAG"};
  for (const char* name : kAgentVariables) environment.push_back(std::string(name) + "=1");
  for (const char* name : kCommandLineVariables) environment.push_back(std::string(name) + "=1");
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

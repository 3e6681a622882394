// The table of AGENT.md "Settings": every variable with the values at its ends, one beyond, and
// what is said then.
#include "agent/settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <string>
#include <utility>
#include <vector>

namespace collect::agent {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<std::string> g_said;

class SettingsTest : public testing::Test {
 protected:
  SettingsTest() {
    std::vector<std::string> ours;
    for (char** entry = environ; *entry != nullptr; ++entry) {
      const std::string name = std::string(*entry).substr(0, std::string(*entry).find('='));
      if (name.starts_with("COLLECT_")) ours.push_back(name);
    }
    for (const std::string& name : ours) ::unsetenv(name.c_str());
    g_said.clear();
  }

  using Variables = std::vector<std::pair<std::string, std::string>>;

  // The settings of an environment that holds.
  static Settings read(const Variables& variables) {
    Settings settings;
    EXPECT_EQ(problem(variables, settings), "");
    return settings;
  }
  // What is said of one that does not; empty: it holds.
  static std::string problem(const Variables& variables) {
    Settings settings;
    return problem(variables, settings);
  }
  static std::string problem(const Variables& variables, Settings& settings) {
    for (const auto& [name, value] : variables) ::setenv(name.c_str(), value.c_str(), 1);
    const char* error = nullptr;
    const bool holds = settings_from_environment(settings, &error);
    for (const auto& [name, value] : variables) ::unsetenv(name.c_str());
    EXPECT_EQ(holds, error == nullptr);
    return error == nullptr ? "" : error;
  }
  static const std::vector<std::string>& unknown() {
    g_said.clear();
    warn_of_unknown_variables([](const char* sentence) { g_said.emplace_back(sentence); });
    return g_said;
  }
};

TEST_F(SettingsTest, IsOffWithDefaultsWithoutVariables) {
  for (const Variables& none : {Variables{}, Variables{{"COLLECT_CONNECT", ""},
                                                       {"COLLECT_LISTEN", ""},
                                                       {"COLLECT_BUFFER_MB", ""},
                                                       {"COLLECT_FULL", ""},
                                                       {"COLLECT_LOG", ""},
                                                       {"COLLECT_START", ""}}}) {
    const Settings settings = read(none);
    EXPECT_EQ(settings.role, Role::kNone);
    EXPECT_EQ(settings.full, FullPolicy::kDrop);
    EXPECT_EQ(settings.drain, DrainBy::kThread);
    EXPECT_EQ(settings.buffer_mb, 64u);
    EXPECT_EQ(settings.spool_mb, 256u);
    EXPECT_EQ(settings.atf_version, 2);
    EXPECT_EQ(settings.detail, 0);
    EXPECT_EQ(settings.exit_flush_ms, 5'000u);
    EXPECT_TRUE(settings.start_recording);
    EXPECT_FALSE(settings.log);
    EXPECT_STREQ(settings.address, "");
    EXPECT_STREQ(settings.spool, "");
  }
}

TEST_F(SettingsTest, ConnectingComesBeforeListening) {
  Settings settings = read({{"COLLECT_CONNECT", "host:1"}, {"COLLECT_LISTEN", "tcp:2"}});
  EXPECT_EQ(settings.role, Role::kConnect);
  EXPECT_STREQ(settings.address, "host:1");
  settings = read({{"COLLECT_LISTEN", "tcp:2"}});
  EXPECT_EQ(settings.role, Role::kListen);
  EXPECT_STREQ(settings.address, "tcp:2");
  settings = read({{"COLLECT_CONNECT", ""}, {"COLLECT_LISTEN", "tcp:2"}});
  EXPECT_EQ(settings.role, Role::kListen);
}

TEST_F(SettingsTest, TextsHaveTheirLengths) {
  struct Text {
    const char* name;
    size_t most;
    std::string (*value)(const Settings&);
  };
  const Text texts[] = {
      {"COLLECT_CONNECT", 1023, [](const Settings& s) { return std::string(s.address); }},
      {"COLLECT_LISTEN", 1023, [](const Settings& s) { return std::string(s.address); }},
      {"COLLECT_TOKEN_FILE", 255, [](const Settings& s) { return std::string(s.token_file); }},
      {"COLLECT_TLS_CA", 255, [](const Settings& s) { return std::string(s.tls_ca); }},
      {"COLLECT_TLS_CERTIFICATE", 255,
       [](const Settings& s) { return std::string(s.tls_certificate); }},
      {"COLLECT_TLS_KEY", 255, [](const Settings& s) { return std::string(s.tls_key); }},
      {"COLLECT_SPOOL", 255, [](const Settings& s) { return std::string(s.spool); }},
      {"COLLECT_PLANS", 255, [](const Settings& s) { return std::string(s.plans); }},
      {"COLLECT_ONLY", 4095, [](const Settings& s) { return std::string(s.only); }},
      {"COLLECT_EXCEPT", 4095, [](const Settings& s) { return std::string(s.except); }},
      {"COLLECT_TAG", 63, [](const Settings& s) { return std::string(s.tag); }},
  };
  for (const Text& text : texts) {
    const std::string longest(text.most, 'x');
    EXPECT_EQ(text.value(read({{text.name, longest}})), longest) << text.name;
    EXPECT_EQ(text.value(read({{text.name, "y"}})), "y") << text.name;
    EXPECT_EQ(problem({{text.name, longest + "x"}}), std::string(text.name) + " is too long");
  }
}

TEST_F(SettingsTest, TimesHaveAUnit) {
  const std::pair<const char*, uint64_t> times[] = {{"1ns", 1},
                                                    {"5us", 5'000},
                                                    {"20ms", 20'000'000},
                                                    {"1s", 1'000'000'000},
                                                    {"3600s", 3'600'000'000'000},
                                                    {"3600000000000ns", 3'600'000'000'000},
                                                    {"", 0}};
  for (const auto& [text, ns] : times) {
    EXPECT_EQ(read({{"COLLECT_LONGER_THAN", text}}).longer_than_ns, ns) << text;
  }
  for (const char* wrong : {"5", "us", "0us", "3601s", "3600000000001ns", "5 us", " 5us", "5us ",
                            "-5us", "5m", "5h", "18446744073709551617ns"}) {
    EXPECT_EQ(problem({{"COLLECT_LONGER_THAN", wrong}}),
              "COLLECT_LONGER_THAN must be a time such as 5us (ns, us, ms, s), at most 3600s")
        << wrong;
  }
}

TEST_F(SettingsTest, TimeLimitMayHaveAStartTime) {
  Settings settings = read({{"COLLECT_MAX_TIME", "10s"}});
  EXPECT_EQ(settings.max_time_ns, 10'000'000'000u);
  EXPECT_EQ(settings.max_time_since_ns, 0u);
  settings = read({{"COLLECT_MAX_TIME", "500ms@18446744073709551615"}});
  EXPECT_EQ(settings.max_time_ns, 500'000'000u);
  EXPECT_EQ(settings.max_time_since_ns, UINT64_MAX);
  EXPECT_EQ(read({{"COLLECT_MAX_TIME", "100000000s"}}).max_time_ns, 100'000'000'000'000'000u);
  EXPECT_EQ(read({{"COLLECT_MAX_TIME", ""}}).max_time_ns, 0u);
  for (const char* wrong : {"10", "0s", "100000001s", "s", "@1", "10s@", "10s@x", "10s@1@2",
                            "10@1s", "10s@18446744073709551616"}) {
    EXPECT_EQ(problem({{"COLLECT_MAX_TIME", wrong}}),
              "COLLECT_MAX_TIME must be a time such as 10s (ns, us, ms, s)")
        << wrong;
  }
}

TEST_F(SettingsTest, SizesMayHaveAUnit) {
  const std::pair<const char*, uint64_t> sizes[] = {{"1", 1},
                                                    {"4096", 4096},
                                                    {"512K", 512u << 10},
                                                    {"10M", 10u << 20},
                                                    {"2G", uint64_t{2} << 30},
                                                    {"1073741824G", uint64_t{1} << 60},
                                                    {"", 0}};
  for (const auto& [text, bytes] : sizes) {
    EXPECT_EQ(read({{"COLLECT_MAX_SIZE", text}}).max_bytes, bytes) << text;
  }
  for (const char* wrong :
       {"0", "0M", "M", "10MB", "10m", "1.5G", "-1", " 1", "1073741825G", "18446744073709551617"}) {
    EXPECT_EQ(problem({{"COLLECT_MAX_SIZE", wrong}}),
              "COLLECT_MAX_SIZE must be a number of bytes, or one with K, M or G")
        << wrong;
  }
}

TEST_F(SettingsTest, ParentIsTheNumberOfAProcess) {
  const Settings settings = read({{"COLLECT_CHILD_OF", "4711"}});
  EXPECT_EQ(settings.child_of, 4711);
  EXPECT_TRUE(settings.this_process_only);
  EXPECT_FALSE(read({{"COLLECT_CHILD_OF", ""}}).this_process_only);
  for (const char* wrong : {"0", "-1", "me", "2147483648"}) {
    EXPECT_EQ(problem({{"COLLECT_CHILD_OF", wrong}}),
              "COLLECT_CHILD_OF must be the number of a process");
  }
}

TEST_F(SettingsTest, NumbersHaveTheirBounds) {
  struct Number {
    const char* name;
    uint32_t least, most;
    uint32_t (*value)(const Settings&);
    const char* problem;
  };
  const Number numbers[] = {
      {"COLLECT_BUFFER_MB", 1, 16'384, [](const Settings& s) { return s.buffer_mb; },
       "COLLECT_BUFFER_MB must be a number from 1 to 16384"},
      {"COLLECT_SPOOL_MB", 1, 65'536, [](const Settings& s) { return s.spool_mb; },
       "COLLECT_SPOOL_MB must be a number from 1 to 65536"},
      {"COLLECT_ATF_VERSION", 1, 2, [](const Settings& s) { return uint32_t{s.atf_version}; },
       "COLLECT_ATF_VERSION must be 1 or 2"},
      {"COLLECT_MAX_DEPTH", 1, 1'000'000, [](const Settings& s) { return s.max_depth; },
       "COLLECT_MAX_DEPTH must be a number from 1 to 1000000"},
      {"COLLECT_SAMPLE", 1, 10'000, [](const Settings& s) { return s.sample_hz; },
       "COLLECT_SAMPLE must be a number from 1 to 10000"},
      {"COLLECT_MAX_RATE", 1, 1'000'000'000, [](const Settings& s) { return s.max_rate; },
       "COLLECT_MAX_RATE must be a number from 1 to 1000000000"},
      {"COLLECT_EXIT_FLUSH_MS", 0, 600'000, [](const Settings& s) { return s.exit_flush_ms; },
       "COLLECT_EXIT_FLUSH_MS must be a number from 0 to 600000"},
  };
  for (const Number& number : numbers) {
    SCOPED_TRACE(number.name);
    for (const uint32_t value : {number.least, number.most}) {
      EXPECT_EQ(number.value(read({{number.name, std::to_string(value)}})), value);
      std::string padded = std::to_string(value);
      padded.insert(0, 10 - padded.size(), '0');
      EXPECT_EQ(number.value(read({{number.name, padded}})), value);
      EXPECT_EQ(problem({{number.name, "0" + padded}}), number.problem) << "eleven digits";
    }
    std::vector<std::string> wrong = {std::to_string(uint64_t{number.most} + 1),
                                      "1x",
                                      "x",
                                      "-1",
                                      " 1",
                                      "1/",
                                      "1:",
                                      "18446744073709551617"};
    if (number.least != 0) wrong.push_back(std::to_string(number.least - 1));
    for (const std::string& value : wrong) {
      EXPECT_EQ(problem({{number.name, value}}), number.problem) << value;
    }
  }
}

TEST_F(SettingsTest, WordsAreTakenAndNoOthers) {
  EXPECT_EQ(read({{"COLLECT_FULL", "drop"}}).full, FullPolicy::kDrop);
  EXPECT_EQ(read({{"COLLECT_FULL", "overwrite"}}).full, FullPolicy::kOverwrite);
  EXPECT_EQ(read({{"COLLECT_FULL", "wait"}}).full, FullPolicy::kWait);
  EXPECT_EQ(read({{"COLLECT_DETAIL", "off"}}).detail, 0);
  EXPECT_EQ(read({{"COLLECT_DETAIL", "armed"}}).detail, 1);
  EXPECT_EQ(read({{"COLLECT_DETAIL", "on"}}).detail, 2);
  EXPECT_TRUE(read({{"COLLECT_START", "recording"}}).start_recording);
  EXPECT_FALSE(read({{"COLLECT_START", "idle"}}).start_recording);
  EXPECT_EQ(read({{"COLLECT_DRAIN", "thread"}}).drain, DrainBy::kThread);
  EXPECT_EQ(read({{"COLLECT_DRAIN", "thread"}}).exit_flush_ms, 5'000u);
  EXPECT_EQ(read({{"COLLECT_DRAIN", "process"}}).drain, DrainBy::kProcess);
  EXPECT_FALSE(read({}).switches);
  EXPECT_TRUE(read({{"COLLECT_DRAIN", "process"}}).switches);
  EXPECT_FALSE(read({{"COLLECT_DRAIN", "process"}, {"COLLECT_SWITCHES", "off"}}).switches);
  EXPECT_FALSE(read({{"COLLECT_SWITCHES", "off"}}).switches);
  EXPECT_TRUE(read({{"COLLECT_SWITCHES", "on"}}).switches);
  EXPECT_EQ(read({{"COLLECT_DRAIN", "process"}}).exit_flush_ms, 60'000u);
  EXPECT_EQ(read({{"COLLECT_DRAIN", "process"}, {"COLLECT_EXIT_FLUSH_MS", "7"}}).exit_flush_ms, 7u);
  for (const char* word : {"maybe", "dro", "dropp", "wait "}) {
    EXPECT_EQ(problem({{"COLLECT_FULL", word}}), "COLLECT_FULL must be drop, overwrite or wait");
  }
  EXPECT_EQ(problem({{"COLLECT_DETAIL", "2"}}), "COLLECT_DETAIL must be off, armed or on");
  EXPECT_EQ(problem({{"COLLECT_START", "no"}}), "COLLECT_START must be recording or idle");
  EXPECT_EQ(problem({{"COLLECT_DRAIN", "fork"}}), "COLLECT_DRAIN must be thread or process");
}

TEST_F(SettingsTest, AnythingButZeroTurnsTheLogOn) {
  EXPECT_TRUE(read({{"COLLECT_LOG", "1"}}).log);
  EXPECT_TRUE(read({{"COLLECT_LOG", "00"}}).log);
  EXPECT_FALSE(read({{"COLLECT_LOG", "0"}}).log);
}

TEST_F(SettingsTest, UnknownVariablesAreNamedWithTheNearest) {
  EXPECT_THAT(unknown(), IsEmpty());
  ::setenv("COLLECT_CONECT", "x", 1);
  EXPECT_THAT(unknown(),
              ElementsAre("unknown variable COLLECT_CONECT; did you mean COLLECT_CONNECT?"));
  ::unsetenv("COLLECT_CONECT");
  const std::string shown = "COLLECT_" + std::string(55, 'Q');  // 63 bytes
  const std::string longer = shown + "Q\x1b[1m";
  ::setenv(longer.c_str(), "x", 1);
  EXPECT_THAT(unknown(), ElementsAre("unknown variable " + shown));
  ::unsetenv(longer.c_str());
  ::setenv("COLLECT_Q\x1b", "x", 1);
  EXPECT_THAT(unknown(), ElementsAre(testing::StartsWith("unknown variable COLLECT_Q?")));
  ::unsetenv("COLLECT_Q\x1b");
  for (uint32_t number = 0; number < 9; ++number) {
    ::setenv(("COLLECT_QQQQQQQQQQ" + std::to_string(number)).c_str(), "x", 1);
  }
  EXPECT_EQ(unknown().size(), 8u);
}

// As collectctl attach gives them; the environment is the program's own and says nothing then.
TEST_F(SettingsTest, BlockOfVariablesReplacesTheEnvironment) {
  using namespace std::string_literals;
  ::setenv("COLLECT_TAG", "environment", 1);
  std::string block =
      "COLLECT_CONNECT=127.0.0.1:7710\0COLLECT_BUFFER_MB=8\0COLLECT_ONLY=a=b\0\0\0"s;
  Settings settings;
  const char* error = nullptr;
  ASSERT_TRUE(settings_from_block(block.data(), block.size(), settings, &error));
  EXPECT_STREQ(settings.address, "127.0.0.1:7710");
  EXPECT_EQ(settings.buffer_mb, 8u);
  EXPECT_STREQ(settings.only, "a=b");
  EXPECT_STREQ(settings.tag, "");
  block = "COLLECT_BUFFER_MB=0\0\0"s;
  EXPECT_FALSE(settings_from_block(block.data(), block.size(), settings, &error));
  EXPECT_STREQ(error, "COLLECT_BUFFER_MB must be a number from 1 to 16384");
  EXPECT_EQ(read({}).tag, std::string("environment")) << "it is the environment again";
  ::unsetenv("COLLECT_TAG");
}

TEST_F(SettingsTest, BlockMustEnd) {
  using namespace std::string_literals;
  for (const std::string& block : {""s, "\0"s, "COLLECT_TAG=x"s, "COLLECT_TAG=x\0"s}) {
    Settings settings;
    const char* error = nullptr;
    EXPECT_FALSE(settings_from_block(block.data(), block.size(), settings, &error));
    EXPECT_STREQ(error, "the settings are not terminated");
  }
  const std::string empty = "\0\0"s;
  Settings settings;
  const char* error = nullptr;
  EXPECT_TRUE(settings_from_block(empty.data(), empty.size(), settings, &error));
  EXPECT_EQ(settings.role, Role::kNone);
}

}  // namespace
}  // namespace collect::agent

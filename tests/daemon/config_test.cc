#include "daemon/config.h"

#include <gmock/gmock.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "daemon/access.h"
#include "formats/core/version.h"

namespace collect::daemon {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

class ConfigTest : public testing::Test {
 protected:
  ConfigTest() {
    std::string pattern = std::filesystem::temp_directory_path() / "config_test_XXXXXX";
    directory_ = ::mkdtemp(pattern.data());
  }
  ~ConfigTest() override { std::filesystem::remove_all(directory_); }

  std::string file(const std::string& name, const std::string& text) {
    const std::string path = directory_ + "/" + name;
    std::ofstream(path) << text;
    return path;
  }
  Result<CommandLine> read(std::vector<std::string> flags) {
    std::vector<const char*> arguments{"collectord"};
    for (const std::string& flag : flags) arguments.push_back(flag.c_str());
    return read_command_line(static_cast<int>(arguments.size()), arguments.data());
  }
  // The one line of a refusal.
  std::string fault(std::vector<std::string> flags) {
    const auto line = read(std::move(flags));
    EXPECT_FALSE(line.ok());
    if (line.ok()) return {};
    EXPECT_THAT(line.error().message, Not(HasSubstr("\n")));
    return line.error().message;
  }
  std::string file_fault(const std::string& text) {
    return fault({"--config", file("collectord.toml", text)});
  }

  std::string directory_;
};

TEST_F(ConfigTest, DefaultsNeedNothing) {
  const auto line = read({});
  ASSERT_TRUE(line.ok());
  EXPECT_EQ(line->config.ingest, "127.0.0.1:7710");
  EXPECT_EQ(line->config.control, "127.0.0.1:7711");
  EXPECT_EQ(line->config.root, default_root());
  EXPECT_EQ(line->config.durability, "os");
  EXPECT_EQ(line->ready_fd, -1);
  EXPECT_FALSE(line->print.has_value());
}

TEST_F(ConfigTest, FlagsWinOverTheFile) {
  const std::string path = file("c.toml",
                                "root = '/from/file'\n"
                                "heartbeat_ms = 500\n"
                                "attach = ['127.0.0.1:1', 'unix:/a']\n"
                                "symbolize = false\n"
                                "durability = 'fsync'\n");
  const auto line = read({"--config", path, "--root", "/from/flag", "--attach", "127.0.0.1:2"});
  ASSERT_TRUE(line.ok()) << to_string(line.error());
  EXPECT_EQ(line->config.root, "/from/flag");
  EXPECT_EQ(line->config.heartbeat_ms, 500u);
  EXPECT_THAT(line->config.attach, ElementsAre("127.0.0.1:2"));
  EXPECT_FALSE(line->config.symbolize);
  EXPECT_EQ(durability_of(line->config), storage::Durability::kFsync);
}

TEST_F(ConfigTest, EveryKeyIsAFlag) {
  Config keys;
  each_key(keys, [this](const char* key, const char*, auto&) {
    std::string flag = "--" + std::string(key);
    std::replace(flag.begin(), flag.end(), '_', '-');
    const auto line = read({flag});
    if (flag == "--web") {
      ASSERT_TRUE(line.ok());
      EXPECT_EQ(line->config.web, kDefaultWeb) << "it may stand alone";
      return;
    }
    ASSERT_FALSE(line.ok());
    EXPECT_THAT(line.error().message, Not(HasSubstr("not expected"))) << flag;
  });
}

TEST_F(ConfigTest, PrintedConfigurationIsAConfiguration) {
  const auto line =
      read({"--root", "/tmp/with 'quotes' and \"more\"", "--ingest", "unix:/x",
            "--symbol-directories", "/a", "/b", "--resume-ms", "7", "--print-config"});
  ASSERT_TRUE(line.ok()) << to_string(line.error());
  ASSERT_TRUE(line->print.has_value());
  const auto again = read({"--config", file("again.toml", *line->print), "--print-config"});
  ASSERT_TRUE(again.ok()) << to_string(again.error());
  EXPECT_EQ(again->print, line->print);
  EXPECT_EQ(again->config.root, "/tmp/with 'quotes' and \"more\"");
  EXPECT_THAT(again->config.symbol_directories, ElementsAre("/a", "/b"));
  EXPECT_EQ(again->config.resume_ms, 7u);
}

TEST_F(ConfigTest, FileErrorsNameLineAndColumn) {
  EXPECT_THAT(file_fault("root = '/x'\ningest = \n"), HasSubstr("collectord.toml:2:"));
  EXPECT_THAT(file_fault("\n\nrooot = '/x'\n"),
              HasSubstr("collectord.toml:3:1: unknown key \"rooot\""));
  EXPECT_THAT(file_fault("\nroot = 42\n"), HasSubstr("collectord.toml:2:8: root must be a string"));
  EXPECT_THAT(file_fault("heartbeat_ms = -1\n"), HasSubstr("collectord.toml:1:16"));
  EXPECT_THAT(file_fault("heartbeat_ms = 10\n"), HasSubstr("10 is not within 50 and 60000"));
  EXPECT_THAT(file_fault("heartbeat_ms = 5.0\n"), HasSubstr("heartbeat_ms must be a whole number"));
  EXPECT_THAT(file_fault("rtc = 1\n"), HasSubstr("rtc must be true or false"));
  EXPECT_THAT(file_fault("attach = '127.0.0.1:1'\n"), HasSubstr("attach must be a list"));
  EXPECT_THAT(file_fault("attach = ['127.0.0.1:1', 2]\n"), HasSubstr("attach must be a list"));
  EXPECT_THAT(file_fault("attach = ['nowhere']\n"), HasSubstr("the port is missing"));
  for (const char* place : {"adb:R58M:own", "adb:192.168.1.7:5555:own", "usbmux:0000:tcp:7720"}) {
    EXPECT_TRUE(read({"--attach", place}).ok()) << place;
  }
  for (const char* none :
       {"adb:", "adb:R58M", "adb:R58M:", "adb::own", "usbmux:0000:own", "usbmux:0000:tcp:"}) {
    EXPECT_THAT(file_fault("attach = ['" + std::string(none) + "']\n"),
                HasSubstr("an endpoint on a device is written adb:SERIAL:NAME"))
        << none;
  }
  EXPECT_THAT(file_fault("adb = 'nowhere'\n"), HasSubstr("no address of an adb server"));
  EXPECT_THAT(file_fault("durability = 'maybe'\n"), HasSubstr("\"maybe\" is not one of os, fsync"));
  EXPECT_THAT(file_fault("[limits]\nqueue = 1\n"), HasSubstr("unknown key \"limits\""));
  EXPECT_THAT(file_fault("root = '/x'\nroot = '/y'\n"), HasSubstr("collectord.toml:2:"));
  EXPECT_THAT(file_fault(std::string(kMaxConfigBytes + 1, '#')), HasSubstr("larger than"));
  EXPECT_THAT(fault({"--config", directory_ + "/missing.toml"}), HasSubstr("missing.toml"));
  EXPECT_THAT(fault({"--config", directory_}), HasSubstr(directory_));
}

TEST_F(ConfigTest, FlagErrorsNameTheFlag) {
  EXPECT_THAT(fault({"--no-such-flag"}), HasSubstr("--no-such-flag"));
  EXPECT_THAT(fault({"stray"}), HasSubstr("stray"));
  EXPECT_THAT(fault({"--heartbeat-ms", "soon"}), HasSubstr("--heartbeat-ms"));
  EXPECT_THAT(fault({"--heartbeat-ms", "60001"}), HasSubstr("--heartbeat-ms: 60001"));
  EXPECT_THAT(fault({"--ingest", "nowhere"}), HasSubstr("nowhere"));
  EXPECT_THAT(fault({"--log-level", "loud"}), HasSubstr("--log-level"));
  EXPECT_THAT(fault({"--max-connections", "1"}), HasSubstr("--max-connections"));
  // One agent's least must fit.
  EXPECT_THAT(fault({"--max-unsealed-sessions", "3"}), HasSubstr("3 is not within 4"));
  EXPECT_THAT(fault({"--max-unsealed-files", "255"}), HasSubstr("255 is not within 256"));
  EXPECT_THAT(fault({"--max-memory-bytes", "1"}), HasSubstr("1 is not within 4194304"));
}

TEST_F(ConfigTest, EveryNumberHasItsBounds) {
  struct Bounds {
    const char* flag;
    uint64_t least, most;
  };
  constexpr uint64_t kMost = 1'099'511'627'776;
  const Bounds all[] = {
      {"--heartbeat-ms", 50, 60'000},          {"--resume-ms", 0, 604'800'000},
      {"--max-connections", 2, 1'048'576},     {"--max-connections-per-address", 2, 1'048'576},
      {"--threads-per-agent", 1, 65'536},      {"--sessions-per-agent", 1, 4'294'967'295},
      {"--max-unsealed-sessions", 4, kMost},   {"--max-unsealed-files", 256, kMost},
      {"--max-memory-bytes", 4'194'304, kMost}};
  for (const Bounds& bounds : all) {
    SCOPED_TRACE(bounds.flag);
    EXPECT_TRUE(read({bounds.flag, std::to_string(bounds.least)}).ok());
    EXPECT_TRUE(read({bounds.flag, std::to_string(bounds.most)}).ok());
    if (bounds.least != 0) {
      EXPECT_THAT(fault({bounds.flag, std::to_string(bounds.least - 1)}),
                  HasSubstr(std::string(bounds.flag) + ": "));
    }
    EXPECT_THAT(fault({bounds.flag, std::to_string(bounds.most + 1)}),
                HasSubstr(" is not within " + std::to_string(bounds.least) + " and " +
                          std::to_string(bounds.most)));
  }
}

TEST_F(ConfigTest, EveryWordIsTakenAndNoOther) {
  const std::pair<const char*, std::vector<const char*>> all[] = {
      {"--durability", {"os", "fsync"}},
      {"--page-codecs", {"auto", "off"}},
      {"--log-level", {"trace", "debug", "info", "warn", "error", "off"}},
      {"--local-access", {"user", "any", "group:root"}},
      {"--adb", {"auto", "off", "127.0.0.1:5037"}},
      {"--usbmux", {"auto", "off", "unix:/run/usbmuxd"}},
      {"--web", {"off", "127.0.0.1:0"}},
  };
  for (const auto& [flag, words] : all) {
    for (const char* word : words) EXPECT_TRUE(read({flag, word}).ok()) << flag << " " << word;
    EXPECT_THAT(fault({flag, "nonsense"}), HasSubstr(std::string(flag) + ": ")) << flag;
  }
}

TEST_F(ConfigTest, ListsHaveTheirLimits) {
  const auto many = [](const char* flag, size_t count, const std::string& value) {
    std::vector<std::string> flags = {flag};
    flags.insert(flags.end(), count, value);
    return flags;
  };
  EXPECT_TRUE(read(many("--attach", 256, "127.0.0.1:1")).ok());
  EXPECT_THAT(fault(many("--attach", 257, "127.0.0.1:1")), HasSubstr("too many addresses"));
  for (const char* flag : {"--symbol-directories", "--symbol-roots"}) {
    EXPECT_TRUE(read(many(flag, 64, "/a")).ok());
    EXPECT_THAT(fault(many(flag, 65, "/a")), HasSubstr("more than 64 directories"));
    EXPECT_TRUE(read({flag, "/" + std::string(4'094, 'a')}).ok());
    EXPECT_THAT(fault({flag, "/" + std::string(4'095, 'a')}), HasSubstr("bad length"));
    std::string key = flag + 2;
    std::replace(key.begin(), key.end(), '-', '_');
    EXPECT_THAT(file_fault(key + " = ['']\n"), HasSubstr("bad length"));
  }
  EXPECT_TRUE(read({"--symbol-directories", "here"}).ok());
  EXPECT_THAT(fault({"--symbol-roots", "here"}), HasSubstr("here is not an absolute path"));
}

TEST_F(ConfigTest, FileOfTheLargestSizeIsRead) {
  std::string text = "resume_ms = 7\n#";
  text.resize(kMaxConfigBytes, '#');
  const auto line = read({"--config", file("large.toml", text)});
  ASSERT_TRUE(line.ok()) << line.error().message;
  EXPECT_EQ(line->config.resume_ms, 7u);
}

TEST_F(ConfigTest, HelpAndVersionArePrinted) {
  const auto help = read({"--help"});
  ASSERT_TRUE(help.ok() && help->print);
  Config keys;
  each_key(keys, [&](const char*, const char* text, auto&) {
    EXPECT_THAT(*help->print, HasSubstr(std::string(text).substr(0, 20)));
  });
  const auto version = read({"--version"});
  ASSERT_TRUE(version.ok() && version->print);
  EXPECT_THAT(*version->print, HasSubstr(kVersion));
}

std::string expected(const std::string& name) {
  std::ifstream file(std::string(CONFIG_EXPECTED) + "/" + name);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST_F(ConfigTest, EveryWordOfTheHelpIsAsExpected) {
  const auto help = read({"--help"});
  ASSERT_TRUE(help.ok() && help->print);
  EXPECT_EQ(*help->print, expected("help"));
}

TEST_F(ConfigTest, EveryDefaultIsAsExpected) {
  const auto line = read({"--root", "/traces", "--print-config"});
  ASSERT_TRUE(line.ok() && line->print);
  EXPECT_EQ(*line->print, expected("settings"));
}

// Every key has its own place in the file, and comes out of it as it went in.
TEST_F(ConfigTest, EveryKeyIsReadAndPrinted) {
  Config config;
  uint64_t number = 5'000'000'000;
  each_key(config, [&](const char* key, const char*, auto& field) {
    using Field = std::remove_reference_t<decltype(field)>;
    if constexpr (std::is_same_v<Field, bool>) {
      field = !field;
    } else if constexpr (std::is_same_v<Field, uint64_t>) {
      const std::string_view name = key;
      field = name == "heartbeat_ms" ? 51
              : name == "resume_ms"  ? 52
              : name.ends_with("_per_agent") || name.starts_with("max_connections")
                  ? number++ % 5'000
                  : number++;
      if (field == 0) field = 5'000;
    } else if constexpr (std::is_same_v<Field, std::string>) {
      const std::string_view name = key;
      field = name == "durability"     ? "fsync"
              : name == "store"        ? "s3://traces"
              : name == "store_tables" ? "all"
              : name == "keep_local"   ? "14 days"
              : name == "local_access" ? "any"
              : name == "page_codecs"  ? "off"
              : name == "log_level"    ? "trace"
              : name == "usbmux"       ? "127.0.0.1:27015"
              : name == "adb"          ? "127.0.0.1:5038"
                                       : "unix:/" + std::string(key);
    } else {
      const bool is_attach = std::string_view(key) == "attach";
      field = {is_attach ? "unix:/a" : "/" + std::string(key), "/b"};
      if (is_attach) field[1] = "adb:A:own";
    }
  });
  config.threads_per_agent = 7;
  config.max_connections = 8;
  config.sessions_per_agent = 9;
  config.max_connections_per_address = 10;
  const std::string text = config_to_toml(config);
  const auto line = read({"--config", file("all.toml", text)});
  ASSERT_TRUE(line.ok()) << to_string(line.error());
  EXPECT_EQ(config_to_toml(line->config), text);
}

TEST_F(ConfigTest, WordsFlagsAndTheReadyDescriptorAreHandedOn) {
  const auto line = read({"--ready-fd", "7", "--root", "here"});
  ASSERT_TRUE(line.ok());
  EXPECT_EQ(line->ready_fd, 7);
  EXPECT_THAT(line->words, ElementsAre("collectord", "--ready-fd", "7", "--root", "here"));
  EXPECT_EQ(durability_of(line->config), storage::Durability::kOs);
  EXPECT_THAT(fault({"--config", "/nowhere", "--help", "--no"}), HasSubstr("(see --help)"));
  EXPECT_EQ(*read({"--version"})->print, "collectord 0.1.0\n");
  EXPECT_EQ(fault({"--adb", "off", "--attach", "nowhere"}).substr(0, 10), "--attach: ");
  EXPECT_THAT(fault({"--store", "traces"}), HasSubstr("--store: traces: a store is s3://BUCKET"));
  EXPECT_THAT(fault({"--keep-local", "a while"}),
              HasSubstr("--keep-local: \"a while\" is not one of"));
}

// The first of several in the file, and no value of another type is taken for one.
TEST_F(ConfigTest, FirstFaultIsSaid) {
  EXPECT_THAT(file_fault("durability = 'x'\nheartbeat_ms = 1\n"), HasSubstr(":1:14: durability"));
  EXPECT_THAT(fault({"--durability", "x", "--heartbeat-ms", "1"}),
              testing::StartsWith("--durability: \"x\" is not one of os, fsync"));
  EXPECT_THAT(file_fault("durability = 'x'\nrooot = 1\n"), HasSubstr("unknown key"));
  EXPECT_TRUE(read({"--config", file("zero.toml", "resume_ms = 0\n")}).ok());
}

TEST_F(ConfigTest, AccessNeedsWhatBelongsToIt) {
  const auto access_fault = [](const Config& config) {
    const auto access = read_access(config);
    return access.ok() ? std::string() : access.error().message;
  };
  Config config;
  EXPECT_EQ(access_fault(config), "");
  EXPECT_EQ(read_access(config)->token, "");
  EXPECT_EQ(read_access(config)->tls, nullptr);
  config.tls_key = "key";
  EXPECT_EQ(access_fault(config), "tls_key needs tls_certificate, the file with its certificate");
  config.tls_key.clear();
  config.tls_certificate = "certificate";
  EXPECT_EQ(access_fault(config), "tls_certificate needs tls_key, the file with its private key");
  config.tls_certificate.clear();
  config.tls_client_ca = "ca";
  EXPECT_EQ(access_fault(config), "tls_client_ca needs tls_certificate and tls_key");
  config.tls_client_ca.clear();
  config.control_token_file = "token";
  EXPECT_EQ(access_fault(config),
            "control_token_file needs tls_certificate and tls_key: without TLS the token could be "
            "read on the way");
  config.control_token_file.clear();
  config.token_file = directory_ + "/missing";
  EXPECT_THAT(access_fault(config), testing::StartsWith("token_file: " + config.token_file));
  config.token_file = file("token", "secret\n");
  ASSERT_EQ(access_fault(config), "");
  EXPECT_EQ(read_access(config)->token, "secret");
  EXPECT_EQ(read_access(config)->control.token, "") << "that is another one";
  config.local_access = "group:no_such_group_here";
  EXPECT_THAT(access_fault(config), HasSubstr("no_such_group_here"));
}

TEST_F(ConfigTest, TokenIsOneLine) {
  EXPECT_EQ(*read_token_file(file("t", "secret\n")), "secret");
  EXPECT_EQ(*read_token_file(file("t", "secret")), "secret");
  EXPECT_EQ(*read_token_file(file("t", "secret\r\n")), "secret");
  EXPECT_EQ(read_token_file(file("t", std::string(256, 'x')))->size(), 256u);
  EXPECT_FALSE(read_token_file(file("t", "\n")).ok());
  EXPECT_FALSE(read_token_file(file("t", std::string(257, 'x'))).ok());
  EXPECT_FALSE(read_token_file(directory_ + "/missing").ok());
  // Line ends beyond the token are taken away, as many as a file of four tokens holds.
  const std::string ends(3 * 256, '\n');
  EXPECT_EQ(*read_token_file(file("t", std::string(256, 'x') + ends)), std::string(256, 'x'));
  EXPECT_EQ(read_token_file(file("t", std::string(256, 'x') + ends + "\n")).code(), Code::kLimit);
  EXPECT_EQ(read_token_file(file("t", "\n")).error().message,
            directory_ + "/t: a token has 1 to 256 bytes on one line");
}

}  // namespace
}  // namespace collect::daemon

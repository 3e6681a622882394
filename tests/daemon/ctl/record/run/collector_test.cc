// Which collector a run uses, what one of its own is started with, and what is said of it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "daemon/ctl/record/program/program_paths.h"
#include "daemon/ctl/record/run/run_collector.h"
#include "tests/daemon/ctl/control/fixture.h"

namespace collect::ctl {
namespace {

namespace api = control::v1;
namespace fs = std::filesystem;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr char kDaemon[] = R"(#!/bin/sh
printf '%s\n' "$@" > "$NOTES/arguments"
trap 'exit 0' TERM
echo '{"ingest":"127.0.0.1:1","control":"127.0.0.1:2"}' >&3
for i in $(seq 3000); do sleep 0.02; done
)";

class CollectorOfARun : public OnlineTest {
 protected:
  CollectorOfARun() {
    std::string pattern = fs::temp_directory_path() / "collector_XXXXXX";
    directory_ = fs::canonical(::mkdtemp(pattern.data()));
    ::setenv("NOTES", directory_.c_str(), 1);
  }
  ~CollectorOfARun() override {
    ::unsetenv("NOTES");
    ::unsetenv("COLLECT_COLLECTORD");
    fs::remove_all(directory_);
  }
  std::string put(const std::string& name, const std::string& text) {
    const std::string path = directory_ / name;
    std::ofstream(path) << text;
    ::chmod(path.c_str(), 0700);
    return path;
  }
  std::string noted(const std::string& name) const {
    std::ostringstream text;
    text << std::ifstream(directory_ / name).rdbuf();
    return text.str();
  }
  Result<RunCollector> find(const CollectorRequest& wanted) {
    return find_collector(wanted, signals_);
  }

  fs::path directory_;
  JobSignals signals_;
};

TEST_F(CollectorOfARun, OneThatRunsIsUsed) {
  for (const auto& [listens, dialled] :
       {std::pair("0.0.0.0:9", "127.0.0.1:9"), std::pair("[::]:9", "127.0.0.1:9"),
        std::pair("*:9", "127.0.0.1:9"), std::pair("10.0.0.1:9", "10.0.0.1:9")}) {
    collector_.set_ingest_address(listens);
    const auto found = find({.root = "", .control = online_.control});
    ASSERT_TRUE(found.ok()) << to_string(found.error());
    EXPECT_EQ(found->ingest, dialled);
    EXPECT_EQ(found->root, "/data");
    EXPECT_EQ(found->control.address, online_.control.address);
    EXPECT_EQ(found->embedded, nullptr);
  }
  const auto absent = find({.root = "", .control = "127.0.0.1:1"});
  EXPECT_THAT(absent.error().message, HasSubstr("127.0.0.1:1"));
}

TEST_F(CollectorOfARun, RejectsOneThatLooksForNoPhones) {
  const auto said = [&](Phones phones) {
    const auto found = find({.root = "", .control = online_.control, .phones = phones});
    return found.ok() ? "found" : found.error().message;
  };
  const std::string at = "the collector at " + online_.control.address;
  EXPECT_EQ(said(Phones::kNone), "found");
  EXPECT_EQ(said(Phones::kAndroid), at + " looks for no Android devices: start it with --adb auto, "
                                         "or use -o DIRECTORY");
  EXPECT_EQ(said(Phones::kIos),
            at + " looks for no iPhones: start it with --usbmux auto, or use -o DIRECTORY");
  api::DeviceServer server;
  server.set_via("adb");
  collector_.set_device_servers({server});
  EXPECT_EQ(said(Phones::kAndroid), "found");
  EXPECT_THAT(said(Phones::kIos), HasSubstr("no iPhones"));
  server.set_via("usbmux");
  collector_.set_device_servers({server});
  EXPECT_EQ(said(Phones::kIos), "found");
  EXPECT_THAT(said(Phones::kAndroid), HasSubstr("no Android devices"));
}

TEST_F(CollectorOfARun, StartsItsOwnForTheRecordedPhones) {
  ::setenv("COLLECT_COLLECTORD", put("collectord", kDaemon).c_str(), 1);
  const std::string root = (directory_ / "below/../traces").string();
  const std::string head =
      "--root\n" + (directory_ / "traces").string() + "\n--ingest\n127.0.0.1:0\n--control\n";
  for (const auto& [phones, flags] :
       {std::pair(Phones::kNone, "--adb\noff\n--usbmux\noff\n--seal-at-stop\ntrue\n"),
        std::pair(Phones::kAndroid, "--adb\nauto\n--usbmux\noff\n--seal-at-stop\ntrue\n"),
        std::pair(Phones::kIos, "--adb\noff\n--usbmux\nauto\n--seal-at-stop\ntrue\n")}) {
    const auto found = find({.root = root, .control = {}, .phones = phones});
    ASSERT_TRUE(found.ok()) << to_string(found.error());
    EXPECT_EQ(noted("arguments"), head + "127.0.0.1:0\n--ready-fd\n3\n" + flags);
    EXPECT_EQ(found->root, (directory_ / "traces").string());
    EXPECT_EQ(found->ingest, "127.0.0.1:1");
    EXPECT_EQ(found->control.address, "127.0.0.1:2");
    ASSERT_NE(found->embedded, nullptr);
    EXPECT_TRUE(found->embedded->stop(signals_).ok());
  }
  const auto found =
      find({.root = root, .control = "127.0.0.1:7", .phones = {}, .token_file = "token"});
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(noted("arguments"),
            head +
                "127.0.0.1:7\n--ready-fd\n3\n--adb\noff\n--usbmux\noff\n--seal-at-stop\ntrue\n"
                "--token-file\ntoken\n");
  ::setenv("COLLECT_COLLECTORD", directory_.c_str(), 1);
  const auto none = find({.root = root + "2", .control = {}});
  EXPECT_EQ(none.error().message, "COLLECT_COLLECTORD names " + directory_.string() +
                                      ", which is no file; correct or unset it");
}

TEST_F(CollectorOfARun, StartsItsOwnWithTheRequestedLivePage) {
  std::string serving = kDaemon;
  const std::string plain = R"("control":"127.0.0.1:2")";
  serving.replace(serving.find(plain), plain.size(), plain + R"(,"web":"http://w/#token=1")");
  ::setenv("COLLECT_COLLECTORD", put("collectord", serving).c_str(), 1);
  CollectorRequest wanted{(directory_ / "traces").string(), {}};
  wanted.web = true;
  const auto found = find(wanted);
  ASSERT_TRUE(found.ok()) << to_string(found.error());
  EXPECT_THAT(noted("arguments"), HasSubstr("--web\n127.0.0.1:0\n"));
  EXPECT_EQ(found->web, "http://w/#token=1");
  announce(*found, false, out_);
  EXPECT_THAT(out_.str(), HasSubstr("\ncollectctl: live page: http://w/#token=1\n"));
}

TEST_F(CollectorOfARun, RefusesALivePageOfARunningOne) {
  CollectorRequest wanted{"", online_.control};
  wanted.web = true;
  const auto found = find(wanted);
  ASSERT_FALSE(found.ok());
  EXPECT_EQ(found.error().message,
            "the collector at " + online_.control.address +
                " runs already, and its live page is its own: start it with "
                "--web, or let this run start another one with -o DIRECTORY");
}

TEST_F(CollectorOfARun, WhereItIsIsSaid) {
  RunCollector collector;
  collector.control = "127.0.0.1:7";
  collector.root = "/data";
  announce(collector, false, out_);
  EXPECT_EQ(out_.str(),
            "collectctl: recording to the collector in /data\n"
            "collectctl: control plane: collectctl --control 127.0.0.1:7 detail start    (or "
            "grpcurl -plaintext 127.0.0.1:7 list)\n");
  out_.str("");
  collector.control.tls_ca = "ca.pem";
  announce(collector, true, out_);
  EXPECT_EQ(out_.str(),
            "collectctl: recording to the collector in /data\n"
            "collectctl: control plane: collectctl --control 127.0.0.1:7 detail start\n"
            "collectctl: nothing is recorded until someone asks for it: collectctl --control "
            "127.0.0.1:7 start\n");
  EXPECT_EQ(start_command(collector), "collectctl --control 127.0.0.1:7 start");
}

// ---- programs and libraries

TEST_F(CollectorOfARun, ProgramsAndLibrariesAreFoundBesideOurs) {
  const std::string own = own_directory();
  EXPECT_EQ(own, fs::canonical("/proc/self/exe").parent_path().string());
  ::unsetenv("COLLECT_AGENT_LIBRARY");
  const std::string library = put("libcollect_agent.so", "");
  const std::string linked = directory_ / "link.so";
  fs::create_symlink(library, linked);
  ::setenv("COLLECT_AGENT_LIBRARY", linked.c_str(), 1);
  EXPECT_EQ(*find_agent_library(), library) << "without links";
  ::setenv("COLLECT_AGENT_LIBRARY", "/none.so", 1);
  EXPECT_EQ(find_agent_library().error().message,
            "COLLECT_AGENT_LIBRARY names /none.so, which is no file; correct or unset it");
  ::unsetenv("COLLECT_AGENT_LIBRARY");
  ::unsetenv("COLLECT_COLLECTORD");
  const auto collectord = find_collectord();
  if (collectord.ok()) {
    EXPECT_EQ(*collectord, own + "/collectord");
  } else {
    EXPECT_EQ(collectord.error().message, "there is no " + own +
                                              "/collectord; build or install it, or set "
                                              "COLLECT_COLLECTORD");
  }
  const auto agent = find_agent_library();
  if (agent.ok()) {
    EXPECT_THAT(*agent, EndsWith("/libcollect_agent.so"));
  } else {
    EXPECT_EQ(agent.error().message, "there is no " + own +
                                         "/../lib/libcollect_agent.so; build or install the "
                                         "agent, or set COLLECT_AGENT_LIBRARY");
  }
}

// An empty entry of PATH is the working directory.
TEST_F(CollectorOfARun, EveryEntryOfPathIsLookedAt) {
  const std::string before = std::getenv("PATH");
  const fs::path was = fs::current_path();
  put("tool-of-the-test", "#!/bin/sh\n");
  fs::current_path(directory_);
  for (const std::string path : {":/bin", "/bin:", "/bin::/usr/bin", ""}) {
    ::setenv("PATH", path.c_str(), 1);
    EXPECT_EQ(find_program("tool-of-the-test").value(), "./tool-of-the-test") << path;
  }
  ::setenv("PATH", ("/none:" + directory_.string()).c_str(), 1);
  EXPECT_EQ(find_program("tool-of-the-test").value(), (directory_ / "tool-of-the-test").string());
  ::setenv("PATH", "/none", 1);
  EXPECT_EQ(find_program("tool-of-the-test").code(), Code::kNotFound);
  fs::create_directory(directory_ / "folder");
  ::setenv("PATH", directory_.c_str(), 1);
  EXPECT_EQ(find_program("folder").code(), Code::kNotFound) << "a folder is no program";
  ::setenv("PATH", before.c_str(), 1);
  fs::current_path(was);
}

}  // namespace
}  // namespace collect::ctl

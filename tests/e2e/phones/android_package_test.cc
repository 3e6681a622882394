// The Debian package with the agent for Android, and `collectctl android` from beside it: what the
// one installs is what the other finds and takes to the phone.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/e2e/collector_process.h"
#include "tests/e2e/independent_count.h"
#include "tests/e2e/recorded_session.h"
#include "tests/fakes/phones/fake_adb_server.h"
#include "tests/fakes/phones/fake_phone.h"

namespace collect::e2e {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

constexpr seconds kPacking{280};
constexpr seconds kRunLimit{120};
constexpr int kSkipped = 77;
const char* const kApp = "com.example.app";

TEST(AndroidPackage, CollectctlUsesTheInstalledAgent) {
  Scratch scratch;
  const Ending packed =
      run(scratch.path(),
          {"bash", std::string(E2E_SOURCE) + "/tests/e2e/phones/android_package.sh", E2E_SOURCE,
           "release", agent_library(), scratch.path()},
          {}, kPacking);
  if (packed.exited_with(kSkipped)) GTEST_SKIP() << packed.output;
  ASSERT_TRUE(packed.exited_with(0)) << packed.output << packed.errors;

  // The programs of the other package, in the same tree.
  const std::string bin = scratch / "installed/usr/bin";
  fs::create_directories(bin);
  for (const char* name : {"collectctl", "collectord"}) {
    std::error_code other_disk;
    fs::create_hard_link(program(name), bin + "/" + name, other_disk);
    if (other_disk) fs::copy_file(program(name), bin + "/" + name);
  }
  const std::string symbolizer = scratch / "installed/usr/libexec/collectord";
  fs::create_directories(symbolizer);
  fs::create_symlink(program("collect-symbolizer"), symbolizer + "/collect-symbolizer");

  fakes::FakePhoneFolder folder;
  fakes::FakePhone phone;
  phone.folder = folder.path();
  fakes::FakeAdbServer adb;
  adb.start();
  adb.plug("R58M", phone);
  folder.install(kApp, traced_program("steady") + " pace 8000",
                 "COUNT_FILE=" + scratch / "count" + "\nCOLLECT_EXIT_FLUSH_MS=60000\n");
  const Environment environment = {{"ANDROID_ADB_SERVER_PORT", std::to_string(adb.port())},
                                   {"ADB_SERVER_SOCKET", ""},
                                   {"ANDROID_ADB_SERVER_ADDRESS", ""},
                                   {"ANDROID_SERIAL", ""},
                                   {"COLLECT_CONTROL", ""}};
  const auto ctl = [&](const Arguments& more) {
    Arguments all = {bin + "/collectctl", "android"};
    all.insert(all.end(), more.begin(), more.end());
    return run(scratch.path(), all, environment, kRunLimit);
  };

  const Ending doctor =
      run(scratch.path(), {bin + "/collectctl", "doctor", "--json"}, environment, kRunLimit);
  const std::string found = nlohmann::json::parse(doctor.output)["android"]["devices"][0]["agent"];
  EXPECT_TRUE(fs::equivalent(
      found, scratch / "installed/usr/lib/collectord/android/x86_64/libcollect_agent.so"))
      << found;

  const Ending ran = ctl({"run", "-o", scratch / "traces", "--when-full", "wait", kApp});
  ASSERT_TRUE(ran.exited_with(0)) << ran.describe() << ran.errors;
  EXPECT_THAT(ran.errors, HasSubstr("lost       nothing"));
  const auto directories = session_directories(scratch / "traces");
  ASSERT_EQ(directories.size(), 1u);
  const RecordedSession recorded(directories[0]);
  EXPECT_EQ(recorded.state(), "complete");
  expect_exactly(recorded,
                 read_count(scratch / "count", recorded.manifest()["process"]["pid"].get<int>()));
  EXPECT_EQ(folder.leftovers(), "");

  // A phone of another kind: what to install or to name.
  folder.write(folder.app(kApp, "abi"), "arm64-v8a\n");
  const Ending other = ctl({"run", kApp});
  EXPECT_TRUE(other.exited_with(125)) << other.describe();
  EXPECT_THAT(other.errors, HasSubstr("there is no agent for arm64-v8a"));
}

}  // namespace
}  // namespace collect::e2e

// What the tests of `collectctl android` share: a phone whose commands are scripts, its app, which
// is a real traced program, and the command itself. `Server` brings the adb server and its device.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "tests/e2e/collector_process.h"
#include "tests/e2e/recorded_session.h"
#include "tests/fakes/phones/fake_phone.h"

namespace collect::e2e {

// A test with a Scratch scratch_ and the environment() in which collectctl finds the server.
template <class Server>
class AndroidFixture : public Server {
 protected:
  static constexpr seconds kSoon{60};
  static constexpr seconds kRunLimit{120};
  static constexpr char kApp[] = "com.example.app";

  Arguments android(const std::string& command, const Arguments& more = {}) const {
    Arguments all = {program("collectctl"), "android", command};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  Arguments recording(const Arguments& more = {}) const {
    Arguments all =
        android("run", {"-o", traces(), "--agent", agent_library(), "--when-full", "wait"});
    all.insert(all.end(), more.begin(), more.end());
    all.push_back(kApp);
    return all;
  }
  Ending ctl(const Arguments& command) {
    return run(this->scratch_.path(), command, this->environment(), kRunLimit);
  }
  std::unique_ptr<ChildProcess> start(const Arguments& command) {
    return std::make_unique<ChildProcess>(this->scratch_.path(), command, this->environment());
  }
  // Works until the collector has looked for it, and calls what it counted by itself.
  void install_counted() {
    phone_.install(kApp, traced_program("steady") + " pace 8000",
                   "COUNT_FILE=" + this->scratch_ / "count" + "\nCOLLECT_EXIT_FLUSH_MS=60000\n");
  }
  // An app that continues until it is ended.
  void install_endless() { phone_.install(kApp, traced_program("steady") + " pace 600000"); }
  // An app for arm64, whose own library is the program `name` of the build of the agent in `cross`:
  // qemu runs it, with what takes the place of Android's runtime. It ends when there is a file
  // `go_on`, and says its results into `output`. What is missing for that; empty: nothing.
  std::string install_for_arm64(const std::string& cross, const std::string& name,
                                const std::string& go_on, const std::string& output) {
    const std::string runtime = cross + "/lib/libattach_runtime.so";
    for (const std::string& needed :
         {std::string("/usr/bin/qemu-aarch64-static"), cross + "/bin/" + name, runtime}) {
      if (!std::filesystem::exists(needed)) return needed;
    }
    std::filesystem::create_directories(phone_.app(kApp, "code/lib/arm64"));
    const std::string library = phone_.app(kApp, "code/lib/arm64/lib" + name + ".so");
    std::filesystem::copy_file(cross + "/bin/" + name, library);
    phone_.set_property("ro.product.cpu.abi", "arm64-v8a");
    phone_.install(kApp, "qemu-aarch64-static -L /usr/aarch64-linux-gnu -E LD_PRELOAD=" + runtime +
                             " -E ATTACH_AGENT=" + phone_.app(kApp, "attach_agent") + " " +
                             library + " " + go_on + " > " + output);
    phone_.write(phone_.app(kApp, "abi"), "arm64-v8a\n");
    return "";
  }
  int app_pid() const { return std::atoi(phone_.read(phone_.app(kApp, "pid")).c_str()); }
  bool says(const ChildProcess& process, const std::string& words) {
    return eventually(kSoon, [&] { return process.errors().find(words) != std::string::npos; });
  }
  std::string traces() const { return this->scratch_ / "traces"; }
  std::vector<RecordedSession> sessions() {
    std::vector<RecordedSession> all;
    for (const std::string& path : session_directories(traces())) all.emplace_back(path);
    return all;
  }
  void expect_refused(const Ending& ending, const std::string& words) {
    EXPECT_TRUE(ending.exited_with(125)) << ending.describe() << ending.errors;
    EXPECT_THAT(ending.errors, testing::HasSubstr(words));
    EXPECT_EQ(phone_.leftovers(), "");
  }

  fakes::FakePhoneFolder phone_;
};

}  // namespace collect::e2e

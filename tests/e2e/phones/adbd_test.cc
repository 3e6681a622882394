// The real adb on both sides: Debian's server, AOSP's adbd built for this machine, and between them
// a collectord that finds, records and finds again what was started through a shell of the device.
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/e2e/faults/chaos_check.h"
#include "tests/e2e/phones/adbd_fixture.h"
#include "tests/e2e/recorded_session.h"

namespace collect::e2e {
namespace {

constexpr size_t kThreads = 2;
constexpr uint8_t kX86 = 1;
constexpr uint8_t kArm64 = 2;

class RealAdbd : public AdbdFixture {
 protected:
  // `program` is started through the device's shell, and continues while its cable comes and goes.
  void record_over_replugs(const std::string& program, uint8_t arch) {
    CollectorProcess collector(
        scratch_, {"--adb", "127.0.0.1:" + std::to_string(port_), "--heartbeat-ms", "500"});
    const auto shown = [&](const std::string& wanted) {
      std::string last;
      const bool is_shown = eventually(kSoon, [&] {
        last = collector.ctl({"devices"}).output;
        return last.find(wanted) != std::string::npos;
      });
      return is_shown ? "" : "\"" + wanted + "\" is not in:\n" + last;
    };
    EXPECT_EQ(shown(serial()), "");
    EXPECT_EQ(shown("no agent"), "");
    // The shell outlives its adbd only by setsid, as a program started from a launcher would.
    const std::string command =
        "COLLECT_LISTEN=abstract: COLLECT_FULL=wait COLLECT_EXIT_FLUSH_MS=60000 setsid env " +
        program + " " + scratch_ / "progress" + " " + std::to_string(kThreads) +
        " > /dev/null 2>&1 < /dev/null & echo $!";
    const Ending started = adb({"-s", serial(), "shell", command});
    ASSERT_TRUE(started.exited_with(0)) << started.errors;
    const int pid = std::atoi(started.output.c_str());
    ASSERT_GT(pid, 0) << started.output;
    EXPECT_EQ(shown("serving"), "");
    const auto stored = [&] {
      uint64_t bytes = 0;
      std::error_code none;
      for (const std::string& directory : session_directories(collector.root(), pid)) {
        const auto size = std::filesystem::file_size(directory + "/thread_0/index.atf", none);
        if (!none) bytes += size;
      }
      return bytes;
    };
    const auto records = [&] {
      const uint64_t before = stored();
      return eventually(kSoon, [&] { return stored() > before; });
    };
    EXPECT_TRUE(records());
    for (int times = 0; times < 2; ++times) {
      unplug();
      EXPECT_EQ(shown("absent"), "");
      plug();
      EXPECT_EQ(shown("serving"), "");
      EXPECT_TRUE(records()) << "after a replug";
    }
    kill(pid, SIGTERM);
    const auto sessions = sealed_sessions(collector.root(), pid);
    ASSERT_EQ(sessions.size(), 1u);
    EXPECT_EQ(sessions[0].state(), "complete");
    EXPECT_EQ(sessions[0].manifest()["process"]["arch"], arch);
    const ChaosTally tally =
        check_chaos_process(collector.root(), pid, read_progress(scratch_ / "progress", kThreads),
                            ChaosEnd::kOrderly, true);
    EXPECT_EQ(tally.sessions, 1u);
    EXPECT_EQ(tally.lost, 0u);
    EXPECT_GT(tally.events, 0u);
  }
};

TEST_F(RealAdbd, StartedByShellRecordedUnpluggedReplugged) {
  plug();
  ASSERT_FALSE(HasFatalFailure());
  record_over_replugs("LD_PRELOAD=" + agent_library() + " " + traced_program("chaos"), kX86);
}

// The program of a phone, its agent within it, by an emulator of the phone's processor.
TEST_F(RealAdbd, PushedForArm64) {
  const std::string emulator = "/usr/bin/qemu-aarch64-static";
  const std::string built = std::string(E2E_CROSS) + "/arm64-musl/bin/chaos_linked";
  for (const std::string& needed : {emulator, built}) {
    if (!std::filesystem::exists(needed)) GTEST_SKIP() << "there is no " << needed;
  }
  plug();
  const std::string pushed = scratch_ / "chaos_arm64";
  const Ending push = adb({"-s", serial(), "push", built, pushed});
  ASSERT_TRUE(push.exited_with(0)) << push.output << push.errors;
  record_over_replugs(emulator + " " + pushed, kArm64);
}

}  // namespace
}  // namespace collect::e2e

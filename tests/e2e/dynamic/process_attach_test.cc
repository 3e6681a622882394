// AttachProcess and DetachProcess, as grpcurl or buf call them.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/e2e/collector_process.h"
#include "tests/e2e/grpc_tool.h"
#include "tests/e2e/recorded_session.h"
#include "tests/fakes/machine/other_user.h"

namespace collect::e2e {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

constexpr seconds kLimit{120};

class ProcessAttachE2eTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ::setenv("XDG_CACHE_HOME", (scratch_ / "cache").c_str(), 1);
    for (const char* variable : {"COLLECT_GRPCURL", "COLLECT_BUF"}) {
      tool_ = GrpcTool(variable);
      if (tool_.is_there()) return;
    }
    GTEST_SKIP() << "neither grpcurl nor buf is here";
  }
  std::string stop_file() const { return scratch_ / "stop"; }
  std::unique_ptr<ChildProcess> start() {
    return std::make_unique<ChildProcess>(
        scratch_.path(), Arguments{traced_program("unprepared"), "20", "3", stop_file()});
  }
  void expect_right(ChildProcess& process) {
    std::ofstream(stop_file()) << "\n";
    const Ending& ending = process.wait(kLimit);
    EXPECT_TRUE(ending.exited_with(0)) << ending.describe() << ending.output << ending.errors;
  }
  Ending call(const CollectorProcess& collector, const std::string& method, const json& request) {
    return tool_.call(collector, scratch_, method, request.dump());
  }
  void expect_refused(const CollectorProcess& collector, pid_t pid, const std::string& code,
                      const std::string& words) {
    const Ending refused = call(collector, "AttachProcess", {{"pid", pid}});
    EXPECT_FALSE(refused.exited_with(0)) << refused.output;
    std::string said = refused.output + refused.errors;
    said.erase(std::remove(said.begin(), said.end(), '_'), said.end());
    EXPECT_THAT(said, HasSubstr(words));
    // "PermissionDenied" or "permission_denied"
    std::transform(said.begin(), said.end(), said.begin(),
                   [](char letter) { return static_cast<char>(std::tolower(letter)); });
    EXPECT_THAT(said, HasSubstr(code));
  }

  Scratch scratch_;
  GrpcTool tool_{"COLLECT_BUF"};
};

TEST_F(ProcessAttachE2eTest, RecordsAProcessOfItsOwnUser) {
  const CollectorProcess collector(scratch_);
  const auto process = start();
  const Ending attached = call(collector, "AttachProcess",
                               {{"pid", process->pid()},
                                {"tag", "by rpc"},
                                {"modules", {"unprepared"}},
                                {"max_rate", 1'000'000'000},
                                {"when_full", "WHEN_FULL_WAIT"}});
  ASSERT_TRUE(attached.exited_with(0)) << attached.output << attached.errors;
  const json response = json::parse(attached.output);
  EXPECT_EQ(response["agent"]["tag"], "by rpc");
  EXPECT_EQ(response["agent"]["pid"], process->pid());
  EXPECT_GT(std::stoull(response["functions"].get<std::string>()), 10u);
  ASSERT_EQ(response["modules"].size(), 1u);
  EXPECT_EQ(response["modules"][0], traced_program("unprepared"));
  EXPECT_FALSE(response.contains("left_out"));
  EXPECT_GE(response["stoppedThreads"].get<uint32_t>(), 4u);
  EXPECT_THAT(response["stopped"].get<std::string>(), ::testing::EndsWith("s"));
  const auto events = [&] {
    const json listed = json::parse(collector.ctl({"sessions", "--json"}).output, nullptr, false);
    return listed.contains("sessions") && !listed["sessions"].empty()
               ? listed["sessions"][0].value("events", 0)
               : 0;
  };
  ASSERT_TRUE(eventually(kLimit, [&] { return events() > 10'000; }));
  const Ending detached = call(collector, "DetachProcess", {{"pid", process->pid()}});
  EXPECT_TRUE(detached.exited_with(0)) << detached.output << detached.errors;
  const auto sessions = sealed_sessions(collector.root(), process->pid(), kLimit);
  ASSERT_EQ(sessions.size(), 1u);
  EXPECT_EQ(sessions[0].state(), "complete");
  EXPECT_EQ(sessions[0].totals().lost, 0u);
  EXPECT_EQ(sessions[0].manifest()["process"]["max_rate"], 1'000'000'000);
  const Ending verified = collector.ctl({"verify", sessions[0].directory()});
  EXPECT_TRUE(verified.exited_with(0)) << verified.output;
  EXPECT_TRUE(process->running());
  // Once more, without anything to change in its code.
  const Ending again = call(collector, "AttachProcess", {{"pid", process->pid()}});
  ASSERT_TRUE(again.exited_with(0)) << again.output << again.errors;
  EXPECT_THAT(json::parse(again.output)["agent"]["tag"].get<std::string>(),
              ::testing::StartsWith("attach-"));
  EXPECT_FALSE(json::parse(again.output).contains("stoppedThreads"));
  expect_right(*process);
  EXPECT_EQ(sealed_sessions(collector.root(), process->pid(), kLimit).size(), 2u);
}

TEST_F(ProcessAttachE2eTest, TokenIsHandedOn) {
  write_text_file(scratch_ / "token", "0123456789abcdef0123456789abcdef");
  std::filesystem::permissions(scratch_ / "token", std::filesystem::perms::owner_read);
  const CollectorProcess collector(scratch_, {"--token-file", scratch_ / "token"});
  const auto process = start();
  const Ending attached = call(collector, "AttachProcess", {{"pid", process->pid()}});
  EXPECT_TRUE(attached.exited_with(0)) << attached.output << attached.errors;
  expect_right(*process);
}

TEST_F(ProcessAttachE2eTest, ExplainsRefusedProcesses) {
  const CollectorProcess collector(scratch_);
  expect_refused(collector, 999'999'999, "notfound", "no process 999999999");
  const ChildProcess fixed(scratch_.path(), {STATIC_PROGRAM, "wait"});
  expect_refused(collector, fixed.pid(), "failedprecondition",
                 "is linked statically: nothing can be");
  const Ending detached = call(collector, "DetachProcess", {{"pid", ::getpid()}});
  EXPECT_FALSE(detached.exited_with(0));
  EXPECT_THAT(detached.output + detached.errors, HasSubstr(") has no agent"));
}

TEST_F(ProcessAttachE2eTest, ProcessesOfOtherUsersAreNot) {
  if (geteuid() != 0) GTEST_SKIP() << "it takes root";
  const CollectorProcess collector(scratch_, {"--local-access", "any"});
  fakes::OtherUser other([] {
    while (true) pause();
    return 0;
  });
  const std::string child = "/proc/" + std::to_string(other.pid());
  ASSERT_TRUE(eventually(kLimit, [&] {
    struct stat status{};
    return ::stat(child.c_str(), &status) == 0 &&
           read_text_file(child + "/status").find("Uid:\t65534\t65534") != std::string::npos;
  }));
  expect_refused(collector, other.pid(), "permissiondenied", "belongs to user 65534");
  // And who may call the control plane may not have root's processes attached to.
  const auto process = start();
  const std::string said = "/tmp/attach_said_" + std::to_string(getpid());
  const std::string cache = said + "_cache";
  fakes::OtherUser caller([&] {
    const int out = ::open(said.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (::chdir("/tmp") != 0 || ::setenv("HOME", "/tmp", 1) != 0 ||
        ::setenv("XDG_CACHE_HOME", cache.c_str(), 1) != 0) {
      return 9;
    }
    ::dup2(out, 1);
    ::dup2(out, 2);
    const std::string request = json({{"pid", process->pid()}}).dump();
    const Arguments line = tool_.call_line(collector, "AttachProcess", request);
    std::vector<char*> words;
    for (const std::string& word : line) words.push_back(const_cast<char*>(word.c_str()));
    words.push_back(nullptr);
    ::execv(words[0], words.data());
    return 8;
  });
  const int code = caller.wait();
  const std::string answer = read_text_file(said);
  std::filesystem::remove(said);
  std::filesystem::remove_all(cache);
  EXPECT_NE(code, 0);
  if (code == 8 || code == 126 || code == 127) GTEST_SKIP() << "that user may not run the client";
  EXPECT_THAT(answer, HasSubstr("this collector attaches to processes of user 0"));
  expect_right(*process);
}

}  // namespace
}  // namespace collect::e2e

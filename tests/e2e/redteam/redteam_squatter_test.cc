// Another user's program that listens where a collector is expected, while none runs: neither a
// traced program nor collectctl sends it anything. With a token on both sides, a collector of
// another user is served all the same.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <memory>

#include "tests/e2e/collector_process.h"
#include "tests/fakes/machine/foreign_listener.h"

namespace collect::e2e {
namespace {

using fakes::ForeignListener;
using testing::HasSubstr;
using testing::Not;
using Accepts = ForeignListener::Accepts;

constexpr const char* kServed = "is served by uid 65534, another user";

class RedTeamSquatterTest : public testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
    ASSERT_NE(::mkdtemp(shared_.data()), nullptr);
    ASSERT_EQ(::chmod(shared_.c_str(), 0755), 0);
  }
  void TearDown() override { std::filesystem::remove_all(shared_); }

  static Environment traced(const std::string& connect) {
    return {{"LD_PRELOAD", agent_library()}, {"COLLECT_CONNECT", connect}, {"COLLECT_LOG", "1"}};
  }

  // A program that has something to send and tries more than once; then collectctl.
  void expect_nothing_reaches(const ForeignListener& squatter, const std::string& agent_address) {
    const Ending ending =
        run(scratch_.path(), {traced_program("json_iso_codes_counted"), "1", "2", "30"},
            traced(agent_address));
    EXPECT_TRUE(ending.exited_with(0)) << ending.describe() << ending.errors;
    EXPECT_THAT(ending.errors, HasSubstr(agent_address + " " + kServed));
    EXPECT_THAT(ending.errors, HasSubstr("set COLLECT_TOKEN_FILE"));
    EXPECT_EQ(squatter.bytes(), 0u);
  }
  void expect_ctl_refuses(const ForeignListener& squatter, const std::string& address) {
    const Ending ending =
        run(scratch_.path(), {program("collectctl"), "--control", address, "agents"});
    EXPECT_TRUE(ending.exited_with(1)) << ending.describe();
    EXPECT_THAT(ending.errors, HasSubstr(address + " " + kServed));
    EXPECT_EQ(squatter.bytes(), 0u);
  }

  const Scratch scratch_;
  std::string shared_ = "/tmp/collect_squatter_XXXXXX";
};

TEST_F(RedTeamSquatterTest, PortOfAnotherUserGetsNothing) {
  for (const Accepts accepts : {Accepts::kAlways, Accepts::kOnce}) {
    const ForeignListener squatter(fakes::tcp4(INADDR_LOOPBACK, 0), accepts);
    const std::string address = "127.0.0.1:" + std::to_string(squatter.port());
    expect_nothing_reaches(squatter, address);
    EXPECT_GT(squatter.accepted(), 0) << "no one came";
    if (accepts == Accepts::kAlways) expect_ctl_refuses(squatter, address);
  }
}

TEST_F(RedTeamSquatterTest, AbstractSocketOfAnotherUserGetsNothing) {
  const std::string name = "collect_squatter_" + std::to_string(::getpid());
  const ForeignListener squatter(fakes::unix_name(std::string(1, '\0') + name));
  expect_nothing_reaches(squatter, "abstract:" + name);
  EXPECT_GT(squatter.accepted(), 0) << "no one came";
}

TEST_F(RedTeamSquatterTest, UnixSocketOfAnotherUserBelowTmpGetsNothing) {
  ASSERT_EQ(::chown(shared_.c_str(), fakes::kOtherUid, fakes::kOtherUid), 0);
  const ForeignListener squatter(fakes::unix_name(shared_ + "/ingest"));
  expect_nothing_reaches(squatter, "unix:" + shared_ + "/ingest");
  expect_ctl_refuses(squatter, "unix:" + shared_ + "/ingest");
  EXPECT_GT(squatter.accepted(), 0) << "no one came";
}

// The refusal is never final: the collector comes back to its port, and is served.
TEST_F(RedTeamSquatterTest, CollectorThatComesAfterItIsServed) {
  auto squatter = std::make_unique<ForeignListener>(fakes::tcp4(INADDR_LOOPBACK, 0));
  const std::string address = "127.0.0.1:" + std::to_string(squatter->port());
  ChildProcess job(scratch_.path(), {"/bin/sleep", "120"}, traced(address));
  ASSERT_TRUE(eventually(seconds(30), [&] { return squatter->ended() >= 3; })) << job.errors();
  EXPECT_EQ(squatter->bytes(), 0u);
  squatter.reset();
  ChildProcess collector(scratch_.path(), {program("collectord"), "--root", scratch_ / "root",
                                           "--adb", "off", "--usbmux", "off", "--ingest", address,
                                           "--control", "unix:" + (scratch_ / "control")});
  EXPECT_TRUE(eventually(seconds(60),
                         [&] { return job.errors().find("connected to") != std::string::npos; }))
      << job.errors() << collector.errors();
  job.send_signal(SIGTERM);
  collector.send_signal(SIGTERM);
}

TEST_F(RedTeamSquatterTest, CollectorOfAnotherUserIsServedWithAToken) {
  const std::string root = shared_ + "/root";
  const std::string token = shared_ + "/token";
  ASSERT_EQ(::mkdir(root.c_str(), 0700), 0);
  write_text_file(token, "correct horse");
  for (const std::string& path : {root, token}) {
    ASSERT_EQ(::chown(path.c_str(), fakes::kOtherUid, fakes::kOtherUid), 0);
  }
  CollectorProcess collector(scratch_, {"--token-file", token}, root,
                             {"setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"});
  const Arguments job = {traced_program("json_iso_codes_counted"), "1", "2", "30"};
  const Ending without = run(scratch_.path(), job, traced(collector.ingest()));
  EXPECT_TRUE(without.exited_with(0)) << without.describe();
  EXPECT_THAT(without.errors, HasSubstr(kServed));
  EXPECT_THAT(without.errors, Not(HasSubstr("connected to")));

  Environment with_token = traced(collector.ingest());
  with_token["COLLECT_TOKEN_FILE"] = token;
  const Ending with = run(scratch_.path(), job, with_token);
  EXPECT_TRUE(with.exited_with(0)) << with.describe();
  EXPECT_THAT(with.errors, HasSubstr("connected to"));
  EXPECT_THAT(with.errors, Not(HasSubstr(kServed)));

  const Ending ctl = collector.ctl({"collectors"});
  EXPECT_TRUE(ctl.exited_with(1)) << ctl.describe();
  EXPECT_THAT(ctl.errors, HasSubstr(kServed));
}

}  // namespace
}  // namespace collect::e2e

// Every request of an upload is broken once, in each way; and the uploader is killed at each. The
// bucket holds the same in the end.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include <functional>

#include "tests/daemon/upload/upload_fixture.h"

namespace collect::upload::test {
namespace {

using nlohmann::json;

class BrokenUploadTest : public UploadTest {
 protected:
  // An upload with no fault: what is to be in the bucket, and how many requests it takes.
  void SetUp() override {
    UploadTest::SetUp();
    session_path_ = make_session();
    const UploadStatus status = upload(small_parts(), {session_path_});
    EXPECT_EQ(status.committed_sessions, 1u);
    whole_ = bucket();
    requests_ = server().log().size();
    EXPECT_GT(requests_, 10u);
    EXPECT_EQ(count("POST", "uploadId="), 1u);
  }
  void begin(size_t at, json fault) {
    server().clear();
    fault["at"] = at;
    server().set({{"min_part", 1}, {"faults", {fault}}});
  }
  void break_each(const json& fault) {
    for (size_t at = 0; at < requests_; ++at) {
      SCOPED_TRACE(fault.dump() + " at " + std::to_string(at));
      begin(at, fault);
      const UploadStatus status = upload(small_parts(), {session_path_});
      EXPECT_EQ(status.committed_sessions + status.present_sessions, 1u) << status.problem;
      EXPECT_EQ(bucket(), whole_);
      EXPECT_TRUE(server().uploads().empty());
      EXPECT_GT(server().log().size(), requests_);
    }
  }
  // An uploader as a program of its own, which begins when `prepare` has seen its process id.
  child::Ending run_program(const std::function<void(pid_t)>& prepare) {
    int ends[2];
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    child::ChildProcess program(child::shared_scratch().path(),
                                {UPLOAD_ONCE, server().endpoint(), session_path_.directory}, {},
                                {.input = ends[0]});
    ::close(ends[0]);
    prepare(program.pid());
    ::close(ends[1]);  // its input ends: it begins
    return program.wait(child::seconds(120));
  }
  void kill_at_each(const char* kind) {
    for (size_t at = 0; at < requests_; ++at) {
      SCOPED_TRACE(std::string(kind) + " at " + std::to_string(at));
      const child::Ending killed =
          run_program([&](pid_t pid) { begin(at, {{"kind", kind}, {"pid", pid}}); });
      EXPECT_EQ(killed.describe(), "signal 9");
      const child::Ending done =
          run_program([](pid_t) { server().set({{"min_part", 1}, {"faults", json::array()}}); });
      EXPECT_EQ(done.describe(), "exit 0");
      EXPECT_EQ(bucket(), whole_);
      EXPECT_TRUE(server().uploads().empty());
    }
  }

  storage::SessionPath session_path_;
  std::map<std::string, std::string> whole_;
  size_t requests_ = 0;
};

TEST_F(BrokenUploadTest, Status503) {
  break_each({{"kind", "status"}, {"status", 503}, {"code", "SlowDown"}});
}
TEST_F(BrokenUploadTest, Status403) {
  break_each({{"kind", "status"}, {"status", 403}, {"code", "AccessDenied"}});
}
TEST_F(BrokenUploadTest, ErrorInA200Answer) {
  break_each({{"kind", "error_200"}});
}
TEST_F(BrokenUploadTest, NoAnswerOfS3) {
  break_each({{"kind", "garbage"}});
}
TEST_F(BrokenUploadTest, ResetWithinTheBody) {
  break_each({{"kind", "reset"}});
}
TEST_F(BrokenUploadTest, AnswerIsLost) {
  break_each({{"kind", "lost_answer"}});
}
TEST_F(BrokenUploadTest, KilledBeforeTheServerActs) {
  kill_at_each("kill_before");
}
TEST_F(BrokenUploadTest, KilledBeforeTheAnswer) {
  kill_at_each("kill_after");
}

TEST_F(BrokenUploadTest, ServerThatReadsSlowly) {
  server().clear();
  server().set({{"min_part", 1}, {"faults", {{{"at", 0}, {"to", 1000}, {"kind", "slow"}}}}});
  EXPECT_EQ(upload(small_parts(), {session_path_}).committed_sessions, 1u);
  EXPECT_EQ(bucket(), whole_);
}

TEST_F(BrokenUploadTest, ServerWithAnotherClockThatIgnoresConditionsAndChecksums) {
  server().clear();
  server().set({{"min_part", 1},
                {"clock_offset_s", 86'400},
                {"ignore", {"if-none-match", "content-md5", "x-amz-checksum-crc32c"}}});
  const UploadStatus status = upload(small_parts(), {session_path_});
  EXPECT_EQ(status.committed_sessions, 1u);
  EXPECT_NEAR(static_cast<double>(status.clock_correction_s), 86'400, 60);
  EXPECT_EQ(bucket(), whole_);
}

}  // namespace
}  // namespace collect::upload::test

#include "daemon/web/live/actions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include "daemon/control/request_checks.h"
#include "tests/daemon/control/fake_collector.h"

namespace collect::web {
namespace {

namespace api = control::api;
using ::testing::HasSubstr;

class ActionsTest : public ::testing::Test {
 protected:
  ActionsTest() { collector_.add_session("a/pid_1", api::SESSION_STATE_ACTIVE); }

  HttpAnswer run(const std::string& path, const std::string& body) {
    HttpRequest request;
    request.method = "POST";
    request.target = path;
    request.body = body;
    std::optional<HttpAnswer> answered;
    actions_.run(request, [&](HttpAnswer answer) {
      EXPECT_FALSE(answered.has_value()) << "answered twice";
      answered = std::move(answer);
    });
    EXPECT_TRUE(answered.has_value());
    return answered.value_or(HttpAnswer{});
  }

  control::FakeCollector collector_;
  Actions actions_{collector_};
};

TEST_F(ActionsTest, StopsTheNamedSession) {
  const HttpAnswer answer = run("/api/stop", "{\"session\":\"a/pid_1\"}");
  EXPECT_EQ(answer.status, 200) << answer.body;
  EXPECT_EQ(collector_.last_argument(), "sessions/a/pid_1");
}

TEST_F(ActionsTest, StartsAnotherRecordingOfTheSessionsAgent) {
  const HttpAnswer answer = run("/api/start", "{\"session\":\"a/pid_1\"}");
  EXPECT_EQ(answer.status, 200) << answer.body;
  EXPECT_EQ(collector_.last_start().target().session(), "sessions/a/pid_1");
}

TEST_F(ActionsTest, SwitchesDetail) {
  EXPECT_EQ(run("/api/detail", "{\"session\":\"a/pid_1\",\"mode\":\"on\"}").status, 200);
  EXPECT_EQ(collector_.last_detail().mode, api::DETAIL_MODE_ON);
  EXPECT_EQ(collector_.last_detail().target.session(), "sessions/a/pid_1");
  EXPECT_EQ(run("/api/detail", "{\"session\":\"a/pid_1\",\"mode\":\"off\"}").status, 200);
  EXPECT_EQ(collector_.last_detail().mode, api::DETAIL_MODE_OFF);
  EXPECT_EQ(run("/api/detail", "{\"session\":\"a/pid_1\",\"mode\":\"armed\"}").status, 400);
  EXPECT_EQ(run("/api/detail", "{\"session\":\"a/pid_1\"}").status, 400);
}

TEST_F(ActionsTest, PutsAMarker) {
  EXPECT_EQ(run("/api/marker", "{\"session\":\"a/pid_1\",\"text\":\"the door opens\"}").status,
            200);
  EXPECT_EQ(collector_.last_argument(), "sessions/a/pid_1|the door opens");
  EXPECT_EQ(run("/api/marker", "{\"session\":\"a/pid_1\"}").status, 400);
  EXPECT_EQ(run("/api/marker", "{\"session\":\"a/pid_1\",\"text\":\"\"}").status, 400);
  const auto marker = [&](size_t bytes) {
    return run("/api/marker",
               "{\"session\":\"a/pid_1\",\"text\":\"" + std::string(bytes, 'x') + "\"}");
  };
  EXPECT_EQ(marker(control::kMaxAnnotationBytes).status, 200);
  EXPECT_EQ(marker(control::kMaxAnnotationBytes + 1).status, 400);
}

TEST_F(ActionsTest, MakesASnapshot) {
  const HttpAnswer answer = run("/api/snapshot", "{\"session\":\"a/pid_1\"}");
  EXPECT_EQ(answer.status, 200);
  EXPECT_THAT(answer.body, HasSubstr("session_20260131_235959_snap1/pid_7"));
  EXPECT_EQ(collector_.last_argument(), "sessions/a/pid_1");
}

TEST_F(ActionsTest, SetsWhichFunctionsAreRecorded) {
  const HttpAnswer answer =
      run("/api/filter", R"({"session":"a/pid_1","only":["draw*","main"],"except":["draw_x"]})");
  EXPECT_EQ(answer.status, 200) << answer.body;
  EXPECT_THAT(answer.body, HasSubstr("\"functions_matched\":"));
  const api::SetFunctionFilterRequest filter = collector_.last_filter();
  EXPECT_EQ(filter.target().session(), "sessions/a/pid_1");
  EXPECT_THAT(filter.only(), testing::ElementsAre("draw*", "main"));
  EXPECT_THAT(filter.except(), testing::ElementsAre("draw_x"));
  EXPECT_EQ(run("/api/filter", R"({"session":"a/pid_1","only":"draw"})").status, 400);
  EXPECT_EQ(run("/api/filter", R"({"session":"a/pid_1","only":[7]})").status, 400);
  EXPECT_EQ(run("/api/filter", R"({"session":"a/pid_1","only":[""]})").status, 400);
}

TEST_F(ActionsTest, SetsATrigger) {
  const auto set = [&](const std::string& more) {
    return run("/api/trigger", "{\"session\":\"a/pid_1\"," + more + "}").status;
  };
  EXPECT_EQ(set(R"("functions":["draw"],"longer_than_ms":2.5)"), 200);
  EXPECT_THAT(collector_.last_argument(), HasSubstr("sessions/a/pid_1"));
  EXPECT_EQ(set(R"("functions":["draw"])"), 200);
  EXPECT_EQ(set(R"("functions":[])"), 200);
  EXPECT_EQ(set(R"("functions":["draw"],"longer_than_ms":0)"), 400);
  EXPECT_EQ(set(R"("functions":["draw"],"longer_than_ms":"2")"), 400);
  EXPECT_EQ(set(R"("functions":["draw"],"longer_than_ms":1e300)"), 400);
}

TEST_F(ActionsTest, DeletesTheNamedSession) {
  EXPECT_EQ(run("/api/delete", "{\"session\":\"a/pid_1\"}").status, 200);
  EXPECT_EQ(collector_.last_argument(), "sessions/a/pid_1");
}

// An empty selector means every session.
TEST_F(ActionsTest, WithoutTheNameOfASessionNothingIsDone) {
  for (const char* body :
       {"", "{}", "[]", "7", "{\"session\":7}", "{\"session\":\"\"}", "{\"session\":\"a\"}",
        "{\"session\":\"sessions/a/pid_1\"}", "{\"session\":\"*\"}", "{\"session\":\"a/pid_1\"",
        "{\"session\":\"../a/pid_1\"}", "{\"session\":\"a/pid_1\\u0000\"}"}) {
    const HttpAnswer answer = run("/api/stop", body);
    EXPECT_TRUE(answer.status == 400 || answer.status == 404) << body;
    EXPECT_THAT(answer.body, HasSubstr("\"error\""));
    EXPECT_EQ(collector_.last_argument(), "") << body;
  }
}

TEST_F(ActionsTest, ReportsRefusalsOfTheCollector) {
  collector_.fail_with(Error{Code::kUnsupported, "its agent is away"});
  const HttpAnswer answer = run("/api/stop", "{\"session\":\"a/pid_1\"}");
  EXPECT_EQ(answer.status, 409);
  EXPECT_THAT(answer.body, HasSubstr("its agent is away"));
}

TEST_F(ActionsTest, NestedBodyIsRead) {
  EXPECT_EQ(run("/api/stop", std::string(16'000, '[')).status, 400);
  EXPECT_EQ(
      run("/api/stop", "{\"a\":" + std::string(7'000, '[') + std::string(7'000, ']') + "}").status,
      400);
}

}  // namespace
}  // namespace collect::web

// Names of threads that change while they are recorded.
#include <gmock/gmock.h>

#include "daemon/ingest/lane/data_frames.h"
#include "tests/daemon/ingest/ingest_fixture.h"

namespace collect::ingest {
namespace {

using fakes::FakeAgent;
using fakes::index_events;
using testing::HasSubstr;

// Each new name is a StreamOpen. Beyond kMaxThreadRenames of a connection the last one counts,
// which comes with the close.
TEST_F(IngestTest, ThreadMayHaveOneNameAfterTheOther) {
  start();
  FakeAgent agent;
  ASSERT_TRUE(agent.connect(address()));
  ASSERT_TRUE(agent.start_recording(1));
  ASSERT_TRUE(agent.open_stream(1, 11));
  ASSERT_TRUE(agent.send_events(1, 0, 10));
  wire::StreamOpen again;
  again.set_recording(1);
  again.set_stream_id(1);
  again.set_thread_id(11);
  for (uint32_t n = 1; n <= kMaxThreadRenames; ++n) {
    for (int repeat = 0; repeat < 2; ++repeat) {
      again.set_thread_name("name " + std::to_string(n));
      ASSERT_TRUE(agent.data().send(wire::FrameType::kStreamOpen, again));
    }
  }
  const std::string newest = "\"name " + std::to_string(kMaxThreadRenames) + "\"";
  EXPECT_TRUE(eventually([&] {
    const auto session = reported_.session([](const auto&) { return true; });
    return session && manifest(*session).find(newest) != std::string::npos;
  }));
  again.set_thread_name("one too many");
  ASSERT_TRUE(agent.data().send(wire::FrameType::kStreamOpen, again));
  ASSERT_TRUE(agent.send_events(1, 10, 10));
  ASSERT_TRUE(agent.close_stream(1, 20));
  ASSERT_TRUE(agent.end_recording());
  ASSERT_TRUE(agent.wait_recording_ended(1));
  const auto session = reported_.session_in(SessionState::kComplete);
  ASSERT_TRUE(session.has_value());
  EXPECT_THAT(manifest(*session), HasSubstr("\"closed\""));
  EXPECT_THAT(manifest(*session), testing::Not(HasSubstr("one too many")));
  EXPECT_EQ(stored_events(*session, 0, 20), index_events(0, 20));
}

}  // namespace
}  // namespace collect::ingest

#include "daemon/runtime/newest_recording.h"

#include "tests/daemon/runtime/runtime_fixture.h"

namespace collect::runtime {
namespace {

class NewestRecordingTest : public RuntimeTest {};

TEST_F(NewestRecordingTest, IsTheOneThatWasNotedLast) {
  EXPECT_FALSE(newest_recording().has_value());
  const NewestRecording first{"/a/session_1/pid_1", "session_1/pid_1", "127.0.0.1:1", "1"};
  const NewestRecording second{"/b \"\n/pid_2", "session_2/pid_2", "unix:/c", "20260101_000000"};
  ASSERT_TRUE(note_newest(first).ok());
  EXPECT_EQ(newest_recording(), first);
  ASSERT_TRUE(note_newest(second).ok());
  EXPECT_EQ(newest_recording(), second);
}

TEST_F(NewestRecordingTest, IsUnknownWhereTheFileSaysNothing) {
  for (const char* text : {"", "{", "[]", "{}", "{\"path\":\"below\"}", "{\"path\":7}"}) {
    put("newest.json", text);
    EXPECT_FALSE(newest_recording().has_value()) << text;
  }
}

}  // namespace
}  // namespace collect::runtime

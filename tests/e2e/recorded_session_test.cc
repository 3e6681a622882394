// The tests compare each session of a process with the one before it.
#include "tests/e2e/recorded_session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

namespace collect::e2e {
namespace {

TEST(RecordedSession, DirectoriesComeInTheOrderTheSessionsBegan) {
  Scratch scratch;
  const std::vector<std::string> in_order = {
      scratch / "session_20260131_235958_3/pid_7",  scratch / "session_20260131_235959/pid_7",
      scratch / "session_20260131_235959_2/pid_7",  scratch / "session_20260131_235959_9/pid_7",
      scratch / "session_20260131_235959_10/pid_7", scratch / "session_20260131_235959_11/pid_7",
  };
  for (const std::string& directory : in_order) {
    std::filesystem::create_directories(directory);
    write_text_file(directory + "/manifest.json", "{}");
  }
  std::filesystem::create_directories(scratch / "session_20260131_235959_12/pid_7");  // none yet
  std::filesystem::create_directories(scratch / "other/pid_7");
  EXPECT_THAT(session_directories(scratch.path()), testing::ElementsAreArray(in_order));
  EXPECT_THAT(session_directories(scratch.path(), 7), testing::ElementsAreArray(in_order));
  EXPECT_THAT(session_directories(scratch.path(), 8), testing::IsEmpty());
}

}  // namespace
}  // namespace collect::e2e

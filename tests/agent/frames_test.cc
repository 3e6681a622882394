// Which frames the agent takes for the protocol's, by WIRE.md "Frames".
#include "agent/drain/frames.h"

#include <gtest/gtest.h>

namespace collect::agent {
namespace {

TEST(FramesTest, TypesOfTheProtocolAreKnownAndNoOthers) {
  for (uint32_t type = 0; type <= 300; ++type) {
    const bool is_shared = type >= 1 && type <= 7;
    const bool is_of_data = type >= 16 && type <= 23;
    const bool is_of_control = type >= 32 && type <= 40;
    EXPECT_EQ(is_known_type(static_cast<wire::FrameType>(type)),
              is_shared || is_of_data || is_of_control)
        << type;
  }
}

}  // namespace
}  // namespace collect::agent

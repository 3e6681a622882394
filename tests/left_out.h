// Part of a test that cannot run here: counted and named at the end of deploy/test.sh, like a test
// that skips itself.
#pragma once

#include <gtest/gtest.h>

#include <string>

namespace collect {

// `why` says what is missing on this machine.
inline void part_left_out(const std::string& why) {
  ::testing::Test::RecordProperty("left_out", why);
}

}  // namespace collect

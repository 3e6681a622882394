// The adb server of the tests under AndroidFixture.
#pragma once

#include <string>

#include "tests/e2e/phones/android_fixture.h"
#include "tests/fakes/phones/fake_adb_server.h"

namespace collect::e2e {

class MadeUpServer : public testing::Test {
 protected:
  Environment environment() const {
    return {{"ANDROID_ADB_SERVER_PORT", std::to_string(adb_.port())},
            {"ADB_SERVER_SOCKET", ""},
            {"ANDROID_ADB_SERVER_ADDRESS", ""},
            {"ANDROID_SERIAL", ""},
            {"COLLECT_CONTROL", ""}};
  }

  Scratch scratch_;
  fakes::FakeAdbServer adb_;
};

}  // namespace collect::e2e

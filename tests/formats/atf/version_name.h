// Names the instances of a test that runs for both versions.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "formats/atf/layout.h"

namespace collect::atf::testing {

inline std::string version_name(const ::testing::TestParamInfo<Version>& version) {
  return version.param == Version::kV1 ? "v1" : "v2";
}

}  // namespace collect::atf::testing

#include "daemon/collector_functions.h"

#include <gtest/gtest.h>

#include "proto/wire/layout.h"

namespace collect::daemon {
namespace {

TEST(FunctionPatternsTest, IdsNeedNoModules) {
  const auto patterns = FunctionPatterns::parse({"0x100000040", "0x7"});
  ASSERT_TRUE(patterns.ok());
  const symbolize::Symbolizer symbolizer({});
  const std::atomic<bool> stop{false};
  const auto ids = patterns->resolve({}, symbolizer, stop, wire::kMaxFilterFunctions);
  ASSERT_TRUE(ids.ok());
  EXPECT_EQ(*ids, (std::vector<uint64_t>{0x7, 0x100000040}));
  EXPECT_FALSE(FunctionPatterns::parse({"0xZ"}).ok());
  EXPECT_FALSE(FunctionPatterns::parse({"0x1FFFFFFFFFFFFFFFF"}).ok());
  EXPECT_FALSE(FunctionPatterns::parse({""}).ok());
  EXPECT_FALSE(FunctionPatterns::parse({std::string(5'000, 'f')}).ok());
  EXPECT_FALSE(FunctionPatterns::parse(std::vector<std::string>(5'000, "f")).ok());
  const auto named = FunctionPatterns::parse({"f"});
  EXPECT_FALSE(named->resolve({}, symbolizer, stop, wire::kMaxFilterFunctions).ok());
}

}  // namespace
}  // namespace collect::daemon

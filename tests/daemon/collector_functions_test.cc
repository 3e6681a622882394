#include "daemon/collector_functions.h"

#include <gtest/gtest.h>

#include "proto/wire/layout.h"

namespace collect::daemon {
namespace {

TEST(FunctionPatternsTest, NamesMeanWhatPeopleWrite) {
  const char* linkage = "_ZN2ns5parseIiEEvRKSs";
  const char* name = "void ns::parse<int>(std::string const&)";
  EXPECT_TRUE(means_function("_ZN2ns5parseIiEEvRKSs", linkage, name));
  EXPECT_TRUE(means_function("void ns::parse<int>", linkage, name));
  EXPECT_TRUE(means_function("*parse*", linkage, name));
  EXPECT_TRUE(means_function("*::parse<*>(std::string*)", linkage, name));
  EXPECT_FALSE(means_function("parse", linkage, name));
  EXPECT_TRUE(means_function("ns::f", "_ZN2ns1fEi", "ns::f(int)"));
  EXPECT_TRUE(means_function("ns::f", "x", "ns::f(void (*)(int))"));
  EXPECT_TRUE(means_function("main", "main", "main"));
  EXPECT_FALSE(means_function("main", "main2", "main2"));
  EXPECT_TRUE(means_function("*", "anything", "anything"));
}

// A pattern that would make a backtracking matcher run for ages.
TEST(FunctionPatternsTest, ManyStarsAreFast) {
  std::string pattern;
  for (int i = 0; i < 100; ++i) pattern += "a*";
  EXPECT_FALSE(means_function(pattern + "b", std::string(1000, 'a'), std::string(1000, 'a')));
}

TEST(FunctionPatternsTest, IdsNeedNoModules) {
  const auto patterns = FunctionPatterns::parse({"0x100000040", "0x7"});
  ASSERT_TRUE(patterns.ok());
  const auto ids = patterns->resolve({}, {}, wire::kMaxFilterFunctions);
  ASSERT_TRUE(ids.ok());
  EXPECT_EQ(*ids, (std::vector<uint64_t>{0x7, 0x100000040}));
  EXPECT_FALSE(FunctionPatterns::parse({"0xZ"}).ok());
  EXPECT_FALSE(FunctionPatterns::parse({"0x1FFFFFFFFFFFFFFFF"}).ok());
  EXPECT_FALSE(FunctionPatterns::parse({""}).ok());
  EXPECT_FALSE(FunctionPatterns::parse({"f"})->resolve({}, {}, wire::kMaxFilterFunctions).ok());
}

}  // namespace
}  // namespace collect::daemon

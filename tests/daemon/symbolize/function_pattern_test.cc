#include "daemon/symbolize/function_pattern.h"

#include <gtest/gtest.h>

#include <string>

namespace collect::symbolize::test {
namespace {

TEST(FunctionPattern, NamesMeanWhatPeopleWrite) {
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
TEST(FunctionPattern, ManyStarsAreFast) {
  std::string pattern;
  for (int i = 0; i < 100; ++i) pattern += "a*";
  EXPECT_FALSE(means_function(pattern + "b", std::string(1000, 'a'), std::string(1000, 'a')));
}

}  // namespace
}  // namespace collect::symbolize::test

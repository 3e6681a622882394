// The words of `convert --to`.
#include "storage/export/target.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace collect::exports {
namespace {

TEST(ExportTarget, CapturesHaveTheNamesOfTheirKinds) {
  EXPECT_EQ(name_of(Target::kAtf), "atf");
  EXPECT_EQ(name_of(Target::kWtfJson), "wtf-json");
  EXPECT_EQ(name_of(Target::kDial9), "dial9");
  EXPECT_FALSE(is_view(Target::kDial9));
}

TEST(ExportTarget, ViewsHaveTheirOwn) {
  EXPECT_TRUE(is_view(Target::kPerfetto));
  EXPECT_EQ(name_of(Target::kPerfetto), "perfetto");
  EXPECT_EQ(name_of(Target::kSpeedscope), "speedscope");
  EXPECT_EQ(name_of(Target::kHtml), "html");
  EXPECT_EQ(name_of(Target::kParquet), "parquet");
}

TEST(ExportTarget, EachIsVisitedOnceAndNoNameIsTwice) {
  std::set<std::string> names;
  size_t visited = 0;
  for_each_target([&](Target target) {
    ++visited;
    names.emplace(name_of(target));
  });
  EXPECT_EQ(visited, kTargets);
  EXPECT_EQ(names.size(), visited);
  std::set<Target> views;
  for_each_view([&](Target target) {
    EXPECT_TRUE(is_view(target));
    views.insert(target);
  });
  EXPECT_EQ(views.size(), kViewNames.size());
}

TEST(ExportTarget, SentenceNamesAllViews) {
  const std::string words = view_words();
  EXPECT_TRUE(words.starts_with("perfetto, chrome, speedscope, ")) << words;
  EXPECT_TRUE(words.ends_with(", html or parquet")) << words;
}

}  // namespace
}  // namespace collect::exports

#include "daemon/control/service/paging.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace collect::control {
namespace {

std::vector<std::string> numbered(size_t count) {
  std::vector<std::string> names;
  for (size_t i = 0; i < count; ++i) names.push_back("agents/" + std::to_string(i));
  return names;
}

std::vector<std::string_view> views(const std::vector<std::string>& names) {
  return {names.begin(), names.end()};
}

TEST(PagingTest, PagesTogetherAreTheList) {
  const auto names = numbered(25);
  std::vector<std::string_view> seen;
  std::string token;
  int pages = 0;
  do {
    const auto page = page_of(views(names), "f", 10, token);
    ASSERT_TRUE(page.ok()) << to_string(page.error());
    for (size_t i = page->begin; i < page->end; ++i) seen.push_back(names[i]);
    token = page->next_token;
    ++pages;
  } while (!token.empty());
  EXPECT_EQ(pages, 3);
  EXPECT_EQ(seen, views(names));
}

TEST(PagingTest, SizesHaveADefaultAndALimit) {
  const auto names = numbered(kMaxPageSize + 1);
  EXPECT_EQ(page_of(views(names), "", 0, "")->end, kDefaultPageSize);
  EXPECT_EQ(page_of(views(names), "", kMaxPageSize, "")->end, kMaxPageSize);
  EXPECT_EQ(page_of(views(names), "", kMaxPageSize + 1, "")->end, kMaxPageSize);
  EXPECT_EQ(page_of(views(names), "", INT32_MAX, "")->end, kMaxPageSize);
  EXPECT_EQ(page_of(views(names), "", -1, "").code(), Code::kInvalidArgument);
}

TEST(PagingTest, ExactFitHasNoNextPage) {
  const auto names = numbered(10);
  EXPECT_EQ(page_of(views(names), "", 10, "")->next_token, "");
  EXPECT_EQ(page_of({}, "", 10, "")->next_token, "");
}

TEST(PagingTest, NewEntriesInFrontDoNotRepeatAnything) {
  auto names = numbered(4);
  const std::string token = page_of(views(names), "", 2, "")->next_token;
  names.insert(names.begin(), "agents/new");
  const auto page = page_of(views(names), "", 2, token);
  ASSERT_TRUE(page.ok());
  EXPECT_EQ(names[page->begin], "agents/2");
}

TEST(PagingTest, ForeignTokensAreRefused) {
  auto names = numbered(4);
  const std::string token = page_of(views(names), "a", 2, "")->next_token;
  for (const std::string& bad :
       {std::string("x"), std::string("p1-"), std::string("p1-00000000-agents/1"),
        token.substr(0, token.size() - 1), std::string(kMaxPageToken + 1, 'p')}) {
    const auto page = page_of(views(names), "a", 2, bad);
    ASSERT_FALSE(page.ok()) << bad;
    EXPECT_EQ(page.code(), Code::kInvalidArgument);
    EXPECT_THAT(page.error().message, ::testing::HasSubstr("without page_token"));
  }
  for (size_t bytes = 1; bytes < token.size(); ++bytes) {
    const auto page = page_of(views(names), "a", 2, token.substr(0, bytes));
    EXPECT_EQ(page.code(), Code::kInvalidArgument) << bytes;
  }
  EXPECT_FALSE(page_of(views(names), "another filter", 2, token).ok());
  names.erase(names.begin() + 1);
  EXPECT_FALSE(page_of(views(names), "a", 2, token).ok());
}

}  // namespace
}  // namespace collect::control

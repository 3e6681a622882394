#include "formats/core/result.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <memory>
#include <set>

namespace collect {
namespace {

Result<int> half(int value) {
  if (value % 2 != 0) return Error{Code::kInvalidArgument, std::to_string(value) + " is odd"};
  return value / 2;
}

Status quarter(int value, int& out) {
  auto first = half(value);
  if (!first) return first.error();
  COLLECT_TRY(half(*first));
  out = *half(*first);
  return {};
}

TEST(Result, HoldsAValueOrAnError) {
  EXPECT_TRUE(half(4).ok());
  EXPECT_EQ(half(4).value(), 2);
  ASSERT_FALSE(half(3));
  EXPECT_EQ(half(3).code(), Code::kInvalidArgument);
  EXPECT_EQ(half(3).error().message, "3 is odd");
}

TEST(Result, TryHandsTheErrorUp) {
  int out = 0;
  EXPECT_TRUE(quarter(8, out).ok());
  EXPECT_EQ(out, 2);
  const Status status = quarter(6, out);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().message, "3 is odd");
}

TEST(Result, StatusIsTrueWhenItHoldsNoError) {
  const Status good;
  const Status bad = Error{Code::kIo, "x"};
  EXPECT_TRUE(good ? true : false);
  EXPECT_FALSE(bad ? true : false);
  EXPECT_EQ(bad.code(), Code::kIo);
}

TEST(Result, MovesWhatCannotBeCopied) {
  Result<std::unique_ptr<int>> made(std::make_unique<int>(7));
  const std::unique_ptr<int> taken = std::move(made).value();
  EXPECT_EQ(*taken, 7);
}

TEST(Result, TextIsTheMessageAndSaysWhatIsDamaged) {
  EXPECT_EQ(to_string({Code::kNoSpace, "/x: write at 4096"}), "/x: write at 4096");
  EXPECT_EQ(to_string({Code::kDamaged, "/x: at 4096"}), "damaged: /x: at 4096");
  EXPECT_EQ(to_string({Code::kTruncated, "/x: at 4096"}), "truncated: /x: at 4096");
}

TEST(Result, EveryCodeHasItsOwnName) {
  std::set<std::string_view> names;
  for (int code = 0; code <= static_cast<int>(Code::kCancelled); ++code) {
    const std::string_view name = code_name(static_cast<Code>(code));
    EXPECT_FALSE(name.empty());
    EXPECT_TRUE(names.insert(name).second) << name;
  }
}

TEST(Result, ErrnoBecomesWhatTheCallerCanDo) {
  EXPECT_EQ(errno_error(ENOSPC, "x").code, Code::kNoSpace);
  EXPECT_EQ(errno_error(EDQUOT, "x").code, Code::kNoSpace);
  EXPECT_EQ(errno_error(ENOENT, "x").code, Code::kNotFound);
  EXPECT_EQ(errno_error(EACCES, "x").code, Code::kPermission);
  EXPECT_EQ(errno_error(EEXIST, "x").code, Code::kAlreadyExists);
  EXPECT_EQ(errno_error(EIO, "x").code, Code::kIo);
  EXPECT_NE(errno_error(EIO, "/x: read").message.find("/x: read"), std::string::npos);
}

TEST(ResultDeathTest, ValueOfAnErrorIsAProgrammerError) {
  EXPECT_DEATH((void)half(3).value(), "ok\\(\\)");
  EXPECT_DEATH((void)half(4).error(), "ok\\(\\)");
}

}  // namespace
}  // namespace collect

// Which functions are wanted, and what is said of one that is not there.
#include "storage/select/function_filter.h"

#include <gtest/gtest.h>

namespace collect::select {
namespace {

TEST(NameFilterTest, SaysWhatComesNear) {
  const auto said = [](const std::string& word, const std::vector<std::string>& known) {
    auto filter = NameFilter::make({"main", word});
    EXPECT_TRUE(filter.ok());
    EXPECT_TRUE(filter->wants("main"));
    const Status found = filter->check_all_found("function", known);
    EXPECT_EQ(found.code(), Code::kNotFound);
    return found.error().message;
  };
  EXPECT_EQ(said("prase", {"main", "int json::parse(char*)"}),
            "no function matches \"prase\"; did you mean parse?");
  EXPECT_EQ(said("zebra", {"main"}), "no function matches \"zebra\"; 1 is known, main");
  EXPECT_EQ(said("zebra", {"main", "other"}),
            "no function matches \"zebra\"; 2 are known, such as main");
  EXPECT_EQ(said("zebra", {}), "no function matches \"zebra\"");
}

TEST(NameFilterTest, IdMeansOneFunctionAndNoName) {
  auto filter = NameFilter::make({"0x0"});
  ASSERT_TRUE(filter.ok());
  EXPECT_FALSE(filter->wants("x")) << "a name has no id";
  EXPECT_FALSE(filter->wants("x", 1));
  EXPECT_FALSE(filter->check_all_found("function", {}).ok());
  EXPECT_TRUE(filter->wants("x", 0));
  EXPECT_TRUE(filter->check_all_found("function", {}).ok());
  EXPECT_EQ(NameFilter::make({""}).error().message.substr(0, 12), "--function: ");
  EXPECT_TRUE(NameFilter::make({})->wants("anything"));
}

TEST(FunctionFilterTest, EachFunctionIsDecidedOnce) {
  read::SessionManifest manifest;
  manifest.symbols = {{1, "alpha"}, {2, "beta"}, {3, "gamma"}};
  const read::NameTable names(manifest);
  auto filter = FunctionFilter::make({"alpha", "0x2", "gamma"}, names);
  ASSERT_TRUE(filter.ok());
  for (int round = 0; round < 2; ++round) {
    EXPECT_TRUE(filter->wants(1));
    EXPECT_TRUE(filter->wants(2));
    EXPECT_FALSE(filter->wants(4));
  }
  // A function with a name counts as found although no event was of it.
  EXPECT_TRUE(filter->check_all_found("function", manifest.symbols).ok());
  auto wrong = FunctionFilter::make({"alpa"}, names);
  EXPECT_EQ(wrong->check_all_found("thing", manifest.symbols).error().message,
            "no thing matches \"alpa\"; did you mean alpha?");
  auto everything = FunctionFilter::make({}, names);
  EXPECT_TRUE(everything->wants(77));
  EXPECT_TRUE(everything->check_all_found("function", manifest.symbols).ok());
}

TEST(FunctionFilterTest, EmptyFilterWantsEverything) {
  const read::NameTable names;
  auto filter = FunctionFilter::make({}, names);
  ASSERT_TRUE(filter.ok());
  EXPECT_TRUE(filter->wants(42));
  EXPECT_FALSE(FunctionFilter::make({"0x"}, names).ok());
  EXPECT_FALSE(FunctionFilter::make({"0x12345678901234567"}, names).ok());
}

}  // namespace
}  // namespace collect::select

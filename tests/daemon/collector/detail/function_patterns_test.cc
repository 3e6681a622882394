#include "daemon/collector/detail/function_patterns.h"

#include <gmock/gmock.h>

#include "proto/wire/layout.h"
#include "tests/daemon/collector/collector_fixture.h"

namespace collect::daemon {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;
using testing::StartsWith;

storage::ModuleInfo module_named(uint32_t id, const std::string& path) {
  storage::ModuleInfo module;
  module.module_id = id;
  module.path = path;
  return module;
}

// This program, which has collector_test_landmark().
storage::ModuleInfo own_module(uint32_t id) {
  const wire::Module program = this_program().modules(0);
  storage::ModuleInfo module = module_named(id, program.path());
  module.build_id.assign(program.build_id().begin(), program.build_id().end());
  module.size = program.size();
  return module;
}

class FunctionSearchTest : public testing::Test {
 protected:
  Result<std::vector<uint64_t>> resolve(const std::vector<std::string>& words, size_t most = 10) {
    const auto patterns = FunctionPatterns::parse(words);
    EXPECT_TRUE(patterns.ok());
    return patterns->resolve(modules_, symbolizer_, stop_, most);
  }
  Result<FunctionPatterns::Matched> match(const std::vector<std::string>& words) {
    return FunctionPatterns::parse(words)->match(modules_, symbolizer_, stop_, 10);
  }

  const symbolize::Symbolizer symbolizer_{{symbolize::symbolizer_program(), {}, {"/"}}};
  std::atomic<bool> stop_{false};
  std::vector<storage::ModuleInfo> modules_;
};

TEST_F(FunctionSearchTest, NoMoreFunctionsThanAnAgentHolds) {
  EXPECT_THAT(*resolve({"0x3", "0x1", "0x2", "0x3"}, 3), ElementsAre(1, 2, 3));
  const auto more = resolve({"0x3", "0x1", "0x2"}, 2);
  EXPECT_EQ(more.code(), Code::kLimit);
  EXPECT_EQ(more.error().message,
            "more functions match than an agent holds, at most 2: narrow the patterns");
  modules_ = {own_module(1), own_module(2), own_module(3)};
  EXPECT_THAT(*resolve({"collector_test_landmark"}, 3), SizeIs(3));
  EXPECT_EQ(resolve({"collector_test_landmark"}, 2).code(), Code::kLimit);
}

TEST_F(FunctionSearchTest, EachModuleThatHasTheFunctionIsMeant) {
  modules_ = {own_module(7), module_named(8, "linux-vdso.so.1"), own_module(2)};
  const auto found = resolve({"collector_test_land*", "0x9"});
  ASSERT_TRUE(found.ok()) << to_string(found.error());
  ASSERT_THAT(*found, SizeIs(3));
  EXPECT_EQ((*found)[0], 9u);
  EXPECT_EQ((*found)[1] >> 32, 2u);
  EXPECT_EQ((*found)[2] >> 32, 7u);
  EXPECT_EQ(static_cast<uint32_t>((*found)[1]), static_cast<uint32_t>((*found)[2]));
}

TEST_F(FunctionSearchTest, NamesUnmatchedPatternsAndTheFirstUnsearchableFile) {
  modules_ = {module_named(1, "linux-vdso.so.1"), own_module(2)};
  const auto none = resolve({"collector_test_landmark", "no_such", "nor_this"});
  EXPECT_EQ(none.code(), Code::kNotFound);
  EXPECT_EQ(none.error().message, "no function \"no_such\" in the 2 modules of this agent");
  modules_.push_back(module_named(3, "/nowhere/first.so"));
  modules_.push_back(module_named(4, "/nowhere/second.so"));
  EXPECT_THAT(resolve({"no_such"}).error().message,
              StartsWith("no function \"no_such\" in the 4 modules of this agent "
                         "(/nowhere/first.so: "));
  const auto matched = match({"no_such", "collector_test_landmark", "nor_this"});
  ASSERT_TRUE(matched.ok());
  EXPECT_THAT(matched->ids, SizeIs(1));
  EXPECT_THAT(matched->unmatched, ElementsAre("no_such", "nor_this"));
  EXPECT_THAT(matched->problem, StartsWith("/nowhere/first.so: "));
  EXPECT_THAT(match({"collector_test_landmark"})->unmatched, IsEmpty());
}

TEST_F(FunctionSearchTest, SearchThatIsStoppedIsCancelled) {
  modules_ = {own_module(1)};
  stop_ = true;
  EXPECT_EQ(resolve({"collector_test_landmark"}).code(), Code::kCancelled);
  EXPECT_TRUE(resolve({"0x7"}).ok()) << "nothing is searched for it";
}

TEST(FunctionPatternsTest, ReportsWhetherTheListIsEmpty) {
  EXPECT_TRUE(FunctionPatterns::parse({})->empty());
  EXPECT_FALSE(FunctionPatterns::parse({"0x7"})->empty());
  EXPECT_FALSE(FunctionPatterns::parse({"f"})->empty());
}

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

#include "daemon/ingest/peer/agent_filter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace collect::ingest {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

std::vector<uint64_t> ids_of(const std::vector<HotFunction>& functions) {
  std::vector<uint64_t> ids;
  for (const HotFunction& function : functions) ids.push_back(function.function_id);
  return ids;
}

TEST(AgentFilterTest, SwitchesEachFunctionOffOnce) {
  AgentFilter filter;
  EXPECT_EQ(filter.get(), nullptr);
  EXPECT_EQ(filter.switch_off({{1, 900}, {2, 800}}, 50), 2u);
  EXPECT_THAT(ids_of(filter.still_on({{2, 700}, {3, 600}})), ElementsAre(3));
  EXPECT_EQ(filter.switch_off({{2, 700}, {3, 600}}, 60), 1u);
  EXPECT_EQ(filter.switch_off({{2, 700}}, 70), 0u);
  ASSERT_NE(filter.get(), nullptr);
  EXPECT_EQ(filter.get()->at_ns, 50u);
  EXPECT_THAT(filter.get()->switched_off, ElementsAre(storage::SwitchedOffFunction{50, 1, 900},
                                                      storage::SwitchedOffFunction{50, 2, 800},
                                                      storage::SwitchedOffFunction{60, 3, 600}));
}

TEST(AgentFilterTest, SwitchesNoMoreOffThanItsLimit) {
  AgentFilter filter;
  std::vector<HotFunction> functions;
  for (uint64_t id = 0; id <= storage::kMaxSwitchedOff; ++id) functions.push_back({id, 1});
  EXPECT_EQ(filter.switch_off(functions, 1), storage::kMaxSwitchedOff);
  EXPECT_THAT(filter.still_on(functions), IsEmpty());
}

TEST(AgentFilterTest, RequestedFilterReplacesSwitchedOffFunctions) {
  AgentFilter filter;
  filter.switch_off({{1, 900}}, 50);
  filter.set({60, {"parse_*"}, {}, 3});
  ASSERT_NE(filter.get(), nullptr);
  EXPECT_THAT(filter.get()->switched_off, IsEmpty());
  EXPECT_THAT(filter.still_on({{1, 900}}), SizeIs(1));
  filter.set({70, {}, {}, 0});
  EXPECT_EQ(filter.get(), nullptr);
}

TEST(AgentFilterTest, FilterForTheStartHoldsFromThere) {
  AgentFilter filter;
  filter.set_for_start({0, {}, {"log_*"}, 2});
  filter.begin_recording(500);
  EXPECT_EQ(filter.get()->at_ns, 500u);
  filter.begin_recording(900);
  EXPECT_EQ(filter.get()->at_ns, 500u);
}

TEST(AgentFilterTest, CommandNamesThemAll) {
  const wire::Command command = switch_off_command({{7, 1}, {8, 2}});
  EXPECT_EQ(command.set_function_filter().mode(), wire::SetFunctionFilter::LESS);
  EXPECT_TRUE(command.set_function_filter().last());
  EXPECT_THAT(command.set_function_filter().function_ids(), ElementsAre(7, 8));
}

}  // namespace
}  // namespace collect::ingest

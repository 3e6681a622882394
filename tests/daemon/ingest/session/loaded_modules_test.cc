#include "daemon/ingest/session/loaded_modules.h"

#include <gmock/gmock.h>

#include "daemon/ingest/link/limits.h"

namespace collect::ingest {
namespace {

using principal::Resource;
using testing::HasSubstr;
using testing::IsEmpty;

wire::Modules wire_modules(int count) {
  wire::Modules modules;
  for (int at = 0; at < count; ++at) modules.add_modules()->set_path("/bin/a");
  return modules;
}

std::vector<storage::ModuleInfo> infos(uint32_t first, uint32_t count, const std::string& path) {
  std::vector<storage::ModuleInfo> all(count);
  for (uint32_t at = 0; at < count; ++at) {
    all[at].module_id = first + at;
    all[at].path = path;
  }
  return all;
}

TEST(LoadedModulesTest, FrameHasLimits) {
  EXPECT_FALSE(check_untrusted_modules(wire_modules(wire::kMaxModulesPerFrame)).has_value());
  const Verdict many = check_untrusted_modules(wire_modules(wire::kMaxModulesPerFrame + 1));
  ASSERT_TRUE(many.has_value());
  EXPECT_EQ(many->code, wire::REFUSE_PROTOCOL);
  EXPECT_TRUE(many->retry);

  wire::Modules long_names = wire_modules(2);
  wire::Module& last = *long_names.mutable_modules(1);
  last.set_path(std::string(kMaxPathBytes, 'p'));
  last.set_build_id(std::string(kMaxBuildIdBytes, 'b'));
  EXPECT_FALSE(check_untrusted_modules(long_names).has_value());
  last.set_path(std::string(kMaxPathBytes + 1, 'p'));
  EXPECT_THAT(check_untrusted_modules(long_names)->reason, HasSubstr("path or build id"));
  last.set_path("");
  last.set_build_id(std::string(kMaxBuildIdBytes + 1, 'b'));
  EXPECT_TRUE(check_untrusted_modules(long_names).has_value());
}

TEST(LoadedModulesTest, LaterOneOfTheSameIdReplacesIt) {
  LoadedModules modules;
  modules.add(infos(7, 2, "/bin/a"));
  modules.add(infos(8, 1, "/bin/b"));
  const auto all = modules.all();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].path, "/bin/a");
  EXPECT_EQ(all[1].path, "/bin/b");
}

TEST(LoadedModulesTest, SoManyAreKept) {
  LoadedModules modules;
  modules.add(infos(1, storage::kMaxModules, "/bin/a"));
  modules.add(infos(storage::kMaxModules + 1, 1, "/bin/one too many"));
  modules.add(infos(5, 1, "/bin/known"));
  const auto all = modules.all();
  ASSERT_EQ(all.size(), storage::kMaxModules);
  EXPECT_EQ(all.back().module_id, storage::kMaxModules);
  EXPECT_EQ(all[4].path, "/bin/known") << "of one that is known the last word counts";
}

TEST(LoadedModulesTest, BeforeARecordingTheyAreCharged) {
  principal::BudgetLimits limits;
  limits[Resource::kMemory].total = 4'000;
  principal::Budget budget(limits);
  const auto account = budget.account(principal::Principal::of_uid(1000));
  const auto some = infos(1, 2, "/bin/a");
  const uint64_t bytes = memory_of(some);
  EXPECT_EQ(bytes, 2 * 2 * (sizeof(storage::ModuleInfo) + 6));

  LoadedModules modules;
  EXPECT_FALSE(modules.add_early(some, account).has_value());
  EXPECT_FALSE(modules.add_early(some, account).has_value());
  EXPECT_EQ(account->used(Resource::kMemory), 2 * bytes) << "each time, though they are the same";
  const Verdict refused = modules.add_early(infos(9, 100, "/bin/b"), account);
  ASSERT_TRUE(refused.has_value());
  EXPECT_EQ(refused->code, wire::REFUSE_LIMIT);
  EXPECT_TRUE(refused->retry);
  EXPECT_EQ(modules.all().size(), 2u) << "nothing of them is kept";

  modules.end_connection();
  EXPECT_EQ(account->used(Resource::kMemory), 0u);
  EXPECT_EQ(modules.all().size(), 2u) << "those of the last recording can still be asked for";
  EXPECT_FALSE(modules.add_early(some, account).has_value());
  modules.begin_recording();
  EXPECT_EQ(account->used(Resource::kMemory), 0u);
  EXPECT_THAT(modules.all(), IsEmpty());
}

}  // namespace
}  // namespace collect::ingest

// How many files a session may keep open, and what it is charged for those that it has.
#include "daemon/ingest/session/session_charges.h"

#include <gtest/gtest.h>

#include "daemon/ingest/link/limits.h"
#include "daemon/ingest/session/loaded_modules.h"
#include "storage/model/session_layout.h"

namespace collect::ingest {
namespace {

using principal::Resource;

TEST(SessionChargesTest, ChargesOpenFilesAndFreesThemForOthers) {
  principal::BudgetLimits limits;
  limits[Resource::kDescriptors].total = 400;
  principal::Budget budget(limits);
  const auto account = budget.account(principal::Principal::of_uid(1000));
  principal::Lease session(account, Resource::kSessions);
  session.set(1);
  SessionCharges charges(account);
  EXPECT_EQ(charges.open_files(), 300u) << "three quarters of what is free";
  EXPECT_FALSE(charges.over_limit());

  charges.hold_open_files(300);
  EXPECT_EQ(account->used(Resource::kDescriptors), 300u);
  EXPECT_EQ(charges.open_files(), 300u) << "its own files are no reason to close them";
  EXPECT_FALSE(charges.over_limit());
  charges.hold_open_files(301);
  EXPECT_TRUE(charges.over_limit());
  charges.hold_open_files(200);
  EXPECT_EQ(account->used(Resource::kDescriptors), 200u);
  EXPECT_FALSE(charges.over_limit());

  // Another principal takes what is free: less is left for this one.
  principal::Lease other(budget.account(principal::Principal::of_uid(1001)),
                         Resource::kDescriptors);
  other.set(200);
  EXPECT_EQ(charges.open_files(), 150u);
  EXPECT_TRUE(charges.over_limit());
  // However scarce they are, one thread's files may stay open.
  charges.hold_open_files(0);
  other.set(400);
  EXPECT_EQ(charges.open_files(), kLeastOpenFiles);
}

TEST(SessionChargesTest, ThreadsAndModulesAreChargedUntilTheRelease) {
  principal::BudgetLimits limits;
  limits[Resource::kMemory].total = 4 * (4 * kStreamMemory) / 3;  // one may have three quarters
  limits[Resource::kInodes].total = 1'000;
  principal::Budget budget(limits);
  const auto account = budget.account(principal::Principal::of_uid(1000));
  const std::vector<storage::ModuleInfo> modules(3);
  SessionCharges charges(account);
  EXPECT_TRUE(charges.charge_thread().ok());
  EXPECT_TRUE(charges.charge_modules(modules).ok());
  EXPECT_EQ(account->used(Resource::kMemory), kStreamMemory + memory_of(modules));
  EXPECT_EQ(account->used(Resource::kInodes), storage::kFilesPerThread);
  // A resumed session has them, whether there is room or not.
  charges.hold_threads(5);
  EXPECT_EQ(account->used(Resource::kMemory), 5 * kStreamMemory + memory_of(modules));
  EXPECT_EQ(account->used(Resource::kInodes), 5 * storage::kFilesPerThread);
  charges.hold_threads(2);
  EXPECT_EQ(account->used(Resource::kInodes), 5 * storage::kFilesPerThread);
  EXPECT_EQ(charges.charge_thread().code(), Code::kExhausted);
  EXPECT_EQ(charges.charge_modules(modules).code(), Code::kExhausted);
  charges.release();
  EXPECT_EQ(account->used(Resource::kMemory), 0u);
  EXPECT_EQ(account->used(Resource::kInodes), 0u);
}

// What was written too much is waited for; a quarter of what the records take is given back.
TEST(SessionChargesTest, ManifestsArePacedBesideTheRecords) {
  principal::BudgetLimits limits;
  limits.manifest_bytes = {1, 1'000};  // a byte in a second
  principal::Budget budget(limits);
  const auto account = budget.account(principal::Principal::of_uid(1000));
  SessionCharges charges(account);
  SessionCharges another(account);
  EXPECT_EQ(charges.manifest_wait_ns(), 0u);
  charges.manifest_written(1'000'000);
  EXPECT_GT(charges.manifest_wait_ns(), 500'000'000'000'000u);
  EXPECT_GT(another.manifest_wait_ns(), 500'000'000'000'000u) << "it is the principal's pace";
  charges.data_written(4'000'000);
  EXPECT_EQ(charges.manifest_wait_ns(), 0u);
}

}  // namespace
}  // namespace collect::ingest

// How many files a session may keep open, and what it is charged for those that it has.
#include "daemon/ingest/session/session_charges.h"

#include <gtest/gtest.h>

#include "daemon/ingest/link/limits.h"

namespace collect::ingest {
namespace {

using principal::Resource;

TEST(SessionChargesTest, OpenFilesAreChargedAndOverTheLimitWhenOthersNeedThem) {
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

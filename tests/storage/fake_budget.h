// What the machine leaves to a session, as a test wants it.
#pragma once

#include "storage/session/session_budget.h"

namespace collect::storage::test {

class FakeBudget final : public SessionBudget {
 public:
  size_t limit = 1000;
  size_t held = 0;
  size_t open_files() const override { return limit; }
  void hold_open_files(size_t count) override { held = count; }
  uint64_t manifest_wait_ns() const override { return 0; }
  void manifest_written(uint64_t bytes) override { written += bytes; }
  void data_written(uint64_t) override {}
  uint64_t written = 0;
};

}  // namespace collect::storage::test

// What one session takes of the machine while it is stored, charged to the account of its
// principal.
//
// Used on the session's storage thread; over_limit() and the account behind it from any.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "daemon/principal/budget.h"
#include "storage/model/session_types.h"
#include "storage/session/session_budget.h"

namespace collect::ingest {

class SessionCharges final : public storage::SessionBudget {
 public:
  explicit SessionCharges(std::shared_ptr<principal::Account> account);

  size_t open_files() const override;
  void hold_open_files(size_t count) override;
  uint64_t manifest_wait_ns() const override;
  void manifest_written(uint64_t bytes) override { account_->count_manifest(bytes); }
  void data_written(uint64_t bytes) override { account_->count_data(bytes); }

  // A thread that the session does not have yet; modules. An error: the principal has too much.
  Status charge_thread();
  Status charge_modules(const std::vector<storage::ModuleInfo>& modules);
  // It has so many threads, whether there is room for them or not.
  void hold_threads(uint32_t threads);
  // Nothing more is stored: threads and modules are charged no longer.
  void release();

  // Charges the memory that the session takes beside that.
  principal::Lease memory() const { return {account_, principal::Resource::kMemory}; }
  // It keeps more files open than it should by now.
  bool over_limit() const { return held_.load(std::memory_order_relaxed) > open_files(); }
  principal::Account& account() const { return *account_; }

 private:
  const std::shared_ptr<principal::Account> account_;
  principal::Lease descriptors_;
  principal::Lease memory_;
  principal::Lease files_;
  uint32_t threads_ = 0;  // that are charged
  std::atomic<size_t> held_{0};
};

}  // namespace collect::ingest

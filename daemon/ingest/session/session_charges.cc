#include "daemon/ingest/session/session_charges.h"

#include <algorithm>

#include "daemon/ingest/link/limits.h"

namespace collect::ingest {

SessionCharges::SessionCharges(std::shared_ptr<principal::Account> account)
    : account_(std::move(account)), descriptors_(account_, principal::Resource::kDescriptors) {}

size_t SessionCharges::open_files() const {
  return static_cast<size_t>(std::max(account_->open_files_per_session(), kLeastOpenFiles));
}

void SessionCharges::hold_open_files(size_t count) {
  held_.store(count, std::memory_order_relaxed);
  descriptors_.set(count);
}

uint64_t SessionCharges::manifest_wait_ns() const {
  return static_cast<uint64_t>(account_->manifest_wait().count());
}

}  // namespace collect::ingest

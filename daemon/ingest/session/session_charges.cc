#include "daemon/ingest/session/session_charges.h"

#include <algorithm>

#include "daemon/ingest/link/limits.h"
#include "daemon/ingest/session/loaded_modules.h"
#include "storage/model/session_layout.h"

namespace collect::ingest {

SessionCharges::SessionCharges(std::shared_ptr<principal::Account> account)
    : account_(std::move(account)),
      descriptors_(account_, principal::Resource::kDescriptors),
      memory_(account_, principal::Resource::kMemory),
      files_(account_, principal::Resource::kInodes) {}

Status SessionCharges::charge_thread() {
  COLLECT_TRY(memory_.grow(kStreamMemory));
  COLLECT_TRY(files_.grow(storage::kFilesPerThread));
  ++threads_;
  return {};
}

Status SessionCharges::charge_modules(const std::vector<storage::ModuleInfo>& modules) {
  return memory_.grow(memory_of(modules));
}

void SessionCharges::hold_threads(uint32_t threads) {
  if (threads <= threads_) return;
  const uint64_t more = threads - threads_;
  memory_.set(memory_.amount() + more * kStreamMemory);
  files_.set(files_.amount() + more * storage::kFilesPerThread);
  threads_ = threads;
}

void SessionCharges::release() {
  memory_.set(0);
  files_.set(0);
}

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

#include "storage/read/on_demand.h"

#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "storage/read/unnamed_file.h"

namespace collect::read {
namespace {

uint64_t up_to_blocks(uint64_t bytes) {
  return (bytes + kDemandBlockBytes - 1) / kDemandBlockBytes * kDemandBlockBytes;
}

constexpr char kWhat[] = "memory for packed bytes";

// Memory that can be mapped at two places.
Result<Descriptor> shared_memory(uint64_t bytes) {
#ifdef __linux__
  Result<Descriptor> file = Descriptor(::memfd_create("collect on demand", MFD_CLOEXEC));
  if (file->get() < 0) return errno_error(errno, kWhat);
#else
  Result<Descriptor> file = open_unnamed(temporary_directory());
  if (!file.ok()) return file;
#endif
  if (::ftruncate(file->get(), static_cast<off_t>(bytes)) != 0) return errno_error(errno, kWhat);
  return file;
}

size_t blocks_at_once() {
  return std::clamp<size_t>(size_t{2} * std::thread::hardware_concurrency(), kLeastDemandBlocks,
                            kMostDemandBlocks);
}

constexpr std::array kFaults = {SIGSEGV, SIGBUS};

}  // namespace

// The blocks in memory, of all OnDemand objects of the process. Made with the first of them, and
// never destroyed: a fault may come as long as the process lives. Thread-safe.
class DemandCache {
 public:
  static Result<DemandCache*> get();

  void add(OnDemand& bytes);
  void remove(OnDemand& bytes);
  void drop(OnDemand& bytes);

 private:
  struct Slot {
    OnDemand* owner = nullptr;
    uint64_t block = 0;  // of the owner
    bool is_filling = false;
  };

  DemandCache(Descriptor memory, uint8_t* view, size_t blocks)
      : memory_(std::move(memory)), view_(view), slots_(blocks) {}
  static void forget_in_child();
  static void on_fault(int signal, siginfo_t* info, void* context);
  bool serve(const uint8_t* address);
  void release(std::unique_lock<std::mutex>& lock, OnDemand& bytes);
  size_t take_slot(std::unique_lock<std::mutex>& lock);
  Slot* slot_of(const OnDemand& bytes, uint64_t block);
  static void hide(const Slot& slot);

  static inline DemandCache* instance_ = nullptr;
  static inline struct sigaction before_[kFaults.size()];

  const Descriptor memory_;
  uint8_t* const view_;  // of all slots, writable
  std::mutex mutex_;     // guards what follows
  std::condition_variable changed_;
  std::map<const uint8_t*, OnDemand*> owners_;  // by their first byte
  std::vector<Slot> slots_;                     // as many as at first
  size_t next_ = 0;                             // of the slots, to be given to another block
};

Result<DemandCache*> DemandCache::get() {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  if (instance_ != nullptr) return instance_;
  const size_t blocks = blocks_at_once();
  auto memory = shared_memory(blocks * kDemandBlockBytes);
  if (!memory.ok()) return memory.error();
  void* view = ::mmap(nullptr, blocks * kDemandBlockBytes, PROT_READ | PROT_WRITE, MAP_SHARED,
                      memory->get(), 0);
  if (view == MAP_FAILED) return errno_error(errno, kWhat);
  instance_ = new DemandCache(std::move(*memory), static_cast<uint8_t*>(view), blocks);
  struct sigaction action{};
  action.sa_sigaction = &DemandCache::on_fault;
  action.sa_flags = SA_SIGINFO | SA_RESTART;
  for (size_t at = 0; at < kFaults.size(); ++at) ::sigaction(kFaults[at], &action, &before_[at]);
  (void)::pthread_atfork(nullptr, nullptr, &DemandCache::forget_in_child);
  return instance_;
}

// The memory is its parent's, which fills it with something else. A fault is one there.
void DemandCache::forget_in_child() {
  for (const Slot& slot : instance_->slots_) {
    if (slot.owner != nullptr) hide(slot);
  }
  for (size_t at = 0; at < kFaults.size(); ++at) ::sigaction(kFaults[at], &before_[at], nullptr);
}

void DemandCache::on_fault(int signal, siginfo_t* info, void* context) {
  const int before_errno = errno;
  const bool served = instance_->serve(static_cast<const uint8_t*>(info->si_addr));
  errno = before_errno;
  if (served) return;
  const struct sigaction& before = before_[signal == kFaults[0] ? 0 : 1];
  if ((before.sa_flags & SA_SIGINFO) != 0) {
    before.sa_sigaction(signal, info, context);
  } else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) {
    before.sa_handler(signal);
  } else {
    ::sigaction(signal, &before, nullptr);  // the same fault again, then
  }
}

// The slot's bytes are no longer there for its owner's readers.
void DemandCache::hide(const Slot& slot) {
  uint8_t* const at = const_cast<uint8_t*>(slot.owner->at_) + slot.block * kDemandBlockBytes;
  void* const hidden = ::mmap(at, kDemandBlockBytes, PROT_NONE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  COLLECT_CHECK(hidden == at);
}

DemandCache::Slot* DemandCache::slot_of(const OnDemand& bytes, uint64_t block) {
  const auto found = std::ranges::find_if(
      slots_, [&](const Slot& slot) { return slot.owner == &bytes && slot.block == block; });
  return found == slots_.end() ? nullptr : &*found;
}

// One that no one fills, in turn.
size_t DemandCache::take_slot(std::unique_lock<std::mutex>& lock) {
  for (;;) {
    for (size_t tried = 0; tried < slots_.size(); ++tried) {
      const size_t at = std::exchange(next_, (next_ + 1) % slots_.size());
      Slot& slot = slots_[at];
      if (slot.is_filling) continue;
      if (slot.owner != nullptr) hide(slot);
      slot.owner = nullptr;
      return at;
    }
    changed_.wait(lock);
  }
}

bool DemandCache::serve(const uint8_t* address) {
  std::unique_lock lock(mutex_);
  auto found = owners_.upper_bound(address);
  if (found == owners_.begin()) return false;
  OnDemand& owner = *(--found)->second;
  const auto offset = static_cast<uint64_t>(address - owner.at_);
  if (offset >= up_to_blocks(owner.size_)) return false;
  const uint64_t block = offset / kDemandBlockBytes;
  for (;;) {
    const Slot* const there = slot_of(owner, block);
    if (there != nullptr && !there->is_filling) return true;  // another thread was faster
    if (there == nullptr) break;
    changed_.wait(lock);
  }
  const size_t at = take_slot(lock);
  Slot& slot = slots_[at];
  slot = {&owner, block, true};
  ++owner.filling_;
  lock.unlock();
  uint8_t* const view = view_ + at * kDemandBlockBytes;
  const uint64_t begin = block * kDemandBlockBytes;
  const uint64_t bytes = std::min(kDemandBlockBytes, owner.size_ - begin);
  owner.fill_(begin, {view, bytes});
  std::fill(view + bytes, view + kDemandBlockBytes, uint8_t{0});
  lock.lock();
  uint8_t* const place = const_cast<uint8_t*>(owner.at_) + begin;
  void* const shown =
      ::mmap(place, kDemandBlockBytes, PROT_READ, MAP_SHARED | MAP_FIXED | MAP_POPULATE,
             memory_.get(), static_cast<off_t>(at * kDemandBlockBytes));
  COLLECT_CHECK(shown == place);
  slot.is_filling = false;
  --owner.filling_;
  changed_.notify_all();
  return true;
}

void DemandCache::add(OnDemand& bytes) {
  const std::lock_guard lock(mutex_);
  owners_.emplace(bytes.at_, &bytes);
}

void DemandCache::release(std::unique_lock<std::mutex>& lock, OnDemand& bytes) {
  changed_.wait(lock, [&] { return bytes.filling_ == 0; });
  for (Slot& slot : slots_) {
    if (slot.owner != &bytes) continue;
    hide(slot);
    slot.owner = nullptr;
  }
}

void DemandCache::drop(OnDemand& bytes) {
  std::unique_lock lock(mutex_);
  release(lock, bytes);
}

void DemandCache::remove(OnDemand& bytes) {
  std::unique_lock lock(mutex_);
  release(lock, bytes);
  owners_.erase(bytes.at_);
}

Result<std::unique_ptr<OnDemand>> OnDemand::create(uint64_t size, Fill fill) {
  auto cache = DemandCache::get();
  if (!cache.ok()) return cache.error();
  void* const at = ::mmap(nullptr, up_to_blocks(size), PROT_NONE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) return errno_error(errno, "addresses for packed bytes");
  std::unique_ptr<OnDemand> made(
      new OnDemand(static_cast<const uint8_t*>(at), size, std::move(fill)));
  (*cache)->add(*made);
  return made;
}

OnDemand::~OnDemand() {
  (*DemandCache::get())->remove(*this);
  ::munmap(const_cast<uint8_t*>(at_), up_to_blocks(size_));
}

void OnDemand::drop() {
  (*DemandCache::get())->drop(*this);
}

}  // namespace collect::read

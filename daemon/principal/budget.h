// What the daemon has, and who uses how much of it. Every principal (principal.h) has an account;
// what a connection or a session takes is charged to it, by a lease that gives it back.
//
//   Budget ── Account (uid 1000) ── Lease connections 1, Lease sessions 1, Lease memory 81,920 …
//          ── Account (192.0.2.7) ── …
//
// The rule is one for every resource: a principal may have kShareOfFree times what is left free. So
// one alone gets three quarters, two get three sevenths each, and there is always something for the
// next; a principal that uses little is refused nothing because of one that uses much.
//
// Everything here is thread-safe. Counting takes no lock.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "daemon/principal/principal.h"
#include "daemon/principal/token_bucket.h"
#include "formats/core/result.h"

namespace collect::principal {

enum class Resource : uint8_t {
  kDescriptors,  // of connections and session files
  kMemory,       // bytes that streams, modules and sessions keep for as long as they are open
  kInodes,       // of sessions that are not sealed
  kSessions,     // not sealed
  kConnections,
};
inline constexpr size_t kResources = 5;
const char* resource_name(Resource resource);

// "uid 1000", "address 192.0.2.7", "certificate 3f…", "this machine".
std::string to_string(const Principal& principal);

inline constexpr uint64_t kShareOfFree = 3;
// An account that no one uses is kept for this long, so that its rates are not forgotten with a
// connection; and of so many at most.
inline constexpr std::chrono::seconds kKeepAccount{60};
inline constexpr size_t kMaxIdleAccounts = 1'024;

struct BudgetLimits {
  struct Limit {
    uint64_t total = UINT64_MAX;
    // Everybody may have this much while there is any: what one agent needs at least.
    uint64_t least = 0;
    std::string setting{};  // what a user changes to have more; empty: nothing
  };
  std::array<Limit, kResources> of;
  Rate stream_opens;    // of one principal
  Rate manifest_bytes;  // of one principal

  Limit& operator[](Resource resource) { return of[static_cast<size_t>(resource)]; }
  const Limit& operator[](Resource resource) const { return of[static_cast<size_t>(resource)]; }
};

class Account;

class Budget {
 public:
  explicit Budget(BudgetLimits limits);

  // The account of the principal, the same for all of its connections.
  std::shared_ptr<Account> account(
      const Principal& principal,
      std::chrono::steady_clock::time_point now = std::chrono::steady_clock::now());
  uint64_t used(Resource resource) const { return used_[static_cast<size_t>(resource)].load(); }
  const BudgetLimits& limits() const { return limits_; }
  size_t accounts() const;

 private:
  friend class Account;
  void forget_idle(std::chrono::steady_clock::time_point now);

  const BudgetLimits limits_;
  std::array<std::atomic<uint64_t>, kResources> used_{};
  mutable std::mutex mutex_;
  struct Entry {
    std::shared_ptr<Account> account;
    std::chrono::steady_clock::time_point asked_at;
  };
  std::map<Principal, Entry> accounts_;                  // guarded by mutex_
  std::chrono::steady_clock::time_point last_forget_{};  // guarded by mutex_
};

class Account {
 public:
  Account(Budget& budget, Principal principal);

  const Principal& principal() const { return principal_; }
  uint64_t used(Resource resource) const { return used_[static_cast<size_t>(resource)].load(); }

  // kExhausted, and nothing is charged: over budget. The sentence names resource, limit and
  // principal.
  Status take(Resource resource, uint64_t amount);
  // What can't be refused any more is charged all the same.
  void charge(Resource resource, uint64_t amount);
  void give_back(Resource resource, uint64_t amount);
  // Whether more is to be taken now: for what waits instead of being refused.
  bool has_room(Resource resource) const;

  // Descriptors for each of the principal's sessions.
  uint64_t open_files_per_session() const;

  // Counted at once; afterwards, how long to wait before the next.
  void count_stream_open();
  std::chrono::nanoseconds stream_open_wait();
  void count_manifest(uint64_t bytes);
  void count_data(uint64_t bytes);
  std::chrono::nanoseconds manifest_wait();

 private:
  std::string refusal(Resource resource, uint64_t amount) const;

  Budget& budget_;
  const Principal principal_;
  std::array<std::atomic<uint64_t>, kResources> used_{};
  std::mutex rates_mutex_;
  TokenBucket stream_opens_;    // guarded by rates_mutex_
  TokenBucket manifest_bytes_;  // guarded by rates_mutex_
};

// So much of one resource, until it goes. Movable; one thread at a time.
class Lease {
 public:
  Lease() = default;
  Lease(std::shared_ptr<Account> account, Resource resource)
      : account_(std::move(account)), resource_(resource) {}
  ~Lease() { set(0); }
  Lease(Lease&& other) noexcept;
  Lease& operator=(Lease&& other) noexcept;

  // kExhausted: over budget, and it is what it was. See Account::take().
  Status grow(uint64_t amount);
  // What it is from now on, refused or not.
  void set(uint64_t amount);
  uint64_t amount() const { return amount_; }

 private:
  std::shared_ptr<Account> account_;
  Resource resource_{};
  uint64_t amount_ = 0;
};

}  // namespace collect::principal

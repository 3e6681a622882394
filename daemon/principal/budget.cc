#include "daemon/principal/budget.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace collect::principal {
namespace {

using Clock = std::chrono::steady_clock;

size_t index_of(Resource resource) {
  return static_cast<size_t>(resource);
}

}  // namespace

const char* resource_name(Resource resource) {
  switch (resource) {
    case Resource::kDescriptors:
      return "descriptors";
    case Resource::kMemory:
      return "bytes of memory";
    case Resource::kInodes:
      return "files of unsealed sessions";
    case Resource::kSessions:
      return "unsealed sessions";
    case Resource::kConnections:
      return "connections";
  }
  return "unknown";
}

std::string to_string(const Principal& principal) {
  switch (principal.kind) {
    case Principal::Kind::kAddress:
      return "address " + principal.id;
    case Principal::Kind::kUid:
      return "uid " + principal.id;
    case Principal::Kind::kCertificate:
      return "certificate " + principal.id;
    case Principal::Kind::kUnknown:
      break;
  }
  return "this machine";
}

// ---- Budget

Budget::Budget(BudgetLimits limits) : limits_(std::move(limits)) {}

std::shared_ptr<Account> Budget::account(const Principal& principal, Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  forget_idle(now);
  Entry& entry = accounts_[principal];
  if (!entry.account) entry.account = std::make_shared<Account>(*this, principal);
  entry.asked_at = now;
  return entry.account;
}

size_t Budget::accounts() const {
  const std::lock_guard lock(mutex_);
  return accounts_.size();
}

// With mutex_ held, so that no one gets a new share of an account meanwhile. Looks through them at
// most once a second, or when there are too many.
void Budget::forget_idle(Clock::time_point now) {
  const bool many = accounts_.size() >= kMaxIdleAccounts;
  if (now - last_forget_ < std::chrono::seconds{1} && !many) return;
  last_forget_ = now;
  std::erase_if(accounts_, [&](const auto& one) {
    const Entry& entry = one.second;
    return entry.account.use_count() == 1 && (many || now - entry.asked_at > kKeepAccount);
  });
}

// ---- Account

Account::Account(Budget& budget, Principal principal)
    : budget_(budget),
      principal_(std::move(principal)),
      stream_opens_(budget.limits_.stream_opens, Clock::now()),
      manifest_bytes_(budget.limits_.manifest_bytes, Clock::now()) {}

// Charged first and looked at afterwards: of two that come at once and have room for one, both may
// be refused, but never both served.
Status Account::take(Resource resource, uint64_t amount) {
  const BudgetLimits::Limit& limit = budget_.limits_[resource];
  const size_t at = index_of(resource);
  const uint64_t all = budget_.used_[at].fetch_add(amount) + amount;
  const uint64_t own = used_[at].fetch_add(amount) + amount;
  const uint64_t free = limit.total - std::min(limit.total, all);
  const bool in_share = own <= limit.least || own / kShareOfFree <= free;
  if (all <= limit.total && in_share) return {};
  give_back(resource, amount);
  return Error{Code::kExhausted, refusal(resource, amount)};
}

void Account::charge(Resource resource, uint64_t amount) {
  budget_.used_[index_of(resource)].fetch_add(amount);
  used_[index_of(resource)].fetch_add(amount);
}

void Account::give_back(Resource resource, uint64_t amount) {
  budget_.used_[index_of(resource)].fetch_sub(amount);
  used_[index_of(resource)].fetch_sub(amount);
}

bool Account::has_room(Resource resource) const {
  const BudgetLimits::Limit& limit = budget_.limits_[resource];
  const uint64_t all = budget_.used(resource);
  const uint64_t own = used(resource);
  if (own < limit.least) return true;
  return own / kShareOfFree < limit.total - std::min(limit.total, all);
}

std::string Account::refusal(Resource resource, uint64_t amount) const {
  const BudgetLimits::Limit& limit = budget_.limits_[resource];
  const uint64_t all = std::min(budget_.used(resource), limit.total);
  std::string text = fmt::format(
      "too many {}: {} has {} and wants {}, {} of {} are free, and one may have {} times what is "
      "free",
      resource_name(resource), to_string(principal_), used(resource), amount, limit.total - all,
      limit.total, kShareOfFree);
  if (!limit.setting.empty()) text += fmt::format(" ({})", limit.setting);
  return text;
}

uint64_t Account::open_files_per_session() const {
  const BudgetLimits::Limit& limit = budget_.limits_[Resource::kDescriptors];
  const uint64_t all = std::min(budget_.used(Resource::kDescriptors), limit.total);
  const uint64_t connections = used(Resource::kConnections);
  const uint64_t own = used(Resource::kDescriptors);
  const uint64_t files = own - std::min(own, connections);
  const uint64_t share = (limit.total - all + files) / (kShareOfFree + 1) * kShareOfFree;
  return share / std::max<uint64_t>(used(Resource::kSessions), 1);
}

void Account::count_stream_open() {
  const std::lock_guard lock(rates_mutex_);
  stream_opens_.take(1, Clock::now());
}

std::chrono::nanoseconds Account::stream_open_wait() {
  const std::lock_guard lock(rates_mutex_);
  return stream_opens_.wait(Clock::now());
}

void Account::count_manifest(uint64_t bytes) {
  const std::lock_guard lock(rates_mutex_);
  manifest_bytes_.take(static_cast<double>(bytes), Clock::now());
}

void Account::count_data(uint64_t bytes) {
  const std::lock_guard lock(rates_mutex_);
  manifest_bytes_.give(static_cast<double>(bytes) / 4);
}

std::chrono::nanoseconds Account::manifest_wait() {
  const std::lock_guard lock(rates_mutex_);
  return manifest_bytes_.wait(Clock::now());
}

// ---- Lease

Lease::Lease(Lease&& other) noexcept
    : account_(std::move(other.account_)),
      resource_(other.resource_),
      amount_(std::exchange(other.amount_, 0)) {}

Lease& Lease::operator=(Lease&& other) noexcept {
  if (this == &other) return *this;
  set(0);
  account_ = std::move(other.account_);
  resource_ = other.resource_;
  amount_ = std::exchange(other.amount_, 0);
  return *this;
}

Status Lease::grow(uint64_t amount) {
  if (!account_) return {};
  COLLECT_TRY(account_->take(resource_, amount));
  amount_ += amount;
  return {};
}

void Lease::set(uint64_t amount) {
  if (!account_) return;
  if (amount > amount_) account_->charge(resource_, amount - amount_);
  if (amount < amount_) account_->give_back(resource_, amount_ - amount);
  amount_ = amount;
}

}  // namespace collect::principal

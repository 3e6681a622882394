#include "agent/drain/link/collector_list.h"

#include <cstring>

namespace collect::agent {
namespace {

// The last list that was resolved, so that a forked child, which may start in the middle of
// anything, does not have to ask the system's resolver. Used by the thread that starts the agent.
char g_resolved_text[kMaxConnect];
CollectorList g_resolved;

uint32_t entries_of(const char* text) {
  uint32_t entries = 1;
  for (; *text != '\0'; ++text) entries += *text == ',' ? 1 : 0;
  return entries;
}

}  // namespace

const char* CollectorList::prepare(const char* text) {
  if (std::strcmp(g_resolved_text, text) == 0 && g_resolved.size_ != 0) {
    *this = g_resolved;
    return nullptr;
  }
  size_ = entry_ = address_ = addresses_.count = 0;
  const uint32_t entries = entries_of(text);
  if (entries > kMaxCollectors) return "a list has at most 8 collectors";
  const char* unknown = nullptr;
  for (const char* begin = text; begin != nullptr;) {
    while (*begin == ' ') ++begin;
    const char* const comma = std::strchr(begin, ',');
    const size_t bytes = comma == nullptr ? std::strlen(begin) : static_cast<size_t>(comma - begin);
    if (bytes >= kMaxAddress) return "an address of a collector is too long";
    char address[kMaxAddress] = {};
    std::memcpy(address, begin, bytes);
    begin = comma == nullptr ? nullptr : comma + 1;
    const char* const error = add(address, kMaxAddresses / entries);
    if (is_unknown_name(error)) {
      unknown = error;
    } else if (error != nullptr) {
      return error;
    }
  }
  if (size_ == 0) return unknown;
  std::memcpy(g_resolved_text, text, std::strlen(text) + 1);
  g_resolved = *this;
  return nullptr;
}

const char* CollectorList::add(const char* text, uint32_t most_addresses) {
  Entry& entry = entries_[size_];
  entry = Entry{};
  std::memcpy(entry.text, text, std::strlen(text) + 1);
  entry.tls = is_tls(text);
  if (entry.tls) {
    char host[kMaxAddress];
    const char* const error = host_of_tls(text, host);
    if (error != nullptr) return error;
  }
  AddressList found;
  const char* const error = resolve_connect(after_tls(text), found);
  if (error != nullptr) return error;
  entry.first_address = addresses_.count;
  entry.addresses = found.count < most_addresses ? found.count : most_addresses;
  for (uint32_t i = 0; i < entry.addresses; ++i) {
    addresses_.items[addresses_.count++] = found.items[i];
  }
  ++size_;
  return nullptr;
}

bool CollectorList::any_wants_tls() const {
  for (uint32_t i = 0; i < size_; ++i) {
    if (entries_[i].tls) return true;
  }
  return false;
}

bool CollectorList::go_to(uint32_t entry) {
  const bool is_round_over = entry <= entry_;
  entry_ = entry;
  address_ = entries_[entry].first_address;
  return is_round_over;
}

bool CollectorList::try_next_address() {
  ++address_;
  if (address_ < entry().first_address + entry().addresses) return false;
  if (try_next_collector()) {
    address_ = entry().first_address;
    return true;
  }
  return false;
}

bool CollectorList::try_next_collector() {
  for (uint32_t step = 1; step <= size_; ++step) {
    const uint32_t next = (entry_ + step) % size_;
    if (entries_[next].refused) continue;
    return next == entry_ || go_to(next);
  }
  return true;
}

bool CollectorList::is_hopeless() const {
  for (uint32_t i = 0; i < size_; ++i) {
    if (!entries_[i].refused && !entries_[i].left) return false;
  }
  return true;
}

}  // namespace collect::agent

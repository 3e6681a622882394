// The collectors that an agent may connect to, in the order of COLLECT_CONNECT, and which of their
// addresses is tried next. It stays at one as long as that one is there, and continues to the next
// when it is gone. Drain thread only, but for prepare(). Nothing allocates.
#pragma once

#include <cstdint>

#include "agent/settings.h"
#include "agent/transport/address.h"

namespace collect::agent {

inline constexpr uint32_t kMaxCollectors = 8;

class CollectorList {
 public:
  // "ADDRESS[,ADDRESS…]", each with "tls://" before it or not, and with spaces behind a comma.
  // Resolves the names: of several, one that is not known now is left out. Null, or a static
  // sentence. On the thread that starts the agent; a forked child of it takes what its parent
  // resolved.
  const char* prepare(const char* text);

  const Address& address() const { return addresses_.items[address_]; }
  // The text from which the current address was made.
  const char* text() const { return entry().text; }
  bool wants_tls() const { return entry().tls; }
  bool any_wants_tls() const;
  uint32_t size() const { return size_; }

  // The address is of no use now. True: that was the last one, and it is time for a pause.
  bool try_next_address();
  // No address of this collector is of use now. A collector that is alone is tried again where it
  // was.
  bool try_next_collector();

  // What became of the collector that is tried now.
  void came_up() { entry().left = false; }
  // It wants this agent never again: none of its addresses is tried any more.
  void refused_for_good() { entry().refused = true; }
  // It stopped for good. It is tried again in its turn, but not waited for.
  void left_for_good() { entry().left = true; }
  // Each of them has refused for good or left for good.
  bool is_hopeless() const;

 private:
  struct Entry {
    char text[kMaxAddress];
    uint32_t first_address;
    uint32_t addresses;
    bool tls;
    bool refused;
    bool left;
  };

  const char* add(const char* text, uint32_t most_addresses);
  bool go_to(uint32_t entry);
  Entry& entry() { return entries_[entry_]; }
  const Entry& entry() const { return entries_[entry_]; }

  uint32_t size_ = 0;
  uint32_t entry_ = 0;    // that is tried now
  uint32_t address_ = 0;  // of it
  Entry entries_[kMaxCollectors];
  AddressList addresses_;
};

}  // namespace collect::agent

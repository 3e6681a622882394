// What one session may take of the machine. The daemon's accounts implement it; sessions without
// one (offline commands, tests) have their own limits alone.
//
// Called on the session's storage thread; the accounts behind it are shared by threads.
#pragma once

#include <cstddef>
#include <cstdint>

namespace collect::storage {

class SessionBudget {
 public:
  virtual ~SessionBudget() = default;
  // How many files the session may keep open from one call to the next. Changes with what others
  // need; never below what one thread needs.
  virtual size_t open_files() const = 0;
  // So many are open now.
  virtual void hold_open_files(size_t count) = 0;
  // How long the next manifest waits, because of what others of the same principal have written; 0:
  // not at all.
  virtual uint64_t manifest_wait_ns() const = 0;
  virtual void manifest_written(uint64_t bytes) = 0;
  virtual void data_written(uint64_t bytes) = 0;
};

}  // namespace collect::storage

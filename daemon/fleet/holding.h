// What a collector has now, as the fleet is to know it. Plain values; the texts are printable
// (formats/core/printable.h): PostgreSQL takes no zero bytes and nothing that is not UTF-8.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace collect::fleet {

// Which run of which collector, and where it is.
struct Self {
  std::string collector;  // the root's id, 32 hex digits
  uint64_t epoch = 0;     // another one at each start
  std::string control_address;
  std::string host_name;
  std::string version;
};

// A device, or a process on one.
struct Holding {
  std::string key;  // "device/<serial>", "process/<32 hex digits>"
  std::string device;
  std::string device_id;
  std::string device_model;
  std::string process_name;
  std::string agent;
  uint32_t pid = 0;
  // Another one when it has come again: then it is taken over from whoever has it.
  uint64_t arrival = 0;

  bool operator==(const Holding&) const = default;
};

struct Holdings {
  std::vector<Holding> all;  // keys differ
  uint32_t agents = 0;       // that are there now
  uint32_t sessions = 0;     // that are not sealed

  bool operator==(const Holdings&) const = default;
};

}  // namespace collect::fleet

// The event types that a file has defined so far, by wire id. One thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "formats/wtf/binary/event_types.h"
#include "formats/wtf/finding.h"

namespace collect::wtf {

struct Definition {
  uint32_t wire_id = 0;  // uint16 in the file
  uint16_t event_class = kClassInstance;
  uint32_t flags = 0;
  std::string_view name;
  std::string_view signature;
};

class TypeTable {
 public:
  TypeTable();  // knows wtf.event#define
  TypeTable(const TypeTable&) = delete;
  TypeTable& operator=(const TypeTable&) = delete;
  TypeTable(TypeTable&&) = default;
  TypeTable& operator=(TypeTable&&) = default;

  // Null when undefined. The pointer is valid as long as the table, also when more is defined.
  const EventType* find(uint32_t wire_id) const {
    return wire_id < by_wire_id_.size() ? by_wire_id_[wire_id] : nullptr;
  }

  // The first type defined with that name, if its wire id still means it; else null.
  const EventType* find_name(std::string_view name) const {
    const auto known = first_of_name_.find(name);
    if (known == first_of_name_.end() || find(known->second->wire_id) != known->second)
      return nullptr;
    return known->second;
  }

  // Takes a definition that is at `offset`. Each wire id keeps its own signature, also where a
  // name is defined twice, which the published viewer misreads. What cannot be taken is a finding;
  // the wire id is undefined then, as its events have no known length.
  void define(const Definition& definition, uint64_t offset, Findings& findings);

  // In the order of definition, EventType::index; redefined ones included.
  const std::vector<std::unique_ptr<EventType>>& all() const { return types_; }

 private:
  void remark(const EventType& type, bool odd_names, uint64_t offset, Findings& findings);

  std::vector<std::unique_ptr<EventType>> types_;
  std::vector<const EventType*> by_wire_id_;
  std::unordered_map<std::string_view, const EventType*> first_of_name_;  // keys are in types_
  size_t bytes_ = 0;
};

}  // namespace collect::wtf

// Counts the events of one zone for a ZoneReport.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "formats/wtf/binary/event.h"
#include "formats/wtf/binary/type_table.h"
#include "formats/wtf/zone_report.h"

namespace collect::wtf {

// What all zones of a file may keep together.
struct TallyBudget {
  size_t names = kMaxCountedNames;
  size_t spans = kMaxCountedSpans;
  bool is_exceeded = false;  // something was not counted
};

// +1 for a scope's begin, -1 for its end, 0 for all other events.
int scope_step(const EventType& type);
// The name that the viewer lists: of scope#enter and timeStamp events their argument's, without
// spaces.
std::string listed_name(const Event& event);

class ZoneTally {
 public:
  void add(const Event& event, TallyBudget& budget);
  // Puts the counts together. Scopes and their depth are right only for zones in order; for the
  // others forget_scopes() and step() come first.
  void finish(const TypeTable& types, ZoneReport& report) const;

  bool in_order() const { return report_.backward_steps == 0; }
  void forget_scopes();
  void step(int scope_step);  // events in time order

  bool frame_at_zero() const { return frame_at_zero_; }
  const std::unordered_map<std::string, uint64_t>& own_names() const { return names_; }

 private:
  void add_name(const Event& event, TallyBudget& budget);
  void add_span(const Event& event, TallyBudget& budget);

  struct Frame {
    uint32_t start_us = 0;
    uint32_t end_us = 0;
  };

  ZoneReport report_;
  uint64_t depth_ = 0;
  uint32_t last_us_ = 0;
  bool frame_at_zero_ = false;
  std::unordered_map<uint32_t, uint64_t> types_;     // EventType::index to events
  std::unordered_map<std::string, uint64_t> names_;  // listed_name() of scope#enter, timeStamp
  std::unordered_map<uint32_t, Frame> frames_;       // by number
  std::unordered_set<uint32_t> ranges_;              // ids
};

}  // namespace collect::wtf

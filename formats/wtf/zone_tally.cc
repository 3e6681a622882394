#include "formats/wtf/zone_tally.h"

#include <algorithm>
#include <map>

namespace collect::wtf {

int scope_step(const EventType& type) {
  if (type.role == Role::kScopeLeave) return -1;
  return type.is_scope() ? 1 : 0;
}

std::string listed_name(const Event& event) {
  const bool scope = event.type->role == Role::kScopeEnter;
  if (!scope && event.type->role != Role::kTimeStamp) return event.type->name;
  Value value;
  Arguments walk = event.arguments();
  walk.next(value);
  std::string name = value.utf8();
  if (name.empty()) return scope ? "unnamed.scope" : "unnamed.instance";
  name.erase(std::remove(name.begin(), name.end(), ' '), name.end());
  return name;
}

void ZoneTally::add(const Event& event, TallyBudget& budget) {
  const uint32_t us = event.time_us;
  if (report_.events != 0 && us < last_us_) ++report_.backward_steps;
  last_us_ = us;
  ++report_.events;
  report_.first_us = std::min(report_.first_us.value_or(us), us);
  report_.last_us = std::max(report_.last_us.value_or(us), us);
  step(scope_step(*event.type));
  add_name(event, budget);
  add_span(event, budget);
}

void ZoneTally::add_name(const Event& event, TallyBudget& budget) {
  const Role role = event.type->role;
  if (role == Role::kScopeEnter || role == Role::kTimeStamp) {
    std::string name = listed_name(event);
    const auto known = names_.find(name);
    if (known != names_.end()) {
      ++known->second;
    } else if (budget.names != 0) {
      --budget.names;
      names_.emplace(std::move(name), 1);
    } else {
      budget.is_exceeded = true;
    }
    return;
  }
  const auto known = types_.find(event.type->index);
  if (known != types_.end()) {
    ++known->second;
  } else if (budget.names != 0) {
    --budget.names;
    types_.emplace(event.type->index, 1);
  } else {
    budget.is_exceeded = true;
  }
}

void ZoneTally::add_span(const Event& event, TallyBudget& budget) {
  const Role role = event.type->role;
  if (role == Role::kMark) ++report_.marks;
  const bool frame = role == Role::kFrameStart || role == Role::kFrameEnd;
  const bool range = role == Role::kRangeBegin || role == Role::kRangeEnd;
  if (!frame && !range) return;
  Value value;
  Arguments walk = event.arguments();
  walk.next(value);
  const auto id = static_cast<uint32_t>(value.integer());
  const bool is_new = frame ? frames_.count(id) == 0 : ranges_.count(id) == 0;
  if (is_new && budget.spans == 0) {
    budget.is_exceeded = true;
    return;
  }
  if (is_new) --budget.spans;
  if (range) {
    ranges_.insert(id);
    return;
  }
  if (role == Role::kFrameStart) {
    frames_[id].start_us = event.time_us;
    frame_at_zero_ = frame_at_zero_ || event.time_us == 0;
  } else {
    frames_[id].end_us = event.time_us;
  }
}

void ZoneTally::forget_scopes() {
  depth_ = 0;
  report_.scopes = 0;
  report_.max_scope_depth = 0;
  report_.unmatched_leaves = 0;
}

void ZoneTally::step(int scope_step) {
  if (scope_step > 0) {
    ++depth_;
    report_.max_scope_depth = std::max(report_.max_scope_depth, depth_);
  } else if (scope_step < 0) {
    if (depth_ == 0) {
      ++report_.unmatched_leaves;
    } else {
      --depth_;
      ++report_.scopes;
    }
  }
}

void ZoneTally::finish(const TypeTable& types, ZoneReport& report) const {
  auto name = std::move(report.name);
  auto type = std::move(report.type);
  auto location = std::move(report.location);
  report = report_;
  report.name = std::move(name);
  report.type = std::move(type);
  report.location = std::move(location);
  report.open_scopes = depth_;
  std::map<std::string_view, uint64_t> counts;  // in the order of names
  for (const auto& [index, count] : types_) counts[types.all()[index]->name] += count;
  for (const auto& [text, count] : names_) counts[text] += count;
  report.distinct_names = counts.size();
  std::vector<std::pair<std::string_view, uint64_t>> sorted(counts.begin(), counts.end());
  const size_t top = std::min(kMostFrequent, sorted.size());
  std::partial_sort(sorted.begin(), sorted.begin() + static_cast<ptrdiff_t>(top), sorted.end(),
                    [](const auto& a, const auto& b) {
                      return a.second != b.second ? a.second > b.second : a.first < b.first;
                    });
  for (size_t i = 0; i < top; ++i) {
    report.most_frequent.emplace_back(safe_text(sorted[i].first), sorted[i].second);
  }
  for (const auto& [number, frame] : frames_) {
    if (frame.start_us != 0 && frame.end_us != 0) ++report.frames;
  }
  report.time_ranges = ranges_.size();
}

}  // namespace collect::wtf

#include "formats/rtc/meta/stream_table.h"

namespace collect::rtc {

const ClockState* root_of(const ClockState* clock) {
  for (size_t depth = 1; clock != nullptr && clock->base != nullptr && depth < kMaxStreams;
       ++depth) {
    clock = clock->base;
  }
  return clock;
}

bool has_epoch(const ClockState* clock) {
  const ClockState* root = root_of(clock);
  return root != nullptr && root->base == nullptr && root->info != nullptr &&
         (root->info->format.kind == FormatKind::kTimespec || root->info->offset.has_value());
}

StreamState* StreamTable::add(StreamInfo info) {
  const uint64_t id = info.id;
  auto found = states_.find(id);
  if (found == states_.end()) {
    if (states_.size() >= kMaxStreams) return nullptr;
    found = states_.emplace(id, std::make_unique<StreamState>()).first;
    if (id < kDense) {
      if (dense_.size() <= id) dense_.resize(id + 1, nullptr);
      dense_[id] = found->second.get();
    }
  }
  StreamState& state = *found->second;
  if (state.own_clock != nullptr && state.own_clock->info == &state.info) {
    state.own_clock->info = nullptr;
  }
  state.info = std::move(info);
  state.fixed_length = state.info.length ? static_cast<int>(*state.info.length) : -1;
  state.own_clock = state.info.is_clock ? slot(state.info.name) : nullptr;
  state.clock = state.info.clock.empty() ? nullptr : slot(state.info.clock);
  if (state.own_clock != nullptr) {
    state.own_clock->info = &state.info;
    state.own_clock->base = state.info.delta.empty() ? nullptr : slot(state.info.delta);
  }
  ++version_;
  return &state;
}

void StreamTable::clear() {
  states_.clear();
  dense_.clear();
  clocks_.clear();
  ++version_;
}

void StreamTable::forget_values() {
  for (auto& [id, state] : states_) {
    state->open = false;
    state->torn_rest = 0;
    state->fragments.clear();
    state->epoch = 0;
  }
  for (auto& [name, clock] : clocks_) {
    clock.exact.reset();
    clock.ns.reset();
  }
}

std::vector<const StreamInfo*> StreamTable::list() const {
  std::vector<const StreamInfo*> infos;
  infos.reserve(states_.size());
  for (const auto& [id, state] : states_) infos.push_back(&state->info);
  return infos;
}

const ClockState* StreamTable::clock(std::string_view name) const {
  const auto found = clocks_.find(name);
  return found == clocks_.end() || found->second.info == nullptr ? nullptr : &found->second;
}

StreamState* StreamTable::find_sparse(uint64_t id) {
  const auto found = states_.find(id);
  return found == states_.end() ? nullptr : found->second.get();
}

ClockState* StreamTable::slot(const std::string& name) {
  return &clocks_[name];
}

}  // namespace collect::rtc

#include "daemon/ctl/follow/live_names.h"

#include <algorithm>
#include <utility>

#include "daemon/ctl/follow/limits.h"
#include "daemon/symbolize/session_names.h"
#include "formats/core/threads.h"
#include "storage/manifest/manifest.h"

namespace collect::ctl::follow {
namespace {

constexpr std::chrono::seconds kNoThreadPause{1};

}  // namespace

LiveNames::~LiveNames() {
  stop_ = true;
  if (lookup_.joinable()) lookup_.join();
}

const std::string* LiveNames::name_of(uint64_t function_id) {
  const auto known = names_.find(function_id);
  if (known != names_.end()) return &known->second;
  if (names_.size() >= kMaxNames || (!symbolizer_ && table_)) {
    unnamed_.clear();
    if (table_) table_->append_name(unnamed_, function_id);
    return &unnamed_;
  }
  if (wanted_.size() < kMaxNames) wanted_.insert(function_id);
  return nullptr;
}

void LiveNames::look_up(const std::string& manifest, const read::SessionManifest& said) {
  if (!table_ || said_->modules.size() != said.modules.size() ||
      said_->symbols.size() != said.symbols.size()) {
    said_ = said;
    table_ = std::make_unique<read::NameTable>(*said_);
  }
  take_found();
  if (lookup_.joinable() || wanted_.empty() || Clock::now() < next_lookup_) return;
  in_lookup_.assign(wanted_.begin(), wanted_.end());
  std::sort(in_lookup_.begin(), in_lookup_.end());
  wanted_.clear();
  is_done_ = false;
  if (!symbolizer_) {
    for (const uint64_t id : in_lookup_) keep(id, {});
    return;
  }
  auto started = start_thread("names", [this, manifest, ids = in_lookup_] {
    const auto begin = Clock::now();
    (void)contain([&] { run(manifest, ids); });
    took_ = Clock::now() - begin;
    is_done_ = true;
  });
  if (started.ok()) {
    lookup_ = std::move(*started);
  } else {  // asked for again
    wanted_.insert(in_lookup_.begin(), in_lookup_.end());
    next_lookup_ = Clock::now() + kNoThreadPause;
  }
}

void LiveNames::finish(const std::string& manifest, const read::SessionManifest& said) {
  wait();
  next_lookup_ = {};
  look_up(manifest, said);
  wait();
}

void LiveNames::wait() {
  const auto end = Clock::now() + kSeedNamesTime;
  while (lookup_.joinable() && !is_done_ && Clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  take_found();
}

void LiveNames::take_found() {
  if (!lookup_.joinable() || !is_done_) return;
  lookup_.join();
  for (auto& [id, name] : found_) keep(id, std::move(name));
  for (const uint64_t id : in_lookup_) {
    if (!names_.contains(id)) keep(id, {});
  }
  found_.clear();
  next_lookup_ = Clock::now() + kNamesRest * took_;
}

void LiveNames::keep(uint64_t function_id, std::string name) {
  if (name.empty()) table_->append_name(name, function_id);
  names_.emplace(function_id, std::move(name));
}

// On its thread. What can't be looked up has no name then.
void LiveNames::run(const std::string& manifest, const std::vector<uint64_t>& ids) {
  auto read = storage::manifest_from_json(manifest);
  if (!read.ok()) return;
  const symbolize::Symbolizer symbolizer(*symbolizer_);
  symbolize::SessionNames names(*read, ids, true);
  while (!names.done()) {
    if (!names.step(symbolizer, &stop_, kNamesTime).ok()) break;
  }
  names.put_into(*read);
  for (storage::Symbol& symbol : read->symbols) {
    if (std::binary_search(ids.begin(), ids.end(), symbol.function_id)) {
      found_.emplace_back(symbol.function_id, std::move(symbol.name));
    }
  }
}

}  // namespace collect::ctl::follow

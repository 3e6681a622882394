#include "daemon/attach/adb/adb_routes.h"

#include <algorithm>
#include <utility>

namespace collect::attach {
namespace {

bool is_network(const SourceDevice& device) {
  return device.connection == "network";
}

}  // namespace

void AdbRoutes::take(std::vector<SourceDevice> list) {
  list_ = std::move(list);
  const auto entry_of = [this](const std::string& serial) {
    return std::find_if(list_.begin(), list_.end(),
                        [&serial](const auto& device) { return device.serial == serial; });
  };
  for (auto known = asked_.begin(); known != asked_.end();) {
    const auto entry = entry_of(known->first);
    // Another phone may be there under that address when it can be used again.
    if (entry != list_.end() && !entry->is_usable) known->second.is_asked = false;
    known = entry == list_.end() ? asked_.erase(known) : std::next(known);
  }
  merge();
}

std::vector<std::string> AdbRoutes::to_ask() {
  std::vector<std::string> serials;
  for (const SourceDevice& device : list_) {
    if (!is_network(device) || !device.is_usable) continue;
    Asked& asked = asked_[device.serial];
    if (!std::exchange(asked.is_asked, true)) serials.push_back(device.serial);
  }
  return serials;
}

void AdbRoutes::answered(const std::string& serial, const std::string& number) {
  const auto asked = asked_.find(serial);
  if (asked == asked_.end()) return;  // it has left
  asked->second.is_answered = true;
  asked->second.number = number;
  merge();
}

const std::string& AdbRoutes::route(const std::string& phone) const {
  const auto known = routes_.find(phone);
  return known == routes_.end() ? phone : known->second;
}

bool AdbRoutes::is_held_back(const SourceDevice& device) const {
  if (!is_network(device) || !device.is_usable) return false;
  const auto asked = asked_.find(device.serial);
  return asked == asked_.end() || !asked->second.is_answered;
}

// What entries of the same phone have in common. Numbers alone are no proof: emulators share them.
// So one of the entries has to be the one by cable, now or when the phone was first known so.
std::string AdbRoutes::phone_of(const SourceDevice& device) const {
  const auto asked = asked_.find(device.serial);
  if (!is_network(device) || asked == asked_.end() || asked->second.number.empty()) {
    return device.serial;
  }
  const std::string& number = asked->second.number;
  const bool has_cable = std::any_of(list_.begin(), list_.end(), [&number](const auto& other) {
    return other.serial == number && !is_network(other);
  });
  return has_cable || phone_ids_.contains(number) ? number : device.serial;
}

void AdbRoutes::merge() {
  std::map<std::string, std::vector<const SourceDevice*>> phones;
  for (const SourceDevice& device : list_) {
    if (!is_held_back(device)) phones[phone_of(device)].push_back(&device);
  }
  std::erase_if(phone_ids_, [&phones](const auto& known) { return !phones.contains(known.first); });
  const std::vector<SourceDevice> before = std::exchange(phones_, {});
  const auto was_shown = [&before](const std::string& serial) {
    return std::any_of(before.begin(), before.end(),
                       [&serial](const auto& device) { return device.serial == serial; });
  };
  routes_.clear();
  for (auto& [number, entries] : phones) {
    std::stable_sort(entries.begin(), entries.end(),
                     [](const auto* a, const auto* b) { return is_better(*a, *b); });
    if (entries.size() > 1 && !phone_ids_.contains(number)) {
      const auto first = std::find_if(entries.begin(), entries.end(),
                                      [&](const auto* entry) { return was_shown(entry->serial); });
      phone_ids_[number] = was_shown(number) || first == entries.end() ? number : (*first)->serial;
    }
    const auto id = phone_ids_.find(number);
    SourceDevice& phone = phones_.emplace_back(*entries.front());
    routes_[id == phone_ids_.end() ? number : id->second] = phone.serial;
    if (id == phone_ids_.end()) continue;
    for (const SourceDevice* entry : entries) phone.routes.push_back(entry->serial);
    phone.serial = id->second;
  }
}

}  // namespace collect::attach

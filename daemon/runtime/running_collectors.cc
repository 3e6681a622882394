#include "daemon/runtime/running_collectors.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>

namespace collect::runtime {
namespace {

constexpr char kCollectorPrefix[] = "collector-";

// What no collector of ours has written is no collector.
std::optional<RunningCollector> parse(const std::string& text) {
  const auto json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object()) return std::nullopt;
  const auto word = [&json](const char* key) {
    const auto found = json.find(key);
    return found != json.end() && found->is_string() ? found->get<std::string>() : std::string();
  };
  RunningCollector collector{0, word("control"), word("root")};
  const auto pid = json.find("pid");
  if (pid != json.end() && pid->is_number_unsigned()) collector.pid = pid->get<uint32_t>();
  if (collector.control.empty() || !collector.root.starts_with('/')) return std::nullopt;
  return collector;
}

}  // namespace

Result<CollectorNotice> CollectorNotice::post(const RunningCollector& collector) {
  auto directory = RuntimeDirectory::make();
  if (!directory.ok()) return directory.error();
  const nlohmann::json json = {
      {"pid", collector.pid}, {"control", collector.control}, {"root", collector.root}};
  // No name is used twice: a reader that removes what was left behind removes nothing new.
  const auto since_epoch = std::chrono::system_clock::now().time_since_epoch();
  const std::string name = fmt::format("{}{}-{}", kCollectorPrefix, ::getpid(),
                                       since_epoch / std::chrono::nanoseconds(1));
  auto lock = directory->publish(
      name, json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
  if (!lock.ok()) return lock.error();
  return CollectorNotice(std::move(*directory), name, std::move(*lock));
}

CollectorNotice::~CollectorNotice() {
  if (lock_.get() >= 0) (void)directory_.remove(name_);  // else it is another object's by now
}

std::vector<RunningCollector> running_collectors() {
  std::vector<RunningCollector> running;
  const auto directory = RuntimeDirectory::open();
  if (!directory.ok()) return running;
  directory->remove_half_made();
  for (const std::string& name : directory->names(kCollectorPrefix)) {
    if (!directory->is_locked(name)) {
      (void)directory->remove(name);
      continue;
    }
    const Result<std::string> text = directory->read(name);
    const auto collector = text.ok() ? parse(*text) : std::nullopt;
    if (collector && running.size() < kMaxRunningCollectors) running.push_back(*collector);
  }
  std::sort(running.begin(), running.end(),
            [](const auto& a, const auto& b) { return a.control < b.control; });
  return running;
}

}  // namespace collect::runtime

#include "daemon/runtime/newest_recording.h"

#include <nlohmann/json.hpp>

namespace collect::runtime {
namespace {

constexpr char kNewestFile[] = "newest.json";

}  // namespace

Status note_newest(const NewestRecording& newest) {
  const auto directory = RuntimeDirectory::make();
  if (!directory.ok()) return directory.error();
  const nlohmann::json json = {{"path", newest.path},
                               {"session", newest.session},
                               {"control", newest.control},
                               {"stamp", newest.stamp}};
  const auto published = directory->publish(
      kNewestFile, json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
  return published.ok() ? Status() : published.error();
}

std::optional<NewestRecording> newest_recording() {
  const auto directory = RuntimeDirectory::open();
  if (!directory.ok()) return std::nullopt;
  const Result<std::string> text = directory->read(kNewestFile);
  if (!text.ok()) return std::nullopt;
  const auto json = nlohmann::json::parse(*text, nullptr, false);
  if (!json.is_object()) return std::nullopt;
  const auto word = [&json](const char* key) {
    const auto found = json.find(key);
    return found != json.end() && found->is_string() ? found->get<std::string>() : std::string();
  };
  NewestRecording newest{word("path"), word("session"), word("control"), word("stamp")};
  if (!newest.path.starts_with('/')) return std::nullopt;
  return newest;
}

}  // namespace collect::runtime

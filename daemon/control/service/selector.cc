#include "daemon/control/service/selector.h"

#include <fmt/core.h>

#include "formats/core/text/glob.h"

namespace collect::control {
namespace {

constexpr std::string_view kAgents = "agents/";
constexpr std::string_view kSessions = "sessions/";
constexpr std::string_view kDevices = "devices/";

bool is_name(std::string_view word, std::string_view name, std::string_view prefix) {
  if (name.empty()) return false;
  if (word == name) return true;
  return name.starts_with(prefix) && word == name.substr(prefix.size());
}

bool is_agent(const v1::Agent& agent, std::string_view word) {
  return is_name(word, agent.name(), kAgents);
}
bool is_agent(const v1::Session& session, std::string_view word) {
  return is_name(word, session.agent(), kAgents);
}
// A number alone is an agent's among agents; among sessions it is a pid.
bool is_agent_word(const v1::Agent& agent, std::string_view word) {
  return is_agent(agent, word);
}
bool is_agent_word(const v1::Session& session, std::string_view word) {
  return !word.empty() && word == session.agent();
}
bool is_session(const v1::Agent& agent, std::string_view word) {
  return is_name(word, agent.session(), kSessions);
}
bool is_session(const v1::Session& session, std::string_view word) {
  return is_name(word, session.name(), kSessions);
}

template <class Resource>
bool is_device(const Resource& resource, std::string_view word) {
  return word == resource.device_id() || is_name(word, resource.device(), kDevices);
}

template <class Resource>
bool is_any(const Resource& resource, std::string_view word) {
  return is_session(resource, word) || is_device(resource, word) ||
         word == resource.process_name() || word == resource.tag() ||
         (resource.pid() != 0 && word == std::to_string(resource.pid()));
}

template <class Resource>
bool matches_resource(const Resource& resource, const v1::Selector& selector) {
  const auto holds = [](const std::string& given, const auto& check) {
    return given.empty() || check(given);
  };
  return holds(selector.agent(), [&](const auto& word) { return is_agent(resource, word); }) &&
         holds(selector.session(), [&](const auto& word) { return is_session(resource, word); }) &&
         holds(selector.device(), [&](const auto& word) { return is_device(resource, word); }) &&
         holds(
             selector.process_name(),
             [&](const auto& pattern) { return matches_glob(pattern, resource.process_name()); }) &&
         (selector.pid() == 0 || selector.pid() == resource.pid()) &&
         holds(selector.tag(), [&](const auto& word) { return word == resource.tag(); }) &&
         holds(selector.any(), [&](const auto& word) {
           return is_agent_word(resource, word) || is_any(resource, word);
         });
}

}  // namespace

bool is_empty(const v1::Selector& selector) {
  return selector.ByteSizeLong() == 0;
}

bool matches(const v1::Agent& agent, const v1::Selector& selector) {
  return matches_resource(agent, selector);
}

bool matches(const v1::Session& session, const v1::Selector& selector) {
  return matches_resource(session, selector);
}

bool matches(const v1::Device& device, std::string_view word) {
  return word.empty() || word == device.serial() || word == device.model() ||
         word == device.via() || is_name(word, device.name(), kDevices);
}

std::string text_of(const v1::Selector& selector) {
  std::string text;
  const auto add = [&text](const char* what, const std::string& value) {
    if (value.empty()) return;
    text += fmt::format("{}{}{}\"{}\"", text.empty() ? "" : " and ", what, *what == '\0' ? "" : " ",
                        value);
  };
  add("agent", selector.agent());
  add("session", selector.session());
  add("device", selector.device());
  add("process_name", selector.process_name());
  if (selector.pid() != 0) {
    text += (text.empty() ? "pid " : " and pid ") + std::to_string(selector.pid());
  }
  add("tag", selector.tag());
  add("", selector.any());
  return text;
}

}  // namespace collect::control

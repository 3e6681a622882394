#include "daemon/control/name_filter.h"

#include <string>

namespace collect::control {
namespace {

template <class Resource>
bool matches_resource(const Resource& resource, std::string_view prefix, std::string_view filter) {
  if (filter.empty() || filter == resource.process_name() || filter == resource.device_id() ||
      filter == resource.tag() || filter == resource.name()) {
    return true;
  }
  std::string_view short_name = resource.name();
  if (short_name.starts_with(prefix)) short_name.remove_prefix(prefix.size());
  return filter == short_name || filter == std::to_string(resource.pid());
}

}  // namespace

bool matches(const v1::Agent& agent, std::string_view filter) {
  return matches_resource(agent, "agents/", filter);
}

bool matches(const v1::Session& session, std::string_view filter) {
  return matches_resource(session, "sessions/", filter);
}

bool matches(const v1::Device& device, std::string_view filter) {
  return filter.empty() || filter == device.serial() || filter == device.model() ||
         filter == device.via() || filter == device.name();
}

}  // namespace collect::control

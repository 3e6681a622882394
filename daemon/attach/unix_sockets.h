// /proc/net/unix of a device: which agents listen there.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace collect::attach {

inline constexpr char kAgentSocketPrefix[] = "collect_agent_";
inline constexpr size_t kMaxAgentsPerDevice = 64;

struct ListeningAgents {
  std::vector<std::string> names;  // "collect_agent_4711", sorted, each once
  size_t left_out = 0;             // beyond kMaxAgentsPerDevice
};

// The abstract stream sockets "@collect_agent_<digits>" that listen. Connections that a listener
// has accepted carry its name too, and are distinguished by their flags.
ListeningAgents parse_listening_agents(std::string_view proc_net_unix);

}  // namespace collect::attach

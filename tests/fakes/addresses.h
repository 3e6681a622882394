// Addresses that the collector and the agent, which has a parser of its own, must take and refuse
// alike.
#pragma once

#include <string>
#include <vector>

namespace collect::fakes {

inline std::vector<std::string> good_addresses() {
  return {"127.0.0.1:7710",
          "localhost:1",
          "example.org:65535",
          "[::1]:7710",
          "[2001:db8::1]:1",
          "unix:/run/collectord.sock",
          "unix:/run/a:b",
          "unix:/" + std::string(106, 'x'),
          "abstract:collect_agent_4711",
          "abstract:" + std::string(106, 'x')};
}

inline std::vector<std::string> bad_addresses() {
  return {"",
          "x",
          ":7710",
          "h:",
          "h:99999",
          "h:1x",
          "h:-1",
          "h:+1",
          "[]:1",
          "[::1:1",
          "::1]:1",
          "::1:7710",
          "unix:",
          "unix:relative",
          "unix:/" + std::string(107, 'x'),
          "abstract:",
          "abstract:" + std::string(107, 'x')};
}

}  // namespace collect::fakes

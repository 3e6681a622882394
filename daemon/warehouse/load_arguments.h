// What collect-load is asked for. User and password are in the environment alone.
#pragma once

#include <string>
#include <vector>

namespace collect::warehouse {

inline constexpr char kLoaderName[] = "collect-load";

struct LoadArguments {
  std::string server;
  std::string database = "collect";
  std::string events = "reference";  // "load", "reference", "none"
  bool again = false;                // also what is there
  bool json = false;
  std::vector<std::string> paths;
  std::string query;                              // instead of loading
  std::string format = "PrettyCompactNoEscapes";  // of the answer, in the server's words
};

}  // namespace collect::warehouse

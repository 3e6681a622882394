#include "formats/core/environment_names.h"

#include <algorithm>
#include <string_view>

#include "formats/core/nearest_word.h"

namespace collect {
namespace {

constexpr std::string_view kPrefix = "COLLECT_";

// gcc's collect2 hands these to the linker and the plugins that it starts.
constexpr std::string_view kOfGcc[] = {"COLLECT_GCC", "COLLECT_GCC_OPTIONS", "COLLECT_LTO_WRAPPER",
                                       "COLLECT_NAMES", "COLLECT_NO_DEMANGLE"};
// deploy/ and tests/.
constexpr std::string_view kOfTests[] = {
    "COLLECT_APT_SOURCES",   "COLLECT_CHAOS_SECONDS",  "COLLECT_DEBIAN_DIR",
    "COLLECT_GRPCURL",       "COLLECT_INSIDE",         "COLLECT_MUTATIONS",
    "COLLECT_NANOPB_SOURCE", "COLLECT_REFERENCE",      "COLLECT_SCRATCH",
    "COLLECT_SOAK_SECONDS",  "COLLECT_STORM_SECONDS",  "COLLECT_SURVIVAL_TIMES",
    "COLLECT_TEST_MINUTES",  "COLLECT_TEST_SANITIZERS"};

bool is_passed_by(std::string_view name) {
  return std::find(std::begin(kOfGcc), std::end(kOfGcc), name) != std::end(kOfGcc) ||
         std::find(std::begin(kOfTests), std::end(kOfTests), name) != std::end(kOfTests);
}

}  // namespace

std::vector<std::string> unknown_variables(const char* const* environment) {
  std::vector<std::string> known(std::begin(kAgentVariables), std::end(kAgentVariables));
  known.insert(known.end(), std::begin(kCommandLineVariables), std::end(kCommandLineVariables));
  std::vector<std::string> sentences;
  for (; environment != nullptr && *environment != nullptr; ++environment) {
    const std::string entry = *environment;
    const std::string name = entry.substr(0, entry.find('='));
    if (!name.starts_with(kPrefix) || is_passed_by(name)) continue;
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    const std::string near = nearest_word(name, known);
    sentences.push_back("unknown variable " + name +
                        (near.empty() ? "" : "; did you mean " + near + "?"));
  }
  return sentences;
}

}  // namespace collect

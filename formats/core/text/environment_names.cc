#include "formats/core/text/environment_names.h"

#include <algorithm>
#include <iterator>

#include "formats/core/text/nearest_word.h"

namespace collect {
namespace {

constexpr std::string_view kPrefix = "COLLECT_";

// gcc's collect2 hands these to the linker and the plugins that it starts.
constexpr std::string_view kOfGcc[] = {"COLLECT_GCC", "COLLECT_GCC_OPTIONS", "COLLECT_LTO_WRAPPER",
                                       "COLLECT_NAMES", "COLLECT_NO_DEMANGLE"};
// deploy/ and tests/.
constexpr std::string_view kOfTests[] = {
    "COLLECT_ADBD",          "COLLECT_APT_SOURCES",   "COLLECT_BUF",
    "COLLECT_CHAOS_SECONDS", "COLLECT_CHAOS_SEED",    "COLLECT_DEBIAN_DIR",
    "COLLECT_GRPCURL",       "COLLECT_INSIDE",        "COLLECT_LOAD_AGENTS",
    "COLLECT_MUTATION",      "COLLECT_MUTATIONS",     "COLLECT_MUTATION_SEED",
    "COLLECT_NANOPB_SOURCE", "COLLECT_REFERENCE",     "COLLECT_SCRATCH",
    "COLLECT_SOAK_SECONDS",  "COLLECT_STORM_SECONDS", "COLLECT_STORM_SEED",
    "COLLECT_SURVIVAL_SEED", "COLLECT_SURVIVAL_TIMES"};

template <size_t kCount>
bool has(const std::string_view (&names)[kCount], std::string_view name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

}  // namespace

bool is_unknown_variable(const char* entry, UnknownVariable& unknown) {
  const std::string_view whole = entry;
  const std::string_view name = whole.substr(0, whole.find('='));
  if (!name.starts_with(kPrefix) || has(kOfGcc, name) || has(kOfTests, name) ||
      has(kAgentVariables, name) || has(kCommandLineVariables, name)) {
    return false;
  }
  unknown.name = name;
  unknown.nearest = nearest_word(name, kAgentVariables, std::size(kAgentVariables));
  const std::string_view other =
      nearest_word(name, kCommandLineVariables, std::size(kCommandLineVariables));
  if (unknown.nearest.empty() ||
      (!other.empty() && edit_distance(name, other) < edit_distance(name, unknown.nearest))) {
    unknown.nearest = other;
  }
  return true;
}

}  // namespace collect

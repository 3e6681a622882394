#include "daemon/symbolize/nearest_function.h"

#include <string_view>
#include <utility>
#include <vector>

#include "daemon/symbolize/limits.h"
#include "formats/core/text/function_pattern.h"
#include "formats/core/text/nearest_word.h"

namespace collect::symbolize {

std::string nearest_function(const Symbolizer& symbolizer, const storage::ModuleInfo& module,
                             const std::string& word, const std::atomic<bool>* stop) {
  if (word.find_first_of("*?") != std::string::npos || word.starts_with("0x")) return "";
  auto all = symbolizer.find(module, {"*"}, kLookupDeadline, stop);
  if (!all.ok() || all->functions.empty()) return "";
  if (all->functions.size() > kMaxManifestSymbols) all->functions.resize(kMaxManifestSymbols);
  const auto named = symbolizer.name(module, std::move(all->functions), kMaxManifestSymbols,
                                     kMaxManifestSymbolBytes, stop);
  if (!named.ok()) return "";
  std::vector<std::string_view> names;
  for (const NamedAddress& one : named->names) names.push_back(base_name(one.name));
  return std::string(nearest_word(base_name(word), names.data(), names.size()));
}

}  // namespace collect::symbolize

#include "daemon/ctl/convert/address_names.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>

#include "daemon/symbolize/session_names.h"
#include "storage/manifest/manifest.h"

namespace collect::ctl {
namespace {

const storage::ModuleInfo* module_of(const storage::Manifest& manifest, uint64_t address) {
  const auto found = std::ranges::find_if(manifest.modules, [&](const auto& module) {
    return address >= module.base_address && address - module.base_address < module.size;
  });
  return found == manifest.modules.end() ? nullptr : &*found;
}

}  // namespace

std::map<uint64_t, std::string> names_of_addresses(const read::Trace& trace,
                                                   const std::vector<uint64_t>& addresses,
                                                   const symbolize::SymbolizerOptions& options,
                                                   std::chrono::milliseconds most_time) {
  std::map<uint64_t, std::string> names;
  if (!trace.manifest) return names;
  auto manifest = storage::manifest_from_json(*trace.manifest);
  if (!manifest.ok()) return names;
  std::map<uint64_t, uint64_t> by_id;  // a function's id is its module and where it is in there
  for (const uint64_t address : addresses) {
    const storage::ModuleInfo* module = module_of(*manifest, address);
    if (module == nullptr) continue;
    const uint64_t within = address - module->base_address;
    if (within > std::numeric_limits<uint32_t>::max()) continue;
    by_id[uint64_t{module->module_id} << 32 | within] = address;
    names[address] =
        fmt::format("{}+{:#x}", module->path.substr(module->path.rfind('/') + 1), within);
  }
  std::vector<uint64_t> ids;
  for (const auto& [id, address] : by_id) ids.push_back(id);
  manifest->symbols.clear();
  manifest->module_symbols.clear();
  const symbolize::Symbolizer symbolizer(options);
  symbolize::SessionNames lookups(*manifest, ids, true);
  while (!lookups.done()) {
    if (!lookups.step(symbolizer, nullptr, most_time).ok()) return names;
  }
  lookups.put_into(*manifest);
  for (const storage::Symbol& symbol : manifest->symbols) {
    const auto found = by_id.find(symbol.function_id);
    if (found != by_id.end() && !symbol.name.empty()) names[found->second] = symbol.name;
  }
  return names;
}

}  // namespace collect::ctl

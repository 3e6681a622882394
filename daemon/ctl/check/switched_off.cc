#include "daemon/ctl/check/switched_off.h"

#include <fmt/core.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <unordered_map>

#include "formats/core/text/figures.h"
#include "formats/core/text/printable.h"
#include "storage/fs/posix_fs.h"

namespace collect::ctl {
namespace {

constexpr size_t kMostNamed = 5;

std::string id_text(uint64_t id) {
  char text[32];
  std::snprintf(text, sizeof(text), "0x%" PRIx64, id);
  return text;
}

}  // namespace

std::vector<SwitchedOff> switched_off(const storage::Manifest& manifest) {
  std::unordered_map<uint64_t, uint64_t> rates;  // the highest: a function may come twice
  for (const storage::FunctionFilter& filter : manifest.function_filters) {
    for (const storage::SwitchedOffFunction& off : filter.switched_off) {
      uint64_t& rate = rates[off.function_id];
      rate = std::max(rate, off.calls_per_second);
    }
  }
  std::vector<SwitchedOff> functions;
  for (const storage::Symbol& symbol : manifest.symbols) {
    const auto found = rates.find(symbol.function_id);
    if (found == rates.end() || symbol.name.empty()) continue;
    functions.push_back({symbol.name, found->second});
    rates.erase(found);
  }
  for (const auto& [id, rate] : rates) functions.push_back({id_text(id), rate});
  std::ranges::sort(functions, [](const SwitchedOff& a, const SwitchedOff& b) {
    return a.calls_per_second != b.calls_per_second ? a.calls_per_second > b.calls_per_second
                                                    : a.name < b.name;
  });
  return functions;
}

std::vector<SwitchedOff> switched_off(const std::string& session_directory) {
  storage::PosixFs fs(session_directory);
  const auto manifest = storage::read_manifest(fs, session_directory);
  return manifest.ok() ? switched_off(*manifest) : std::vector<SwitchedOff>();
}

std::string switched_off_text(const std::vector<SwitchedOff>& functions) {
  std::string text;
  for (size_t i = 0; i < std::min(functions.size(), kMostNamed); ++i) {
    text += fmt::format("{}{} ({} calls/s)", i == 0 ? "" : ", ", printable(functions[i].name),
                        with_thousands(functions[i].calls_per_second));
  }
  if (functions.size() > kMostNamed) {
    text += fmt::format(" and {} more", functions.size() - kMostNamed);
  }
  return text;
}

}  // namespace collect::ctl

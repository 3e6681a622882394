#include "daemon/symbolize/session_names.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "daemon/symbolize/limits.h"
#include "formats/core/keyed_hash.h"

namespace collect::symbolize {
namespace {

using storage::ModuleInfo;
using storage::ModuleSymbols;
using storage::Symbol;

constexpr char kUnknownModule[] = "the agent named no such module";

}  // namespace

SessionNames::SessionNames(const storage::Manifest& manifest, const std::vector<uint64_t>& ids,
                           bool again)
    : most_names_(kMaxManifestSymbols - std::min(kMaxManifestSymbols, manifest.symbols.size())) {
  if (again) most_names_ = kMaxManifestSymbols;
  std::unordered_map<uint32_t, const ModuleInfo*, KeyedHash> modules;
  for (const ModuleInfo& module : manifest.modules) modules[module.module_id] = &module;
  std::unordered_map<uint32_t, const ModuleSymbols*, KeyedHash> known;
  for (const ModuleSymbols& outcome : manifest.module_symbols) known[outcome.module_id] = &outcome;
  std::vector<const ModuleInfo*> of_outcomes;
  for (size_t at = 0; at < ids.size();) {
    const auto module_id = static_cast<uint32_t>(ids[at] >> 32);
    std::vector<uint32_t> addresses;
    for (; at < ids.size() && ids[at] >> 32 == module_id; ++at) {
      addresses.push_back(static_cast<uint32_t>(ids[at]));
    }
    if (!again && known.contains(module_id)) continue;
    ModuleSymbols outcome;
    outcome.module_id = module_id;
    outcome.functions = addresses.size();
    const auto module = modules.find(module_id);
    if (module == modules.end()) outcome.problem = kUnknownModule;
    of_outcomes.push_back(module == modules.end() ? nullptr : module->second);
    outcomes_.push_back(std::move(outcome));
    addresses_.push_back(std::move(addresses));
  }
  group(of_outcomes);
}

void SessionNames::group(const std::vector<const ModuleInfo*>& modules) {
  std::map<std::tuple<std::string, std::vector<uint8_t>, uint64_t>, size_t> files;
  for (size_t at = 0; at < modules.size(); ++at) {
    if (modules[at] == nullptr) continue;
    const ModuleInfo& module = *modules[at];
    const auto [found, is_new] =
        files.try_emplace({module.path, module.build_id, module.size}, lookups_.size());
    if (is_new) lookups_.push_back({module, {}, {}});
    Lookup& lookup = lookups_[found->second];
    lookup.modules.push_back(at);
    lookup.addresses.insert(lookup.addresses.end(), addresses_[at].begin(), addresses_[at].end());
  }
  for (Lookup& lookup : lookups_) {
    std::sort(lookup.addresses.begin(), lookup.addresses.end());
    lookup.addresses.erase(std::unique(lookup.addresses.begin(), lookup.addresses.end()),
                           lookup.addresses.end());
  }
}

Status SessionNames::step(const Symbolizer& symbolizer, const std::atomic<bool>* stop,
                          std::chrono::nanoseconds most_time) {
  const Lookup& lookup = lookups_[next_];
  if (next_ >= kMaxSessionLookups) {
    say(lookup,
        fmt::format("not looked up: more than {} files in one session", kMaxSessionLookups));
  } else if (spent_ >= most_time) {
    say(lookup, fmt::format("not looked up: the session's files took more than {} s",
                            std::chrono::duration_cast<std::chrono::seconds>(most_time).count()));
  } else {
    const auto before = std::chrono::steady_clock::now();
    const auto answer =
        symbolizer.name(lookup.file, lookup.addresses, most_names_ - symbols_.size(),
                        kMaxManifestSymbolBytes - name_bytes_, stop);
    if (!answer.ok()) return answer.error();
    spent_ += std::chrono::steady_clock::now() - before;
    take(lookup, *answer);
  }
  ++next_;
  return {};
}

void SessionNames::say(const Lookup& lookup, const std::string& problem) {
  for (const size_t at : lookup.modules) outcomes_[at].problem = problem;
}

void SessionNames::take(const Lookup& lookup, const Answer& answer) {
  if (!answer.missing.empty()) missing_ = answer.missing;
  left_out_ += answer.left_out;
  for (const size_t at : lookup.modules) {
    ModuleSymbols& outcome = outcomes_[at];
    outcome.source = answer.source;
    outcome.problem = answer.problem;
    if (answer.lines_left_out != 0 && outcome.problem.empty()) {
      outcome.problem = fmt::format("files and lines of {} functions were left out: too many bytes",
                                    answer.lines_left_out);
    }
    for (const uint32_t address : addresses_[at]) {
      const auto named = std::lower_bound(
          answer.names.begin(), answer.names.end(), address,
          [](const NamedAddress& one, uint32_t wanted) { return one.address < wanted; });
      if (named == answer.names.end() || named->address != address) continue;
      if (symbols_.size() == most_names_ ||
          name_bytes_ + named->name.size() + named->file.size() > kMaxManifestSymbolBytes) {
        ++left_out_;
        continue;
      }
      ++outcome.named;
      name_bytes_ += named->name.size() + named->file.size();
      symbols_.push_back(
          {uint64_t{outcome.module_id} << 32 | address, named->name, named->file, named->line});
    }
  }
}

void SessionNames::put_into(storage::Manifest& manifest) const {
  std::map<uint32_t, ModuleSymbols> outcomes;
  for (ModuleSymbols& outcome : manifest.module_symbols) {
    outcomes[outcome.module_id] = std::move(outcome);
  }
  for (const ModuleSymbols& outcome : outcomes_) {
    // An abandoned session has outcomes that nothing was looked up for yet.
    if (outcome.source.empty() && outcome.problem.empty()) continue;
    ModuleSymbols& known = outcomes[outcome.module_id];
    if (outcome.source.empty() && !known.source.empty()) continue;
    known = outcome;
  }
  manifest.module_symbols.clear();
  for (auto& [id, outcome] : outcomes) manifest.module_symbols.push_back(std::move(outcome));
  std::vector<Symbol> symbols = symbols_;
  for (Symbol& symbol : manifest.symbols) symbols.push_back(std::move(symbol));
  const auto by_id = [](const Symbol& a, const Symbol& b) { return a.function_id < b.function_id; };
  std::stable_sort(symbols.begin(), symbols.end(), by_id);
  symbols.erase(
      std::unique(symbols.begin(), symbols.end(),
                  [](const Symbol& a, const Symbol& b) { return a.function_id == b.function_id; }),
      symbols.end());
  manifest.symbols = std::move(symbols);
  manifest.symbols_left_out = left_out_;
}

}  // namespace collect::symbolize

// What a manifest's JSON says, value by value, and what its lists consist of. A key of the wrong
// type is as good as a missing one: manifests of other writers, and damaged ones, come here too.
//
// For manifest_read.cc alone. No state; any thread.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "storage/manifest/manifest.h"

namespace collect::storage::manifest_values {

// Not ordered_json: that looks at every key before, for each key of an object.
using Json = nlohmann::json;

// ---- of a key; without it: nothing, 0, an empty text, an empty list

std::optional<uint64_t> said_number(const Json& json, const char* key);
std::optional<uint32_t> said_number32(const Json& json, const char* key);
uint64_t number(const Json& json, const char* key);
uint32_t number32(const Json& json, const char* key);
std::string text(const Json& json, const char* key);
const Json& list_of(const Json& json, const char* key);

// What is in the list `key`, as `from_json` makes it of an object; nothing of what else is there.
template <class T, class Function>
void read_list(const Json& json, const char* key, std::vector<T>& out, Function from_json) {
  for (const Json& item : list_of(json, key)) {
    if (item.is_object()) out.push_back(from_json(item));
  }
}

// 0x and up to 16 digits.
std::optional<uint64_t> hex_number(std::string_view text);

// ---- of an object, or of a word

SessionState state_of(const std::string& name);
SymbolsState symbols_state_of(std::string_view name);
CollectorIdentity collector_of(const Json& json);
SessionIdentity identity_of(const Json& json);
ProcessEnd process_end_of(const Json& process);
// Whether the threads of a manifest without `ended` have ended depends on who wrote it: files of
// others have no state and no ends.
ManifestThread thread_of(const Json& json, bool has_state);
ModuleInfo module_of(const Json& json);
Gap gap_of(const Json& json);
// None for what makes no sense, or is of a kind of later versions.
std::optional<Stall> stall_of(const Json& json);
DetailWindow window_of(const Json& json);
FunctionFilter filter_of(const Json& json);
ClockSync clock_sync_of(const Json& json);
ModuleSymbols module_symbols_of(const Json& json);
Container container_of(const Json& json);
void read_passthrough_streams(const Json& json, std::vector<PassthroughStream>& out);
SessionTotals totals_of(const Json& json);
// Which of its keys are missing, as ManifestKey has them.
uint8_t unsaid_keys(const Json& json);

}  // namespace collect::storage::manifest_values

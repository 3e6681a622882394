// What sessions, parts, loads and functions are called outside the machine: the same wherever and
// whenever they are loaded. WAREHOUSE.md "Names". No state; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/upload/commit.h"
#include "formats/core/result.h"
#include "storage/manifest/manifest.h"

namespace collect::warehouse {

// Version of the rows that the loader makes of a session. Another number when other rows come of
// the same session: they replace those that are there.
inline constexpr uint32_t kRowsVersion = 1;

struct PartIdentity {
  std::string session;  // PROCESSID-RECORDING
  std::string part;     // COLLECTOR-EPOCH/session_…/pid_…
  uint64_t load = 0;
  bool operator==(const PartIdentity&) const = default;
};

// `directory`: "session_…/pid_…". `manifest_crc32c`: of manifest.json, which changes when functions
// are named. kUnsupported: the manifest does not say which process it is of, or the session was
// made of another one.
Result<PartIdentity> identify_part(const storage::SessionIdentity& identity,
                                   std::string_view directory, uint32_t manifest_crc32c);
// The identity of a part in a bucket, by what its COMMIT says.
PartIdentity identify_committed(const upload::Commit& commit, uint32_t manifest_crc32c);
// What a merged session is called in place of a part.
inline constexpr char kMergedPart[] = "merged";
// The identity of a merged session, from those of its parts.
PartIdentity identify_merged(const std::vector<PartIdentity>& parts);

std::string session_id(const storage::SessionIdentity& identity);

// What a module is called: its build id in hexadecimal, or SESSION/MODULE.
std::string build_of(const storage::ModuleInfo* module, uint32_t module_id,
                     std::string_view session);
// `function` at offset 0 of a module that is called so.
uint64_t first_function_of(std::string_view build);

}  // namespace collect::warehouse

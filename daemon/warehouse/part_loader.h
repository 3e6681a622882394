// Sessions into the tables of a ClickHouse server: each part once, and the parts of one session
// merged, so that a call that two of them have is counted once. WAREHOUSE.md "Loading".
//
// Used on one thread, which waits for the server and the disk.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "daemon/warehouse/clickhouse_client.h"
#include "daemon/warehouse/part_rows.h"
#include "storage/rebuild/merge_parts.h"

namespace collect::warehouse {

// A row of `parts`.
struct KnownPart {
  uint64_t load = 0;
  EventRows event_rows = EventRows::kNone;
};
// What the server has of a session.
struct KnownParts {
  std::map<std::string, KnownPart> parts{};  // by name
  std::set<std::string> covered{};           // names, by a merged one
};

enum class LoadOutcome : uint8_t {
  kLoaded,
  kPresent,  // had been loaded before
  kFailed,   // `problem`: of this part; others may be loaded
};

struct LoadedPart {
  PartIdentity identity{};
  std::string place{};
  LoadOutcome outcome = LoadOutcome::kLoaded;
  PartCounts counts{};
  std::string problem{};  // why it failed
  std::string remark{};   // what is to be known of its session
};

// A session's directory, and the words for where it came from.
struct PartLocation {
  storage::SessionPart part;
  std::string place;
};

struct LoadSettings {
  EventRows events = EventRows::kReference;
  bool again = false;   // also what is there
  std::string scratch;  // a directory that merged sessions are made in, for a while
};

class PartLoader {
 public:
  // `client` outlives it.
  PartLoader(ClickHouseClient& client, LoadSettings settings)
      : client_(client), settings_(std::move(settings)) {}

  Result<KnownParts> known(const std::string& session);
  // Nothing is to be done for these parts, which are all that are to be had.
  bool has_all(const KnownParts& known, const std::vector<PartIdentity>& parts) const;

  // Parts of one session: what came of each of them and, where they are several, of all together.
  // An error is the server's.
  Result<std::vector<LoadedPart>> load(std::vector<PartLocation> parts);

 private:
  bool has(const KnownParts& known, const PartIdentity& part) const;
  Result<LoadedPart> load_one(const KnownParts& known, const PartLocation& from);
  Result<LoadedPart> load_merged(const KnownParts& known, const std::vector<PartLocation>& parts,
                                 const std::vector<PartIdentity>& identities);
  Status send(const std::string& directory, PartRows& rows, bool with_events);
  // A sentence where the server has parts that are not here, and calls may count twice; else empty.
  static std::string unmerged(const KnownParts& known, const std::vector<PartIdentity>& here);
  // A failed part; an error where the server failed.
  Result<LoadedPart> failed(LoadedPart part, const Error& error) const;

  ClickHouseClient& client_;
  const LoadSettings settings_;
};

// The identity of a session on the disk. As identify_part(); kIo: its manifest cannot be read.
Result<PartIdentity> identify(const storage::SessionPart& part);

}  // namespace collect::warehouse

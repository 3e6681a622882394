// The keys of a part's objects: UPLOAD.md "Keys". No state; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "formats/core/result.h"
#include "storage/model/session_types.h"

namespace collect::upload {

inline constexpr char kKeyRoot[] = "v1/";
inline constexpr char kCommitName[] = "COMMIT";
inline constexpr char kTablesBelow[] = "tables/";
inline constexpr size_t kMaxPartNameBytes = 64;    // of a collector's id, and of an epoch
inline constexpr size_t kMaxDeviceKeyBytes = 200;  // of a device's id in a key; then it is cut

// Who stored the part. Letters, digits, '.', '_' and, in the collector's id, '-'.
struct PartName {
  std::string collector{};
  std::string epoch{};
  bool operator==(const PartName&) const = default;
};

// For a session that was recorded before collectors had ids: "unknown", "0".
PartName part_name_of(const storage::CollectorIdentity& collector);

// "v1/ab/device=D/session=PROCESSID-REC/part=COLLECTOR-EPOCH/". kUnsupported: the session has no
// process id, so nothing tells it from another; kInvalidArgument: `part`.
Result<std::string> part_prefix(const storage::SessionIdentity& identity, const PartName& part);

// Every name that a store gives a part is checked here before it is a key or a path. kDamaged: no
// collector's id or no epoch, as the sentence says.
Status check_part_name(const PartName& part);
// Whether `prefix` is that of this part: a COMMIT speaks for no other one. `process_id`: in
// hexadecimal.
bool is_prefix_of(std::string_view prefix, std::string_view process_id, uint32_t recording,
                  const PartName& part);

// The object of a file within a session: "thread_0/index.atf" is at "thread=0/index.atf.zst".
struct ObjectName {
  std::string name{};
  bool is_compressed = false;
};
ObjectName object_name(std::string_view path);

}  // namespace collect::upload

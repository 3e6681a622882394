// COMMIT: what a part consists of. A reader of a bucket believes only what a COMMIT names. The same
// session gives the same bytes each time. UPLOAD.md "COMMIT". No state; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/upload/part_keys.h"
#include "formats/core/json_shape.h"
#include "formats/core/result.h"
#include "storage/manifest/manifest.h"

namespace collect::upload {

inline constexpr char kCommitFormat[] = "collect part 1";
inline constexpr size_t kMaxCommitBytes = 64u << 20;
inline constexpr JsonLimits kCommitShape{16, 8u << 20};
inline constexpr size_t kMaxCommitFiles = 200'000;

struct CommittedFile {
  std::string path{};    // within the session: "thread_0/index.atf"
  std::string object{};  // behind the part's prefix: "thread=0/index.atf.zst"
  bool is_compressed = false;
  uint64_t bytes = 0;  // of the file
  uint32_t crc32c = 0;
  uint64_t object_bytes = 0;
  uint32_t object_crc32c = 0;
  bool operator==(const CommittedFile&) const = default;
};

// Records that the agent numbered `from` to `to` - 1.
struct NumberRange {
  uint64_t from = 0;
  uint64_t to = 0;
  bool operator==(const NumberRange&) const = default;
};

struct LaneRanges {
  std::vector<NumberRange> ranges{};
  // False: gaps were merged, and the last range may hold some.
  bool is_exact = true;
  bool operator==(const LaneRanges&) const = default;
};

struct CommittedThread {
  uint32_t id = 0;  // N of thread_N
  uint32_t stream_id = 0;
  uint64_t events = 0;
  uint64_t detail_records = 0;
  LaneRanges index{};
  LaneRanges detail{};
  bool operator==(const CommittedThread&) const = default;
};

struct Commit {
  std::string session{};  // "session_20260131_235959/pid_42"
  std::string process_id{};
  uint32_t recording = 0;
  std::string device_id{};
  std::string state{};  // "complete", "recovered", "failed"
  PartName part{};
  std::vector<CommittedFile> files{};
  std::vector<CommittedThread> threads{};
  bool operator==(const Commit&) const = default;
};

// All but the files.
Commit commit_of(const storage::Manifest& manifest, std::string_view session, const PartName& part);
// Which of the agent's numbers are in a lane of `records` records.
LaneRanges number_ranges(const storage::Manifest& manifest, uint32_t thread, Lane lane,
                         uint64_t records);

std::string commit_to_json(const Commit& commit);
// kUnsupported: another format; kLimit; kDamaged: no JSON, a key is missing, a name that no
// session and no part has, or a path that no session has or two files have.
Result<Commit> commit_from_json(std::string_view json);

}  // namespace collect::upload

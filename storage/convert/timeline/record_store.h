// Events of another program's trace, put in order: by track, then by time, then as the file has
// them. What does not fit into one run in memory waits in a file without a name, in sorted runs
// that are merged.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <queue>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include "formats/core/result.h"
#include "storage/read/unnamed_file.h"

namespace collect::convert {

enum class RecordKind : uint32_t { kBegin = 0, kEnd = 1, kCall = 2 };

struct TimelineRecord {      // 40 bytes
  int64_t ns = 0;            //  0
  uint64_t duration_ns = 0;  //  8  of kCall
  uint64_t order = 0;        // 16  its place in the file
  uint32_t track = 0;        // 24
  uint32_t function = 0;     // 28  not of kEnd
  RecordKind kind{};         // 32
  uint32_t reserved = 0;     // 36

  auto key() const { return std::tie(track, ns, order); }
};
static_assert(sizeof(TimelineRecord) == 40 && offsetof(TimelineRecord, kind) == 32);
static_assert(std::has_unique_object_representations_v<TimelineRecord>);  // no padding

class RecordStore {
 public:
  static constexpr size_t kRunRecords = size_t{1} << 19;  // 20 MiB

  // `directory` is for the file; there is none where one run is enough.
  explicit RecordStore(std::string directory, size_t run_records = kRunRecords)
      : directory_(std::move(directory)), run_records_(run_records) {}

  Status add(TimelineRecord record);
  // Nothing is added afterwards.
  Status sort();
  bool next(TimelineRecord& record);
  uint64_t size() const { return size_; }

 private:
  struct Run {
    uint64_t at = 0;  // of records in the file
    uint64_t end = 0;
    TimelineRecord first;
  };
  struct Later {
    bool operator()(const Run& a, const Run& b) const { return b.first.key() < a.first.key(); }
  };

  Status put_run();
  TimelineRecord record_at(uint64_t at) const;

  const std::string directory_;
  const size_t run_records_;
  std::vector<TimelineRecord> run_;
  size_t taken_ = 0;  // of run_
  std::optional<read::UnnamedFile> file_;
  read::FileBytes sorted_;
  std::vector<uint64_t> ends_;  // of the runs in the file
  std::priority_queue<Run, std::vector<Run>, Later> runs_;
  uint64_t size_ = 0;
  uint64_t merged_ = 0;
};

}  // namespace collect::convert

// The files of a session that is sealed as pages again: what an agent would send to have it stored
// as it is. Numbers are positions in the file: what was lost has none, and is in front of the
// record behind it.
//
// Used on one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "formats/atf/layout.h"
#include "formats/core/bytes.h"
#include "formats/core/result.h"
#include "storage/fs/fs.h"
#include "storage/manifest/manifest.h"
#include "storage/model/session_types.h"

namespace collect::storage {

// The records of one lane of a thread, wherever they are.
class RecordSource {
 public:
  virtual ~RecordSource() = default;
  // The bytes from `offset` on, 0 being the first record's: as many as asked for, fewer only at the
  // end. They are where they always were, or in `buffer`.
  virtual Result<Bytes> read(uint64_t offset, size_t bytes, std::vector<uint8_t>& buffer) = 0;
};

// Records in bytes that are mapped.
class MappedRecords final : public RecordSource {
 public:
  explicit MappedRecords(Bytes records) : records_(records) {}
  Result<Bytes> read(uint64_t offset, size_t bytes, std::vector<uint8_t>& buffer) override;

 private:
  const Bytes records_;
};

struct LaneSource {
  uint32_t thread = 0;  // N of thread_N
  uint32_t stream_id = 0;
  Lane lane = Lane::kIndex;
  uint64_t bytes = 0;  // of all records
  std::unique_ptr<RecordSource> records;
};

class LanePages {
 public:
  // What is missing before which record, from the manifest's gaps. Pages of events end where the
  // place in the file is a multiple of `page_bytes`; 0: they are as large as an agent's.
  LanePages(LaneSource source, const Manifest& manifest, uint64_t page_bytes = 0);

  // The time of the next page's first record; absent at the end.
  Result<std::optional<uint64_t>> next_ns();
  // The next page, without its checksum; absent at the end. Its bytes are in `buffer`, or where the
  // source has them, until the next call. A detail record that is no record ends the lane.
  Result<std::optional<Page>> next(std::vector<uint8_t>& buffer);

  Lane lane() const { return source_.lane; }
  uint64_t done_bytes() const { return offset_; }

 private:
  struct Loss {
    uint64_t count = 0;
    uint32_t reasons = 0;
    uint64_t first_ns = 0;
    uint64_t last_ns = 0;
  };

  Status take_events(uint64_t stop, std::vector<uint8_t>& buffer);
  Status take_details(uint64_t stop, std::vector<uint8_t>& buffer);

  LaneSource source_;
  const uint64_t page_bytes_;
  std::map<uint64_t, Loss> losses_;  // by the position of the record behind them
  uint64_t offset_ = 0;              // of the next page's first record
  std::vector<uint8_t> head_;        // of the next record
  Page page_;                        // the last one
};

// One lane's file of a sealed session, packed or not, opened for reading alone.
struct LaneInput {
  atf::Version version{};
  uint32_t thread_id = 0;
  LaneSource source;
  // Checksum of the records, as the footer has it; absent where header and footer do not agree, so
  // that `source` ends where the file does.
  std::optional<uint32_t> checksum;
  uint64_t count = 0;  // of the records, where it is present
};

// kNotFound: there is no such file. kDamaged, kTruncated, kUnsupported: not the beginning of one.
Result<LaneInput> open_lane(Fs& fs, const std::string& path, Lane lane);

// A session's manifest as its files have it: positions in them instead of the agent's numbers,
// stream ids that are there in any case (threads that were found without a manifest have none), no
// containers.
Manifest manifest_of_files(const Manifest& manifest);

// The pages of all lanes in the order of time, so that a search by time finds its place. A page
// has its checksum, and is borrowed until `take` returns.
Status take_in_time_order(std::vector<LanePages>& lanes,
                          const std::function<Status(const Page&)>& take);

}  // namespace collect::storage

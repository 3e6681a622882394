// Finds the records of a section that are whole though others before them are not: one damaged
// record costs itself. record_scan.h stops at the first one; this is asked where it did.
//
// An event is judged by its own fields and by the order of times (kept_order.h). Events have 32
// bytes each, so those behind a damaged one are found. A detail record says its own length: where
// that is wrong, the next header that can be one, and is followed by another or has a payload of
// its length, is where reading continues. How many records were between two that stay follows from
// the link of the second one's event, where that has one; else it is estimated by the bytes, and is
// no more than the events between.
//
// Memory: one block of the file, and what KeptOrder takes.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "storage/fs/fs.h"
#include "storage/thread/record_scan.h"

namespace collect::storage {

// Records behind one another that stay.
struct RecordRun {
  uint64_t first = 0;  // position among the records that were found
  uint64_t records = 0;
  uint64_t offset = 0;  // in the section
  uint64_t bytes = 0;
};

// What must be in order among those that stay.
enum class OrderBy : uint8_t { kTime, kLink };  // kLink: of detail records, their events

struct DamagedSection {
  File& file;
  uint64_t begin = 0;  // of the section in the file
  uint64_t bytes = 0;
  Lane lane = Lane::kIndex;
  RecordFormat format;
  // For a detail section: position that the record of this event has, by the event's link.
  std::function<Result<std::optional<uint64_t>>(uint64_t index_seq)> position_by_link{};
};

// Whether anything behind `offset` can be a record: else only the end is torn.
Result<bool> has_records_behind(const DamagedSection& section, uint64_t offset);

// Calls `on_run` for each run that stays, in order; what is between two is damaged.
Status find_kept_records(const DamagedSection& section, OrderBy order,
                         const std::function<Status(const RecordRun&)>& on_run);

}  // namespace collect::storage

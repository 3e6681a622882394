// Writes the records of pages over those that a damaged file of a thread has in their place. A
// container beside the thread files has pages with a checksum each: what a file has instead of such
// a record is damaged.
//
// The position of a record follows from the journal. If that is damaged too, a page is used only
// where the file has at least half of its records already.
//
// Between ThreadWriter::reopen() and end_reopen(). Records are only changed in place, so that this
// can be interrupted and done again. Pages may come in any order and more than once.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "formats/core/result.h"
#include "storage/thread/lane_file.h"
#include "storage/thread/position_map.h"

namespace collect::storage {

class PageRestore {
 public:
  PageRestore(Fs& fs, const std::string& directory, const ThreadFormat& format, LaneFile& index,
              LaneFile& detail);

  // Whole records, whose checksum was compared.
  Status put(const Page& page);
  // Reads through what was written to.
  Status finish(LaneFile::Links links);

  uint64_t restored() const { return restored_; }
  // A page has records behind the end of the file.
  bool has_more() const { return has_more_; }

 private:
  Status put_index(const Page& page);
  Status put_detail(const Page& page);
  // Position in the file of a record by its number.
  Result<uint64_t> position_of(Lane lane, uint64_t seq);
  Status put_events(uint64_t position, Bytes events);
  // So many of its records are others in the file: it is known where the page belongs.
  Result<bool> has_its_place(uint64_t differ, uint64_t records);

  const ThreadFormat format_;
  LaneFile& index_;
  LaneFile& detail_;
  StreamJournal journal_;
  std::optional<bool> journal_is_whole_;
  // By lane. Asked with growing numbers: made again where a page repeats.
  std::optional<PositionMap> positions_[2];
  uint64_t last_asked_[2] = {};
  // Up to here the detail file is known, record by record.
  uint64_t detail_position_ = 0;
  uint64_t detail_offset_ = 0;
  std::vector<uint8_t> found_;
  uint64_t restored_ = 0;
  bool changed_[2] = {};
  bool has_more_ = false;
};

}  // namespace collect::storage

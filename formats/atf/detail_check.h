// The record pass behind check.h: a detail file against itself and against its index, by ranges of
// whole records.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "formats/atf/check.h"

namespace collect::atf {

// What a range of records says; ranges add up.
struct DetailTally {
  struct Type {
    uint64_t records = 0;
    uint64_t first_seq = 0;  // of its first record
  };

  // Adds the range behind this one.
  void add(DetailTally&& next, Version version);

  uint64_t records = 0;
  uint64_t bytes = 0;
  uint64_t min_index_seq = UINT64_MAX;
  uint64_t max_index_seq = 0;
  uint64_t first_ns = 0;
  uint64_t last_ns = 0;
  uint64_t documented_payloads = 0;
  uint64_t tracer_payloads = 0;
  uint64_t opaque_payloads = 0;
  uint32_t checksum = 0;           // of the records, by the version's polynomial
  std::map<uint16_t, Type> types;  // of one range: all of them; of a sum: kMaxCountedTypes
  Findings findings;
};

// Whole records that follow one another, `bytes` of the section from `begin` on.
struct RecordRange {
  uint64_t begin = 0;
  uint64_t bytes = 0;
  uint64_t first_seq = 0;
};

// Divides the records of a section into ranges of at least `range_bytes`, the last one excepted.
class RecordRanges {
 public:
  RecordRanges(const DetailReader& reader, uint64_t range_bytes)
      : cursor_(reader.records()), range_bytes_(range_bytes) {}
  // Reads the record headers of the range. Empty behind the last whole record.
  std::optional<RecordRange> next();

 private:
  DetailCursor cursor_;
  uint64_t range_bytes_;
};

// `index` is null when the file is checked alone.
DetailTally tally_records(const IndexReader* index, const DetailReader& reader,
                          const RecordRange& range);

// Fills report.detail from the sum of all ranges and adds findings: those of the records, then what
// header and footer say of them. report.links is the number of the index's forward links.
void conclude_detail(const IndexReader* index, const DetailReader& reader, DetailTally&& tally,
                     ThreadReport& report);

}  // namespace collect::atf

// Looks at every byte of a thread: the summary and the findings behind `collectctl verify` and
// `inspect`. One pass over the index, one over the detail file; memory does not grow with either,
// except for the set of distinct functions, which has a limit. thread_check.h is for several cores.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>

#include "formats/atf/finding.h"
#include "formats/atf/reader.h"

namespace collect::atf {

// Functions beyond this many distinct ones are not counted any more.
inline constexpr size_t kMaxCountedFunctions = size_t{1} << 20;
// Detail record types beyond this many distinct ones are not counted by type.
inline constexpr size_t kMaxCountedTypes = 64;

struct DetailReport {
  bool present = false;
  bool rejected = false;
  std::optional<DetailFileHeader> header;
  FileState state = FileState::kUnfinalized;
  ChecksumState checksum = ChecksumState::kNone;
  uint64_t records = 0;
  uint64_t bytes = 0;           // of whole records
  uint64_t trailing_bytes = 0;  // behind the last whole record, before the footer or the end
  std::map<uint16_t, uint64_t> types;
  uint64_t documented_payloads = 0;
  uint64_t tracer_payloads = 0;
  uint64_t opaque_payloads = 0;
};

struct ThreadReport {
  uint32_t n = 0;
  bool rejected = false;
  std::optional<IndexHeader> header;  // absent when rejected
  FileState state = FileState::kUnfinalized;
  ChecksumState checksum = ChecksumState::kNone;
  uint64_t events = 0;
  uint64_t calls = 0;
  uint64_t returns = 0;
  uint64_t exceptions = 0;
  uint64_t unknown_kinds = 0;
  std::optional<uint64_t> first_ns, last_ns;  // as written
  std::optional<uint64_t> min_ns, max_ns;
  uint64_t backward_steps = 0;
  uint64_t max_depth = 0;  // version 1 only
  uint64_t functions = 0;  // distinct ones, at most kMaxCountedFunctions
  uint64_t links = 0;      // events with a detail_seq
  uint64_t trailing_bytes = 0;
  DetailReport detail;
  Findings findings;
};

// FORMAT.md "Grades".
enum class Grade : uint8_t {
  kOk,
  kRecovered,  // readable, something was never finalized
  kDamaged,    // readable, but a file contradicts itself
  kPartial,    // some threads refused, the others readable
  kRejected,   // nothing readable
};

std::string_view to_text(Grade grade);

// `detail` is absent when there is no detail.atf.
ThreadReport check_thread(uint32_t n, Bytes index, std::optional<Bytes> detail);

// A detail file without its index: everything but the links. `header` stays absent, `state` and
// `rejected` are those of the detail file.
ThreadReport check_detail_alone(uint32_t n, Bytes detail);

Grade grade_of(std::span<const ThreadReport> threads);

}  // namespace collect::atf

// What collectord asks collect-store for while it records with durability = object: that changes of
// a session's files come into the store. A line each way: this one, and a StoreReport with its
// number. No state; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "formats/core/result.h"
#include "storage/changed_files.h"

namespace collect::upload {

inline constexpr size_t kMaxSegmentRequestBytes = 256u << 20;  // of a line

struct SegmentRequest {
  uint64_t id = 0;        // from 1; said back when all is in the store
  std::string session{};  // "session_…/pid_…"
  bool is_first = false;  // the store has nothing that this goes on from
  bool is_last = false;   // the session is sealed
  storage::ChangedFiles files{};

  std::string to_line() const;  // with its newline
  // kDamaged: it is none.
  static Result<SegmentRequest> parse(std::string_view line);
};

}  // namespace collect::upload

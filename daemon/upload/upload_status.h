// How uploading goes, and the lines in which collect-store says it to collectord. No state; any
// thread.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "formats/core/result.h"

namespace collect::upload {

struct UploadStatus {
  uint64_t pending_sessions = 0;
  uint64_t pending_bytes = 0;   // of their files
  uint64_t oldest_unix_ns = 0;  // end of the oldest pending session; 0: none
  uint64_t committed_sessions = 0;
  uint64_t committed_bytes = 0;   // of their files, as they are on the disk
  uint64_t present_sessions = 0;  // had been committed before
  uint64_t sent_bytes = 0;        // of bodies
  uint64_t removed_sessions = 0;
  uint64_t removed_bytes = 0;
  uint64_t refused_sessions = 0;  // can never be uploaded, stay on the disk
  uint64_t failed_runs = 0;
  std::map<int, uint64_t> retries{};  // by HTTP status; 0: no answer
  // Empty: the last run was all right. Else why not, since when: an alarm for operators.
  std::string problem{};
  uint64_t problem_since_unix_ns = 0;
  int64_t clock_correction_s = 0;
};

// One line of collect-store's output.
struct StoreReport {
  UploadStatus status{};
  // "session_…/pid_…": COMMIT covers it, and it is to be removed from the disk; else empty, and
  // `status` is said.
  std::string remove{};

  std::string to_line() const;  // with its newline
  // kDamaged: it is none.
  static Result<StoreReport> parse(std::string_view line);
};

}  // namespace collect::upload

// A thread's files as pages can hold them: events of a known kind in the order of time, and the
// detail records that they link to. Files of other programs may be otherwise; those are copied.
#pragma once

#include <optional>
#include <string>

#include "formats/atf/session_reader.h"
#include "storage/convert/convert_log.h"
#include "storage/read/file_bytes.h"

namespace collect::convert {

// Whether a reader can say what it was.
inline bool is_known(const atf::IndexEvent& event) {
  return event.kind != atf::EventKind{};
}

// Says so of a thread whose times step back.
void remark_put_in_order(uint32_t n, uint64_t backward_steps, ConvertLog& log);

class OrderedThread {
 public:
  // `files` have an index that can be read, and outlive it. A copy goes into unnamed files in
  // `directory`. kNoSpace, kPermission, kIo: of those.
  static Result<OrderedThread> of(const atf::ThreadFiles& files, const std::string& directory,
                                  ConvertLog& log);

  uint32_t n() const { return n_; }
  const atf::IndexHeader& header() const { return header_; }
  Bytes events() const { return events_; }
  const std::optional<Bytes>& details() const { return details_; }
  uint64_t event_count() const { return events_.size() / atf::kEventBytes; }
  uint64_t record_count() const { return record_count_; }

 private:
  OrderedThread() = default;
  Status copy(const atf::SessionReader& alone, const std::string& directory, ConvertLog& log);

  uint32_t n_ = 0;
  atf::IndexHeader header_;
  uint64_t record_count_ = 0;
  Bytes events_;
  std::optional<Bytes> details_;
  read::FileBytes copied_events_, copied_details_;
};

}  // namespace collect::convert

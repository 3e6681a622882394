#include "storage/session/session_reserve.h"

#include <algorithm>
#include <vector>

#include "storage/model/session_layout.h"

namespace collect::storage {

SessionReserve::SessionReserve(Fs& fs, const std::string& directory)
    : fs_(fs), path_(directory + "/" + kReserveFile) {}

Status SessionReserve::grow_to(uint64_t bytes) {
  if (bytes <= bytes_) return {};
  const bool is_new = !fs_.exists(path_);
  auto file = fs_.open(path_, is_new ? OpenMode::kCreate : OpenMode::kReadWrite);
  if (!file.ok()) return file.error();
  const std::vector<uint8_t> zeros(static_cast<size_t>(bytes - bytes_));
  const Bytes parts[] = {zeros};
  COLLECT_TRY((*file)->write_at(bytes_, parts));
  bytes_ = bytes;
  return {};
}

Status SessionReserve::release() {
  bytes_ = 0;
  if (!fs_.exists(path_)) return {};
  return fs_.remove_file(path_);
}

}  // namespace collect::storage

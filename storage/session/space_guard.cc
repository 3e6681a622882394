#include "storage/session/space_guard.h"

#include <fmt/core.h>

#include <algorithm>
#include <vector>

#include "storage/model/session_layout.h"

namespace collect::storage {
namespace {

constexpr uint64_t kLooksUntilFull = 16;
constexpr uint64_t kMaxUnaskedBytes = 64ull << 20;

}  // namespace

Status SpaceGuard::admit(uint64_t stored, uint64_t more, uint64_t pending) {
  if (limits_.max_session_bytes != 0 && stored + pending + more > limits_.max_session_bytes) {
    return Error{Code::kLimit,
                 fmt::format("max_session_bytes reached: {} has {} bytes of at most {}", directory_,
                             stored + pending, limits_.max_session_bytes)};
  }
  if (limits_.keep_free_bytes == 0) return {};
  if (more <= unasked_bytes_) {
    unasked_bytes_ -= more;
    return {};
  }
  unasked_bytes_ = 0;
  const auto space = fs_.space(directory_);
  if (!space.ok()) return {};  // the write will say what is wrong there
  if (space->free_bytes < limits_.keep_free_bytes ||
      space->free_bytes - limits_.keep_free_bytes < pending + more) {
    return Error{
        Code::kNoSpace,
        fmt::format(
            "keep_free_bytes reached: {} bytes are free on the disk of {}, and {} are to stay free",
            space->free_bytes, directory_, limits_.keep_free_bytes)};
  }
  unasked_bytes_ =
      std::min((space->free_bytes - limits_.keep_free_bytes - pending - more) / kLooksUntilFull,
               kMaxUnaskedBytes);
  return {};
}

size_t SpaceGuard::room_for(uint64_t stored, std::span<const Page> pages, uint64_t copies,
                            Status& full) {
  uint64_t pending = 0;
  for (size_t at = 0; at < pages.size(); ++at) {
    const uint64_t bytes = copies * pages[at].bytes.size();
    full = admit(stored, bytes, pending);
    if (!full.ok()) return at;
    pending += bytes;
  }
  return pages.size();
}

Status SpaceGuard::admit_files(uint64_t more) {
  if (limits_.keep_free_files == 0) return {};
  const auto space = fs_.space(directory_);
  if (!space.ok()) return {};  // making them will say what is wrong there
  const uint64_t kept = limits_.keep_free_files;
  if (space->free_files >= kept && space->free_files - kept >= more) return {};
  return Error{Code::kNoSpace, fmt::format("keep_free_files reached: the disk of {} has room for "
                                           "{} more files, and for {} there is to be room",
                                           directory_, space->free_files, kept)};
}

SessionReserve::SessionReserve(Fs& fs, const std::string& directory)
    : fs_(fs), path_(fmt::format("{}/{}", directory, kReserveFile)) {}

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

#include "storage/space_guard.h"

#include <algorithm>

namespace collect::storage {
namespace {

constexpr uint64_t kLooksUntilFull = 16;
constexpr uint64_t kMaxUnaskedBytes = 64ull << 20;

}  // namespace

Status SpaceGuard::admit(uint64_t stored, uint64_t more, uint64_t pending) {
  if (max_session_bytes_ != 0 && stored + pending + more > max_session_bytes_) {
    return Error{Code::kLimit, "max_session_bytes reached: " + directory_ + " has " +
                                   std::to_string(stored + pending) + " bytes of at most " +
                                   std::to_string(max_session_bytes_)};
  }
  if (keep_free_bytes_ == 0) return {};
  if (more <= unasked_bytes_) {
    unasked_bytes_ -= more;
    return {};
  }
  unasked_bytes_ = 0;
  const auto space = fs_.space(directory_);
  if (!space.ok()) return {};  // the write will say what is wrong there
  if (space->free_bytes < keep_free_bytes_ ||
      space->free_bytes - keep_free_bytes_ < pending + more) {
    return Error{Code::kNoSpace, "keep_free_bytes reached: " + std::to_string(space->free_bytes) +
                                     " bytes are free on the disk of " + directory_ + ", and " +
                                     std::to_string(keep_free_bytes_) + " are to stay free"};
  }
  unasked_bytes_ = std::min(
      (space->free_bytes - keep_free_bytes_ - pending - more) / kLooksUntilFull, kMaxUnaskedBytes);
  return {};
}

}  // namespace collect::storage

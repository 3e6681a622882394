#include "storage/session/space_guard.h"

#include <algorithm>

namespace collect::storage {
namespace {

constexpr uint64_t kLooksUntilFull = 16;
constexpr uint64_t kMaxUnaskedBytes = 64ull << 20;

}  // namespace

Status SpaceGuard::admit(uint64_t stored, uint64_t more, uint64_t pending) {
  if (limits_.max_session_bytes != 0 && stored + pending + more > limits_.max_session_bytes) {
    return Error{Code::kLimit, "max_session_bytes reached: " + directory_ + " has " +
                                   std::to_string(stored + pending) + " bytes of at most " +
                                   std::to_string(limits_.max_session_bytes)};
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
    return Error{Code::kNoSpace, "keep_free_bytes reached: " + std::to_string(space->free_bytes) +
                                     " bytes are free on the disk of " + directory_ + ", and " +
                                     std::to_string(limits_.keep_free_bytes) + " are to stay free"};
  }
  unasked_bytes_ =
      std::min((space->free_bytes - limits_.keep_free_bytes - pending - more) / kLooksUntilFull,
               kMaxUnaskedBytes);
  return {};
}

Status SpaceGuard::admit_files(uint64_t more) {
  if (limits_.keep_free_files == 0) return {};
  const auto space = fs_.space(directory_);
  if (!space.ok()) return {};  // making them will say what is wrong there
  const uint64_t kept = limits_.keep_free_files;
  if (space->free_files >= kept && space->free_files - kept >= more) return {};
  return Error{Code::kNoSpace, "keep_free_files reached: the disk of " + directory_ +
                                   " has room for " + std::to_string(space->free_files) +
                                   " more files, and for " + std::to_string(kept) +
                                   " there is to be room"};
}

}  // namespace collect::storage

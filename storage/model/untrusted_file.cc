#include "storage/model/untrusted_file.h"

#include <fmt/core.h>

#include <algorithm>

namespace collect::storage {
namespace {

constexpr uint64_t kLookAgainBytes = 64u << 20;

}  // namespace

Status UntrustedSpace::look() {
  const auto space = fs_.space(directory_);
  if (!space.ok()) return space.error();
  const uint64_t free = space->free_bytes - std::min(space->free_bytes, kDefaultKeepFreeBytes);
  left_ = std::min(left_.value_or(UINT64_MAX), free);
  unlooked_ = 0;
  return {};
}

Status UntrustedSpace::expect(uint64_t bytes) {
  if (!left_) COLLECT_TRY(look());
  if (bytes <= *left_) return {};
  return Error{
      Code::kNoSpace,
      fmt::format(
          "{}: {} bytes are announced, and the disk has room for {}; -o names another directory",
          directory_, bytes, *left_)};
}

Status UntrustedSpace::take(uint64_t bytes) {
  if (!left_ || unlooked_ >= kLookAgainBytes) COLLECT_TRY(look());
  COLLECT_TRY(expect(bytes));
  *left_ -= bytes;
  unlooked_ += bytes;
  return {};
}

Result<UntrustedFile> UntrustedFile::open(Fs& fs, const std::string& path,
                                          std::optional<uint64_t> announced, UntrustedSpace& space,
                                          bool resume) {
  const std::string part = path + kPartSuffix;
  auto file = fs.open(part, OpenMode::kReadWrite);
  if (!file.ok() && file.code() == Code::kNotFound) file = fs.open(part, OpenMode::kCreate);
  if (!file.ok()) return file.error();
  auto size = (*file)->size();
  if (!size.ok()) return size.error();
  if (*size != 0 && (!resume || (announced && *size > *announced))) {
    COLLECT_TRY((*file)->truncate(0));
    *size = 0;
  }
  if (announced) {
    const Status has_room = space.expect(*announced - *size);
    if (!has_room.ok() && *size == 0) (void)fs.remove_file(part);
    COLLECT_TRY(has_room);
  }
  return UntrustedFile(fs, path, announced, space, std::move(*file), *size);
}

Status UntrustedFile::append(Bytes bytes) {
  if (announced_ && bytes.size() > *announced_ - size_) {
    return Error{Code::kDamaged, fmt::format("{}: more came than the {} bytes that were announced",
                                             path_, *announced_)};
  }
  COLLECT_TRY(space_.take(bytes.size()));
  const Bytes parts[] = {bytes};
  COLLECT_TRY(file_->write_at(size_, parts));
  size_ += bytes.size();
  return {};
}

Status UntrustedFile::finish(bool durable) {
  if (announced_ && size_ != *announced_) {
    return Error{Code::kDamaged, fmt::format("{}: {} of the {} bytes came that were announced",
                                             path_, size_, *announced_)};
  }
  if (durable) COLLECT_TRY(file_->sync());
  COLLECT_TRY(fs_.rename(path_ + kPartSuffix, path_));
  return durable ? fs_.sync_directory(path_.substr(0, path_.rfind('/'))) : Status();
}

void UntrustedFile::discard() {
  file_.reset();
  (void)fs_.remove_file(path_ + kPartSuffix);
}

}  // namespace collect::storage

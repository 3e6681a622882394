#include "tests/storage/fault_fs.h"

#include <algorithm>

namespace collect::storage::test {

class FaultFile final : public File {
 public:
  FaultFile(FaultFs& fs, std::unique_ptr<File> file, std::shared_ptr<FaultFs::Inode> inode)
      : fs_(fs), file_(std::move(file)), inode_(std::move(inode)) {}

  const std::string& path() const override { return file_->path(); }
  Result<uint64_t> size() override { return file_->size(); }
  Result<size_t> read_at(uint64_t offset, MutableBytes out) override {
    return file_->read_at(offset, out);
  }

  Status write_at(uint64_t offset, std::span<const Bytes> parts) override {
    const std::lock_guard lock(fs_.mutex_);
    std::vector<uint8_t> bytes;
    for (const Bytes part : parts) bytes.insert(bytes.end(), part.begin(), part.end());
    const Status changed = fs_.change();
    if (!changed.ok()) {
      if (fs_.plan_.short_write && !fs_.crashed_before_) {
        (void)write_part(offset, bytes, bytes.size() / 2);
      }
      return changed;
    }
    const uint64_t end = std::max(inode_->bytes, offset + bytes.size());
    const uint64_t used = fs_.used();
    if (used - inode_->bytes + end > fs_.plan_.capacity) {
      const uint64_t room = fs_.plan_.capacity - std::min(fs_.plan_.capacity, used - inode_->bytes);
      const uint64_t fits = room > offset ? std::min<uint64_t>(room - offset, bytes.size()) : 0;
      if (offset + bytes.size() > inode_->bytes) {
        fs_.failed_ = true;
        (void)write_part(offset, bytes, static_cast<size_t>(fits));
        return Error{Code::kNoSpace, path() + ": the disk is full"};
      }
    }
    return write_part(offset, bytes, bytes.size());
  }

  Status truncate(uint64_t bytes) override {
    const std::lock_guard lock(fs_.mutex_);
    COLLECT_TRY(fs_.change());
    COLLECT_TRY(file_->truncate(bytes));
    inode_->bytes = bytes;
    return {};
  }

  Status sync() override {
    const std::lock_guard lock(fs_.mutex_);
    return fs_.change(true);
  }

 private:
  Status write_part(uint64_t offset, const std::vector<uint8_t>& bytes, size_t count) {
    if (count == 0) return {};
    const Bytes part[] = {Bytes(bytes).first(count)};
    COLLECT_TRY(file_->write_at(offset, part));
    inode_->bytes = std::max(inode_->bytes, offset + count);
    return {};
  }

  FaultFs& fs_;
  std::unique_ptr<File> file_;
  std::shared_ptr<FaultFs::Inode> inode_;
};

Status FaultFs::change(bool is_sync) {
  crashed_before_ = crashed_;
  if (crashed_) return Error{Code::kIo, "the process is gone"};
  if (plan_.syncs_only && !is_sync) return {};
  const uint64_t number = changes_++;
  if (number != plan_.fail_at && !(plan_.lasting && failed_)) return {};
  failed_ = true;
  crashed_ = plan_.crash;
  return Error{plan_.code, "change " + std::to_string(plan_.fail_at) + " fails on request"};
}

uint64_t FaultFs::used() const {
  const std::lock_guard lock(mutex_);
  uint64_t bytes = 0;
  for (const auto& [path, inode] : files_) bytes += inode->bytes;
  return bytes;
}

Result<std::unique_ptr<File>> FaultFs::open(const std::string& path, OpenMode mode) {
  const std::lock_guard lock(mutex_);
  if (mode == OpenMode::kCreate || mode == OpenMode::kCreatePrivate) COLLECT_TRY(change());
  if (crashed_) return Error{Code::kIo, "the process is gone"};
  auto file = real_.open(path, mode);
  if (!file.ok()) return file.error();
  std::shared_ptr<Inode>& inode = files_[path];
  if (inode == nullptr) {
    inode = std::make_shared<Inode>();
    auto size = (*file)->size();
    inode->bytes = size.ok() ? *size : 0;
  }
  return std::unique_ptr<File>(std::make_unique<FaultFile>(*this, std::move(*file), inode));
}

Status FaultFs::make_directory(const std::string& path) {
  const std::lock_guard lock(mutex_);
  COLLECT_TRY(change());
  COLLECT_TRY(real_.make_directory(path));
  return {};
}

Status FaultFs::rename(const std::string& from, const std::string& to) {
  const std::lock_guard lock(mutex_);
  COLLECT_TRY(change());
  COLLECT_TRY(real_.rename(from, to));
  files_[to] = files_[from];
  files_.erase(from);
  return {};
}

Status FaultFs::remove_file(const std::string& path) {
  const std::lock_guard lock(mutex_);
  COLLECT_TRY(change());
  COLLECT_TRY(real_.remove_file(path));
  files_.erase(path);
  return {};
}

Status FaultFs::remove_directory(const std::string& path) {
  const std::lock_guard lock(mutex_);
  COLLECT_TRY(change());
  COLLECT_TRY(real_.remove_directory(path));
  return {};
}

Status FaultFs::sync_directory(const std::string& path) {
  const std::lock_guard lock(mutex_);
  COLLECT_TRY(change(true));
  return real_.sync_directory(path);
}

Result<SpaceInfo> FaultFs::space(const std::string& path) {
  const std::lock_guard lock(mutex_);
  auto space = real_.space(path);
  if (space.ok()) space->free_bytes = std::min(space->free_bytes, free_bytes);
  if (space.ok() && free_files) space->free_files = *free_files;
  return space;
}

Result<std::vector<std::string>> FaultFs::list_directory(const std::string& path) {
  const std::lock_guard lock(mutex_);
  if (crashed_) return Error{Code::kIo, "the process is gone"};
  return real_.list_directory(path);
}

}  // namespace collect::storage::test

#include "storage/changed_files.h"

#include <algorithm>
#include <utility>

#include "storage/session_files.h"

namespace collect::storage {
namespace {

uint64_t bytes_in(std::span<const Bytes> parts) {
  uint64_t bytes = 0;
  for (const Bytes part : parts) bytes += part.size();
  return bytes;
}

}  // namespace

void ChangedFile::cut(uint64_t bytes) {
  if (is_whole) return;
  cut_to = std::min(bytes, cut_to.value_or(bytes));
  ranges.erase(ranges.lower_bound(bytes), ranges.end());
  if (!ranges.empty()) ranges.rbegin()->second = std::min(ranges.rbegin()->second, bytes);
}

void ChangedFile::write(uint64_t from, uint64_t to) {
  if (is_whole || from == to) return;
  auto at = ranges.upper_bound(from);
  if (at != ranges.begin() && std::prev(at)->second >= from) at = std::prev(at);
  while (at != ranges.end() && at->first <= to) {
    from = std::min(from, at->first);
    to = std::max(to, at->second);
    at = ranges.erase(at);
  }
  ranges.emplace(from, to);
  if (ranges.size() <= kMaxChangedRanges) return;
  auto before = ranges.begin();
  for (auto one = ranges.begin(); std::next(one) != ranges.end(); ++one) {
    const auto hole = [](auto range) { return std::next(range)->first - range->second; };
    if (hole(one) < hole(before)) before = one;
  }
  before->second = std::next(before)->second;
  ranges.erase(std::next(before));
}

void ChangedFile::then(const ChangedFile& later) {
  if (later.is_removed || later.is_whole) {
    *this = later;
    return;
  }
  is_removed = is_removed && !later.cut_to && later.ranges.empty();
  if (later.cut_to) cut(*later.cut_to);
  for (const auto& [from, to] : later.ranges) write(from, to);
}

void add_changes(ChangedFiles& changes, const ChangedFiles& later) {
  for (const auto& [path, file] : later) changes[path].then(file);
}

Result<ChangedFiles> all_files(Fs& fs, const SessionPath& session_path) {
  const auto listed = list_session_files(fs, session_path);
  if (!listed.ok()) return listed.error();
  ChangedFiles files;
  for (const SessionFileInfo& file : *listed) files[file.path].is_whole = true;
  return files;
}

class ChangeTrackingFs::TrackedFile final : public File {
 public:
  TrackedFile(std::shared_ptr<Changes> changes, std::string path, std::unique_ptr<File> file)
      : changes_(std::move(changes)), path_(std::move(path)), file_(std::move(file)) {}

  const std::string& path() const override { return file_->path(); }
  Result<uint64_t> size() override { return file_->size(); }
  // Also of a write that failed: it may have left anything there.
  Status write_at(uint64_t offset, std::span<const Bytes> parts) override {
    const Status written = file_->write_at(offset, parts);
    const std::lock_guard lock(changes_->mutex);
    changes_->files[path_].write(offset, offset + bytes_in(parts));
    return written;
  }
  Result<size_t> read_at(uint64_t offset, MutableBytes out) override {
    return file_->read_at(offset, out);
  }
  Status truncate(uint64_t bytes) override {
    COLLECT_TRY(file_->truncate(bytes));
    const std::lock_guard lock(changes_->mutex);
    changes_->files[path_].cut(bytes);
    return {};
  }
  void set_aside(uint64_t offset, uint64_t bytes) override { file_->set_aside(offset, bytes); }
  Status sync() override { return file_->sync(); }

 private:
  const std::shared_ptr<Changes> changes_;
  const std::string path_;  // as it was opened
  const std::unique_ptr<File> file_;
};

ChangedFiles ChangeTrackingFs::take(const std::string& directory) {
  ChangedFiles all;
  {
    const std::lock_guard lock(changes_->mutex);
    all.swap(changes_->files);
  }
  ChangedFiles below;
  const std::string start = directory + "/";
  for (auto& [path, file] : all) {
    if (!path.starts_with(start)) continue;
    std::string name = path.substr(start.size());
    if (is_session_path(name)) below.emplace(std::move(name), std::move(file));
  }
  return below;
}

bool ChangeTrackingFs::has_changes() const {
  const std::lock_guard lock(changes_->mutex);
  return !changes_->files.empty();
}

Result<std::unique_ptr<File>> ChangeTrackingFs::open(const std::string& path, OpenMode mode) {
  auto file = fs_.open(path, mode);
  if (!file.ok() || mode == OpenMode::kRead) return file;
  if (mode == OpenMode::kCreate || mode == OpenMode::kCreatePrivate) {
    const std::lock_guard lock(changes_->mutex);
    ChangedFile made;
    made.cut(0);
    changes_->files[path] = made;
  }
  return std::unique_ptr<File>(new TrackedFile(changes_, path, std::move(*file)));
}

Status ChangeTrackingFs::rename(const std::string& from, const std::string& to) {
  COLLECT_TRY(fs_.rename(from, to));
  const std::lock_guard lock(changes_->mutex);
  ChangedFile& source = changes_->files[from];
  const bool is_new = source.cut_to == 0;  // no copy has it
  source = {};
  source.is_removed = true;
  if (is_new) changes_->files.erase(from);
  ChangedFile& target = changes_->files[to];
  target = {};
  target.is_whole = true;
  return {};
}

Status ChangeTrackingFs::remove_file(const std::string& path) {
  COLLECT_TRY(fs_.remove_file(path));
  const std::lock_guard lock(changes_->mutex);
  ChangedFile& file = changes_->files[path];
  file = {};
  file.is_removed = true;
  return {};
}

}  // namespace collect::storage

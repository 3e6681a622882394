#include "tests/fleet/memory_disk.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "tests/fleet/heap_use.h"

namespace collect::fleet {
namespace {

using storage::File;
using storage::FileLock;
using storage::OpenMode;

Error missing(const std::string& path) {
  return {Code::kNotFound, path + ": no such file"};
}

}  // namespace

class MemoryFile final : public File {
 public:
  MemoryFile(MemoryDisk& disk, std::shared_ptr<std::atomic<bool>> mounted,
             std::shared_ptr<MemoryDisk::Node> node, std::string path)
      : disk_(disk), mounted_(std::move(mounted)), node_(std::move(node)), path_(std::move(path)) {
    ++disk_.open_;
  }
  ~MemoryFile() override { --disk_.open_; }

  const std::string& path() const override { return path_; }
  Result<uint64_t> size() override {
    COLLECT_TRY(check());
    const std::lock_guard lock(disk_.mutex_);
    return static_cast<uint64_t>(node_->bytes.size());
  }
  Status write_at(uint64_t offset, std::span<const Bytes> parts) override {
    COLLECT_TRY(check());
    const HeapScope scope(HeapOwner::kDisks);
    const std::lock_guard lock(disk_.mutex_);
    for (const Bytes part : parts) {
      COLLECT_TRY(resize(std::max<uint64_t>(node_->bytes.size(), offset + part.size())));
      if (!part.empty()) std::memcpy(node_->bytes.data() + offset, part.data(), part.size());
      offset += part.size();
    }
    return {};
  }
  Result<size_t> read_at(uint64_t offset, MutableBytes out) override {
    COLLECT_TRY(check());
    const std::lock_guard lock(disk_.mutex_);
    if (offset >= node_->bytes.size()) return size_t{0};
    const size_t count = std::min<uint64_t>(out.size(), node_->bytes.size() - offset);
    std::memcpy(out.data(), node_->bytes.data() + offset, count);
    return count;
  }
  Status truncate(uint64_t bytes) override {
    COLLECT_TRY(check());
    const HeapScope scope(HeapOwner::kDisks);
    const std::lock_guard lock(disk_.mutex_);
    return resize(bytes);
  }
  Status sync() override { return check(); }

 private:
  Status check() const {
    if (*mounted_ && !disk_.dead_) return {};
    return Error{Code::kIo, path_ + ": Input/output error"};
  }
  // With the disk's mutex held.
  Status resize(uint64_t bytes) {
    const uint64_t before = node_->bytes.size();
    if (bytes > before && disk_.used_ + (bytes - before) > disk_.capacity_) {
      return Error{Code::kNoSpace, path_ + ": No space left on device"};
    }
    node_->bytes.resize(bytes);
    disk_.used_ += bytes - before;  // modulo 2^64, where it shrinks
    return {};
  }

  MemoryDisk& disk_;
  const std::shared_ptr<std::atomic<bool>> mounted_;
  const std::shared_ptr<MemoryDisk::Node> node_;
  const std::string path_;
};

class MemoryLock final : public FileLock {
 public:
  MemoryLock(MemoryDisk& disk, std::string path) : disk_(disk), path_(std::move(path)) {}
  ~MemoryLock() override {
    const std::lock_guard lock(disk_.mutex_);
    disk_.locks_.erase(path_);
  }
  bool holds(const std::string& path) const override { return path == path_; }

 private:
  MemoryDisk& disk_;
  const std::string path_;
};

std::shared_ptr<MemoryDisk::Node> MemoryDisk::find(std::string_view path) const {
  std::shared_ptr<Node> node = root_;
  while (node != nullptr && !path.empty()) {
    const size_t slash = std::min(path.find('/'), path.size());
    const std::string_view name = path.substr(0, slash);
    path.remove_prefix(std::min(slash + 1, path.size()));
    if (name.empty()) continue;
    const auto child = node->children.find(name);
    node = child == node->children.end() ? nullptr : child->second;
  }
  return node;
}

std::pair<std::shared_ptr<MemoryDisk::Node>, std::string> MemoryDisk::parent_of(
    std::string_view path) const {
  while (path.size() > 1 && path.ends_with('/')) path.remove_suffix(1);
  const size_t slash = path.rfind('/');
  if (slash == std::string_view::npos) return {root_, std::string(path)};
  return {find(path.substr(0, slash)), std::string(path.substr(slash + 1))};
}

Status MemoryFs::check(const std::string& path) const {
  if (*mounted_ && !disk_.dead_) return {};
  return Error{Code::kIo, path + ": Input/output error"};
}

Result<std::unique_ptr<File>> MemoryFs::open(const std::string& path, OpenMode mode) {
  COLLECT_TRY(check(path));
  const std::lock_guard lock(disk_.mutex_);
  std::shared_ptr<MemoryDisk::Node> node = disk_.find(path);
  if (mode == OpenMode::kCreate || mode == OpenMode::kCreatePrivate) {
    if (node != nullptr) return Error{Code::kAlreadyExists, path + ": File exists"};
    const HeapScope scope(HeapOwner::kDisks);
    const auto [parent, name] = disk_.parent_of(path);
    if (parent == nullptr) return missing(path);
    node = std::make_shared<MemoryDisk::Node>();
    parent->children[name] = node;
  }
  if (node == nullptr || node->is_directory) return missing(path);
  return std::unique_ptr<File>(std::make_unique<MemoryFile>(disk_, mounted_, node, path));
}

Status MemoryFs::make_directory(const std::string& path) {
  COLLECT_TRY(check(path));
  const HeapScope scope(HeapOwner::kDisks);
  const std::lock_guard lock(disk_.mutex_);
  if (disk_.find(path) != nullptr) return Error{Code::kAlreadyExists, path + ": File exists"};
  const auto [parent, name] = disk_.parent_of(path);
  if (parent == nullptr) return missing(path);
  parent->children[name] = std::make_shared<MemoryDisk::Node>(MemoryDisk::Node{true, {}, {}});
  return {};
}

Status MemoryFs::rename(const std::string& from, const std::string& to) {
  COLLECT_TRY(check(from));
  const HeapScope scope(HeapOwner::kDisks);
  const std::lock_guard lock(disk_.mutex_);
  const auto node = disk_.find(from);
  const auto [source, old_name] = disk_.parent_of(from);
  const auto [target, new_name] = disk_.parent_of(to);
  if (node == nullptr || target == nullptr) return missing(from);
  if (const auto replaced = disk_.find(to)) disk_.used_ -= replaced->bytes.size();
  source->children.erase(old_name);
  target->children[new_name] = node;
  return {};
}

Status MemoryFs::remove(const std::string& path, bool is_directory) {
  COLLECT_TRY(check(path));
  const std::lock_guard lock(disk_.mutex_);
  const auto node = disk_.find(path);
  if (node == nullptr || node->is_directory != is_directory) return missing(path);
  if (!node->children.empty()) return Error{Code::kIo, path + ": Directory not empty"};
  disk_.used_ -= node->bytes.size();
  const auto [parent, name] = disk_.parent_of(path);
  parent->children.erase(name);
  return {};
}

Status MemoryFs::remove_file(const std::string& path) {
  return remove(path, false);
}

Status MemoryFs::remove_directory(const std::string& path) {
  return remove(path, true);
}

Status MemoryFs::sync_directory(const std::string& path) {
  return check(path);
}

Result<std::vector<std::string>> MemoryFs::list_directory(const std::string& path) {
  COLLECT_TRY(check(path));
  const std::lock_guard lock(disk_.mutex_);
  const auto node = disk_.find(path);
  if (node == nullptr || !node->is_directory) return missing(path);
  std::vector<std::string> names;
  for (const auto& [name, child] : node->children) names.push_back(name);
  return names;
}

bool MemoryFs::exists(const std::string& path) {
  const std::lock_guard lock(disk_.mutex_);
  return check(path).ok() && disk_.find(path) != nullptr;
}

Result<storage::SpaceInfo> MemoryFs::space(const std::string& path) {
  COLLECT_TRY(check(path));
  storage::SpaceInfo space;
  space.total_bytes = disk_.capacity_;
  space.free_bytes = disk_.capacity_ - std::min<uint64_t>(disk_.capacity_, disk_.used_);
  return space;
}

Result<std::unique_ptr<FileLock>> MemoryFs::lock(const std::string& path) {
  COLLECT_TRY(check(path));
  const std::lock_guard lock(disk_.mutex_);
  if (!disk_.locks_.insert(path).second) {
    return Error{Code::kUnavailable, path + ": held by another process"};
  }
  return std::unique_ptr<FileLock>(std::make_unique<MemoryLock>(disk_, path));
}

}  // namespace collect::fleet

// A file system of real files, of which only so many can be open; counts what is written to
// manifests, and the files of threads that are closed unsynced. Thread-safe.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "storage/fs/posix_fs.h"

namespace collect::storage::test {

class LimitedFs final : public Fs {
 public:
  std::atomic<size_t> max_open{SIZE_MAX};
  std::atomic<size_t> open_now{0};
  std::atomic<uint64_t> refused{0};  // for want of descriptors
  std::atomic<uint64_t> manifest_bytes{0};
  std::atomic<uint64_t> manifests{0};
  std::atomic<uint64_t> manifest_reads{0};
  // Thread files that were changed and then closed without a sync: the system may report that it
  // lost their bytes to no one.
  std::atomic<uint64_t> closed_unsynced{0};
  // Offsets and bytes of what was set aside.
  std::vector<std::pair<uint64_t, uint64_t>> aside() const {
    std::lock_guard lock(mutex_);
    return aside_;
  }

  class Counted final : public File {
   public:
    Counted(LimitedFs& fs, std::unique_ptr<File> file) : fs_(fs), file_(std::move(file)) {
      ++fs_.open_now;
    }
    ~Counted() override {
      --fs_.open_now;
      if (changed_ && path().find("/thread_") != std::string::npos) ++fs_.closed_unsynced;
    }
    const std::string& path() const override { return file_->path(); }
    Result<uint64_t> size() override { return file_->size(); }
    Status write_at(uint64_t offset, std::span<const Bytes> parts) override {
      if (path().ends_with("manifest.json.new")) {
        for (const Bytes part : parts) fs_.manifest_bytes += part.size();
        ++fs_.manifests;
      }
      changed_ = true;
      return file_->write_at(offset, parts);
    }
    Result<size_t> read_at(uint64_t offset, MutableBytes out) override {
      return file_->read_at(offset, out);
    }
    Status truncate(uint64_t bytes) override {
      changed_ = true;
      return file_->truncate(bytes);
    }
    void set_aside(uint64_t offset, uint64_t bytes) override {
      fs_.note_aside(offset, bytes);
      file_->set_aside(offset, bytes);
    }
    Status sync() override {
      changed_ = false;
      return file_->sync();
    }

   private:
    LimitedFs& fs_;
    std::unique_ptr<File> file_;
    bool changed_ = false;  // since the last sync
  };

  Result<std::unique_ptr<File>> open(const std::string& path, OpenMode mode) override {
    if (open_now >= max_open) return exhausted(path);
    if (mode == OpenMode::kRead && path.ends_with("manifest.json")) ++manifest_reads;
    auto file = real_.open(path, mode);
    if (!file.ok()) return file.error();
    return std::unique_ptr<File>(std::make_unique<Counted>(*this, std::move(*file)));
  }
  Status make_directory(const std::string& path) override { return real_.make_directory(path); }
  Status rename(const std::string& from, const std::string& to) override {
    return real_.rename(from, to);
  }
  Status remove_file(const std::string& path) override { return real_.remove_file(path); }
  Status remove_directory(const std::string& path) override { return real_.remove_directory(path); }
  Status sync_directory(const std::string& path) override {
    if (open_now >= max_open) return exhausted(path);
    return real_.sync_directory(path);
  }
  Result<std::vector<std::string>> list_directory(const std::string& path) override {
    return real_.list_directory(path);
  }
  bool exists(const std::string& path) override { return real_.exists(path); }
  Result<SpaceInfo> space(const std::string& path) override { return real_.space(path); }
  Result<std::unique_ptr<FileLock>> lock(const std::string& path) override {
    return real_.lock(path);
  }

 private:
  Error exhausted(const std::string& path) {
    ++refused;
    return {Code::kExhausted, path + ": too many open files"};
  }

  void note_aside(uint64_t offset, uint64_t bytes) {
    std::lock_guard lock(mutex_);
    aside_.emplace_back(offset, bytes);
  }

  PosixFs real_;
  mutable std::mutex mutex_;
  std::vector<std::pair<uint64_t, uint64_t>> aside_;  // guarded by mutex_
};

}  // namespace collect::storage::test

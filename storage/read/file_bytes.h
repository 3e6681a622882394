// The bytes of one file, for reading.
//
// A file that shrinks while it is mapped ends the program (SIGBUS). collectord cuts off
// half-written records at the end, and only while it recovers a session.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "formats/core/bytes.h"
#include "formats/core/result.h"
#include "storage/fs/rooted_directory.h"
#include "storage/read/on_demand.h"

namespace collect::read {

// Files up to this size are copied: a session may have more threads than a process may have
// mappings.
inline constexpr uint64_t kMaxCopiedBytes = 64 << 10;

// Mapped, copied or made on demand; of a gzip file, what unpacks of it (gzip_file.h). Movable; the
// bytes stay where they are.
class FileBytes {
 public:
  // A file that the user named.
  static Result<FileBytes> open(const std::string& path);
  // One that was found below a directory that the user named.
  static Result<FileBytes> open(const storage::RootedDirectory& directory, std::string_view below);
  // The bytes of an open regular file as they are; they do not need the descriptor any more.
  static Result<FileBytes> of(int fd, const std::string& path);
  // Bytes of no file, which `fill` makes when they are read (on_demand.h), or at once where they
  // are few.
  static Result<FileBytes> made(uint64_t size, OnDemand::Fill fill);

  FileBytes() = default;
  FileBytes(FileBytes&& other) noexcept { swap(other); }
  FileBytes& operator=(FileBytes&& other) noexcept {
    swap(other);
    return *this;
  }
  ~FileBytes();

  // The pages that were read leave this process's memory; they come back when they are read again.
  // So a pass over a large file keeps little of it.
  void drop_pages() const;

  // What a gzip file lacks that is cut off or damaged: a sentence, with path and offset. Else
  // empty.
  const std::string& missing() const { return missing_; }
  // Of bytes that are made when they are read: what makes them, for a pass over all that keeps a
  // block of its own (atf::BringBytes). Else null.
  const OnDemand::Fill* fill() const { return on_demand_ ? &on_demand_->fill() : nullptr; }
  Bytes bytes() const {
    if (on_demand_) return on_demand_->bytes();
    return mapping_ != nullptr ? Bytes(mapping_, size_) : Bytes(copy_);
  }

 private:
  static Result<FileBytes> unpacked(const Descriptor& file, const std::string& path);
  void swap(FileBytes& other) noexcept;
  const uint8_t* mapping_ = nullptr;
  size_t size_ = 0;
  std::vector<uint8_t> copy_;
  std::unique_ptr<OnDemand> on_demand_;
  std::string missing_;
};

}  // namespace collect::read

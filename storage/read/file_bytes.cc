#include "storage/read/file_bytes.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "storage/read/gzip_file.h"

namespace collect::read {

FileBytes::~FileBytes() {
  if (mapping_ != nullptr) ::munmap(const_cast<uint8_t*>(mapping_), size_);
}

void FileBytes::swap(FileBytes& other) noexcept {
  std::swap(mapping_, other.mapping_);
  std::swap(size_, other.size_);
  copy_.swap(other.copy_);
  on_demand_.swap(other.on_demand_);
  missing_.swap(other.missing_);
}

Result<FileBytes> FileBytes::open(const std::string& path) {
  const auto file = storage::open_named_file(path);
  return file.ok() ? unpacked(*file, path) : Result<FileBytes>(file.error());
}

Result<FileBytes> FileBytes::open(const storage::RootedDirectory& directory,
                                  std::string_view below) {
  const auto file = directory.open_file(below, storage::FileUse::kRead);
  return file.ok() ? unpacked(*file, directory.path_of(below)) : Result<FileBytes>(file.error());
}

Result<FileBytes> FileBytes::unpacked(const Descriptor& file, const std::string& path) {
  auto own = of(file.get(), path);
  if (!own.ok() || !looks_like_gzip(own->bytes())) return own;
  auto inflated = inflate_gzip(file.get(), path);
  if (!inflated.ok()) return inflated.error();
  auto bytes = inflated->file.bytes();
  if (bytes.ok()) bytes->missing_ = std::move(inflated->missing);
  return bytes;
}

Result<FileBytes> FileBytes::made(uint64_t size, OnDemand::Fill fill) {
  FileBytes result;
  if (size <= kMaxCopiedBytes) {
    result.copy_.resize(size);
    fill(0, result.copy_);
    return result;
  }
  auto on_demand = OnDemand::create(size, std::move(fill));
  if (!on_demand.ok()) return on_demand.error();
  result.on_demand_ = std::move(*on_demand);
  return result;
}

void FileBytes::drop_pages() const {
  if (on_demand_) on_demand_->drop();
  if (mapping_ != nullptr) {
    (void)::madvise(const_cast<uint8_t*>(mapping_), size_, MADV_DONTNEED);
  }
}

Result<FileBytes> FileBytes::of(int fd, const std::string& path) {
  struct stat status{};
  if (::fstat(fd, &status) != 0) return errno_error(errno, path);
  FileBytes result;
  const auto size = static_cast<uint64_t>(status.st_size);
  if (size > kMaxCopiedBytes) {
    void* at = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (at == MAP_FAILED) return errno_error(errno, path);
    // Everything here reads front to back; a larger read-ahead is a hint that may fail.
    (void)::madvise(at, size, MADV_SEQUENTIAL);
    result.mapping_ = static_cast<const uint8_t*>(at);
    result.size_ = size;
    return result;
  }
  result.copy_.resize(size);
  size_t done = 0;
  while (done < size) {
    const ssize_t got =
        ::pread(fd, result.copy_.data() + done, size - done, static_cast<off_t>(done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno_error(errno, path);
    if (got == 0) break;
    done += static_cast<size_t>(got);
  }
  result.copy_.resize(done);
  return result;
}

}  // namespace collect::read

// A file that is there whole or not at all: written under a temporary name beside its place and
// renamed by commit(). Without commit() it is removed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "formats/core/byte_sink.h"

namespace collect::ctl {

class OutputFile final : public ByteSink {
 public:
  // kAlreadyExists when `path` is there and `replace` is not set.
  static Result<OutputFile> create(const std::string& path, bool replace);
  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&&) = delete;
  ~OutputFile() override;

  Status write(Bytes bytes) override;
  Status commit();
  uint64_t size() const { return size_ + buffer_.size(); }
  const std::string& path() const { return path_; }

 private:
  OutputFile(std::string path, std::string temporary, int fd)
      : path_(std::move(path)), temporary_(std::move(temporary)), fd_(fd) {}
  Status drain();

  std::string path_;
  std::string temporary_;
  int fd_ = -1;
  uint64_t size_ = 0;  // in the file
  std::vector<uint8_t> buffer_;
};

}  // namespace collect::ctl

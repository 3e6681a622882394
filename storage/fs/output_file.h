// A file that is there whole or not at all: written without a name in the directory where it is to
// be, and named by commit(). So nothing is left of it when Ctrl-C ends the program. Where the file
// system has no unnamed files it has a temporary name until then. The directory is the user's own
// word; a link in the file's place is replaced, and not followed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "formats/core/byte_sink.h"
#include "storage/fs/leftovers.h"
#include "storage/fs/rooted_directory.h"

namespace collect::storage {

class OutputFile final : public ByteSink {
 public:
  // kAlreadyExists when `path` is there and `replace` is not set, or is no file and no link.
  static Result<OutputFile> create(const std::string& path, bool replace);
  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&&) = delete;
  ~OutputFile() override;

  Status write(Bytes bytes) override;
  Status commit();
  uint64_t size() const { return size_ + buffer_.size(); }
  const std::string& path() const { return path_; }

 private:
  OutputFile(std::string path, bool replace) : path_(std::move(path)), replace_(replace) {}
  Status open();
  Status drain();
  Status give_name();
  Status make_temporary(const std::function<bool(const std::string&)>& make);
  void forget_temporary();
  int link_to(const std::string& name) const;

  std::string path_;
  bool replace_;
  Descriptor directory_;
  std::string name_;       // within the directory
  std::string temporary_;  // empty: the file has no name yet, or its own
  Leftover leftover_;      // the same, for Ctrl-C
  Descriptor fd_;
  uint64_t size_ = 0;  // in the file
  std::vector<uint8_t> buffer_;
};

}  // namespace collect::storage

// One file on its way from a device, by the "sync:" service: RECV, DATA pieces, and DONE or FAIL.
// Lives on the thread of its socket's io_context.
#pragma once

#include <array>
#include <cstdint>
#include <fstream>
#include <memory>
#include <optional>
#include <string>

#include "daemon/attach/device_source.h"
#include "formats/core/result.h"

namespace collect::ctl {

class FilePull : public std::enable_shared_from_this<FilePull> {
 public:
  // Into `path`, a new file; at most `most` bytes.
  static Result<std::shared_ptr<FilePull>> start(attach::Socket socket, const std::string& remote,
                                                 const std::string& path, uint64_t most);

  // Unset while it continues. kIo: what the device, or writing here, says; kLimit: it is larger;
  // kUnavailable: the device went; kDamaged: what came is none of "sync:".
  const std::optional<Status>& result() const { return result_; }
  uint64_t received() const { return received_; }
  void close();

 private:
  FilePull(attach::Socket socket, const std::string& path, uint64_t most)
      : socket_(std::move(socket)), path_(path), most_(most) {}
  void read_header();
  void take_header();
  void read_piece(size_t bytes);
  void read_message(size_t bytes);
  void finish(Status status);
  Error ended() const;

  attach::Socket socket_;
  const std::string path_;
  const uint64_t most_;
  std::ofstream file_;
  std::string request_;
  std::array<char, 8> header_;
  std::string piece_;
  uint64_t received_ = 0;
  std::optional<Status> result_;
};

}  // namespace collect::ctl

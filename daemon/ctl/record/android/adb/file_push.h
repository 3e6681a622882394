// One file on its way to a device, by the "sync:" service: SEND, DATA pieces, DONE, and OKAY or
// FAIL. Lives on the thread of its socket's io_context. The device may refuse in the middle (no
// space), so its answer is read from the start on.
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

class FilePush : public std::enable_shared_from_this<FilePush> {
 public:
  static Result<std::shared_ptr<FilePush>> start(attach::Socket socket, const std::string& path,
                                                 const std::string& remote, uint32_t mode);

  // Unset while it continues. kNoSpace, kIo: what the device says; kUnavailable: it went.
  const std::optional<Status>& result() const { return result_; }
  uint64_t sent() const { return sent_; }
  uint64_t total() const { return total_; }
  void close();

 private:
  FilePush(attach::Socket socket, std::string path)
      : socket_(std::move(socket)), path_(std::move(path)) {}
  void send_next();
  void write(bool is_last);
  void read_answer();
  void read_message(size_t bytes);
  void finish(Status status);

  attach::Socket socket_;
  const std::string path_;
  std::ifstream file_;
  std::string piece_;
  std::array<char, 8> answer_;
  std::string message_;
  uint64_t sent_ = 0;
  uint64_t total_ = 0;
  std::optional<Status> result_;
};

}  // namespace collect::ctl

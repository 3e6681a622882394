#include "daemon/ctl/record/android/adb/file_push.h"

#include <fmt/core.h>
#include <algorithm>
#include <asio/buffer.hpp>
#include <asio/read.hpp>
#include <asio/write.hpp>
#include <ctime>
#include <utility>

#include "daemon/ctl/record/android/adb/adb_device.h"
#include "daemon/ctl/record/android/adb/sync_header.h"

namespace collect::ctl {
Result<std::shared_ptr<FilePush>> FilePush::start(attach::Socket socket, const std::string& path,
                                                  const std::string& remote, uint32_t mode) {
  std::shared_ptr<FilePush> push(new FilePush(std::move(socket), path));
  push->file_.open(path, std::ios::binary | std::ios::ate);
  if (!push->file_) return Error{Code::kIo, path + ": can't be read"};
  push->total_ = static_cast<uint64_t>(push->file_.tellg());
  push->file_.seekg(0);
  const std::string name = fmt::format("{},{}", remote, mode);
  push->piece_ = sync_header("SEND", static_cast<uint32_t>(name.size())) + name;
  push->read_answer();
  push->write(false);
  return push;
}

void FilePush::close() {
  std::error_code ignored;
  socket_.close(ignored);
}

void FilePush::finish(Status status) {
  if (!result_) result_ = std::move(status);
  close();
}

void FilePush::send_next() {
  std::string data(kSyncPieceBytes, '\0');
  file_.read(data.data(), static_cast<std::streamsize>(data.size()));
  data.resize(static_cast<size_t>(file_.gcount()));
  if (data.empty() && sent_ != total_) {
    finish(Error{Code::kIo, fmt::format("{}: can't be read at {}", path_, sent_)});
    return;
  }
  sent_ += data.size();
  const bool is_last = data.empty();
  piece_ = is_last ? sync_header("DONE", static_cast<uint32_t>(std::time(nullptr)))
                   : sync_header("DATA", static_cast<uint32_t>(data.size())) + data;
  write(is_last);
}

void FilePush::write(bool is_last) {
  asio::async_write(socket_, asio::buffer(piece_),
                    [self = shared_from_this(), is_last](const std::error_code& error, size_t) {
                      // What broke a write shows in the answer, which may hold the device's own
                      // reason.
                      if (!error && !is_last && !self->result_) self->send_next();
                    });
}

void FilePush::read_answer() {
  asio::async_read(
      socket_, asio::buffer(answer_),
      [self = shared_from_this()](const std::error_code& error, size_t) {
        const SyncHeader answer = sync_header(self->answer_);
        if (error) {
          self->finish(
              Error{Code::kUnavailable,
                    fmt::format("the connection to the device ended after {} bytes", self->sent_)});
        } else if (answer.word == "OKAY") {
          self->finish({});
        } else if (answer.word == "FAIL") {
          self->read_message(std::min<size_t>(answer.number, kMaxSyncMessageBytes));
        } else {
          self->finish(Error{Code::kDamaged, "neither OKAY nor FAIL was received"});
        }
      });
}

void FilePush::read_message(size_t bytes) {
  message_.resize(bytes);
  asio::async_read(socket_, asio::buffer(message_),
                   [self = shared_from_this()](const std::error_code&, size_t count) {
                     self->message_.resize(count);
                     self->finish(Error{code_of_words(self->message_), self->message_});
                   });
}

}  // namespace collect::ctl

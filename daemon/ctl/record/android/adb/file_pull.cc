#include "daemon/ctl/record/android/adb/file_pull.h"

#include <fmt/core.h>
#include <algorithm>
#include <asio/buffer.hpp>
#include <asio/read.hpp>
#include <asio/write.hpp>
#include <utility>

#include "daemon/ctl/record/android/adb/adb_device.h"
#include "daemon/ctl/record/android/adb/sync_header.h"

namespace collect::ctl {

Result<std::shared_ptr<FilePull>> FilePull::start(attach::Socket socket, const std::string& remote,
                                                  const std::string& path, uint64_t most) {
  std::shared_ptr<FilePull> pull(new FilePull(std::move(socket), path, most));
  pull->file_.open(path, std::ios::binary | std::ios::trunc);
  if (!pull->file_) return Error{Code::kIo, path + ": can't be written"};
  pull->request_ = sync_header("RECV", static_cast<uint32_t>(remote.size())) + remote;
  asio::async_write(pull->socket_, asio::buffer(pull->request_),
                    [pull](const std::error_code& error, size_t) {
                      if (error) {
                        pull->finish(pull->ended());
                      } else {
                        pull->read_header();
                      }
                    });
  return pull;
}

void FilePull::close() {
  std::error_code ignored;
  socket_.close(ignored);
}

Error FilePull::ended() const {
  return {Code::kUnavailable,
          fmt::format("the connection to the device ended after {} bytes", received_)};
}

void FilePull::finish(Status status) {
  if (!result_) {
    file_.close();
    if (status.ok() && !file_) status = Error{Code::kIo, path_ + ": can't be written"};
    result_ = std::move(status);
  }
  close();
}

void FilePull::read_header() {
  asio::async_read(socket_, asio::buffer(header_),
                   [self = shared_from_this()](const std::error_code& error, size_t) {
                     if (error) {
                       self->finish(self->ended());
                     } else {
                       self->take_header();
                     }
                   });
}

void FilePull::take_header() {
  const SyncHeader header = sync_header(header_);
  if (header.word == "DONE") {
    finish({});
  } else if (header.word == "FAIL") {
    read_message(std::min<size_t>(header.number, kMaxSyncMessageBytes));
  } else if (header.word != "DATA" || header.number > kSyncPieceBytes) {
    finish(Error{Code::kDamaged, "neither a piece of a file nor its end came"});
  } else if (received_ + header.number > most_) {
    finish(Error{Code::kLimit, fmt::format("it has more than {} bytes", most_)});
  } else {
    read_piece(header.number);
  }
}

void FilePull::read_piece(size_t bytes) {
  piece_.resize(bytes);
  asio::async_read(socket_, asio::buffer(piece_),
                   [self = shared_from_this()](const std::error_code& error, size_t) {
                     if (error) {
                       self->finish(self->ended());
                       return;
                     }
                     self->received_ += self->piece_.size();
                     self->file_.write(self->piece_.data(),
                                       static_cast<std::streamsize>(self->piece_.size()));
                     if (self->file_) {
                       self->read_header();
                     } else {
                       self->finish(Error{Code::kIo, self->path_ + ": can't be written"});
                     }
                   });
}

void FilePull::read_message(size_t bytes) {
  piece_.resize(bytes);
  asio::async_read(socket_, asio::buffer(piece_),
                   [self = shared_from_this()](const std::error_code&, size_t count) {
                     self->piece_.resize(count);
                     self->finish(Error{code_of_words(self->piece_), self->piece_});
                   });
}

}  // namespace collect::ctl

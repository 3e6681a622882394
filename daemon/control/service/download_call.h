// DownloadFile's side of gRPC: reads a file's range chunk by chunk, each when the client has taken
// the one before, so that a slow client costs one chunk of memory. Internal to daemon/control: this
// header pulls in gRPC.
#pragma once

#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "daemon/control/collector_api.h"
#include "daemon/control/service/reactors.h"
#include "formats/core/crc32.h"

namespace collect::control {

inline constexpr size_t kDownloadChunkBytes = size_t{256} << 10;
inline constexpr uint32_t kMaxDownloads = 64;  // of all clients together

class DownloadCall final : public LiveCall<MessageStream> {
 public:
  // `running` counts the downloads of the server, and outlives the call.
  static std::shared_ptr<DownloadCall> open(std::shared_ptr<LiveCalls> live,
                                            std::shared_ptr<std::atomic<uint32_t>> running) {
    std::shared_ptr<DownloadCall> call(new DownloadCall(std::move(live), std::move(running)));
    call->enter();
    if (call->running_->fetch_add(1) >= kMaxDownloads) {
      call->end_now({grpc::StatusCode::RESOURCE_EXHAUSTED,
                     "too many downloads run already; try again when one has ended"});
      return call;
    }
    if (!call->enter_watches(
            "the collector is shutting down; continue at this offset when it is back")) {
      call->end_now({grpc::StatusCode::UNAVAILABLE,
                     "the collector is shutting down, or has too many "
                     "long calls; try again later"});
    }
    return call;
  }

  bool ended() const {
    const std::lock_guard lock(mutex_);
    return finished_;
  }

  // Sends `bytes` (0: all) from `offset` of the file.
  void start(std::shared_ptr<FileReader> file, uint64_t offset, uint64_t bytes) {
    const uint64_t size = file->size();
    if (offset > size) {
      end_now({grpc::StatusCode::OUT_OF_RANGE,
               fmt::format("offset {} is beyond the file's end at {}", offset, size)});
      return;
    }
    file_ = std::move(file);
    offset_ = offset;
    end_ = bytes == 0 ? size : offset + std::min(bytes, size - offset);
    read_next();
  }

 private:
  DownloadCall(std::shared_ptr<LiveCalls> live, std::shared_ptr<std::atomic<uint32_t>> running)
      : LiveCall(std::move(live), kClientWentAway), running_(std::move(running)) {}

  void done() override { running_->fetch_sub(1); }

  // Reads and writes follow one another, so what they touch needs no lock.
  void read_next() {
    if (offset_ == end_) {
      api::FileChunk last;
      last.set_offset(offset_);
      last.mutable_end()->set_file_size_bytes(file_->size());
      last.mutable_end()->set_size_bytes(sent_);
      last.mutable_end()->set_crc32c(crc_);
      last_sent_ = true;
      write(last);
      return;
    }
    const auto wanted =
        static_cast<size_t>(std::min<uint64_t>(end_ - offset_, kDownloadChunkBytes));
    file_->read(offset_, wanted,
                [this, self = shared_from_this(), wanted](Result<std::string> data) {
                  take(wanted, std::move(data));
                });
  }

  void take(size_t wanted, Result<std::string> data) {
    if (!data.ok()) {
      end_now(to_grpc_status(data.error()));
      return;
    }
    if (data->size() != wanted) {
      end_now({grpc::StatusCode::ABORTED,
               fmt::format("the file became shorter while it was sent; it ends at {}",
                           offset_ + data->size())});
      return;
    }
    const Bytes bytes(reinterpret_cast<const uint8_t*>(data->data()), data->size());
    api::FileChunk chunk;
    chunk.set_offset(offset_);
    chunk.set_crc32c(crc32c(bytes));
    crc_ = crc32c_combine(crc_, chunk.crc32c(), bytes.size());
    offset_ += bytes.size();
    sent_ += bytes.size();
    chunk.set_data(std::move(*data));
    write(chunk);
  }

  void write(const api::FileChunk& chunk) {
    const std::lock_guard lock(mutex_);
    if (finished_) return;
    grpc::Status written = write_message(chunk, chunk_);
    if (!written.ok()) return finish_locked(std::move(written));
    this->StartWrite(&chunk_);
  }

  void OnWriteDone(bool ok) override {
    if (!ok) {
      end_now({grpc::StatusCode::CANCELLED, kClientWentAway});
    } else if (last_sent_) {
      end_now(grpc::Status::OK);
    } else if (!ended()) {
      read_next();
    }
  }

  const std::shared_ptr<std::atomic<uint32_t>> running_;

  // State of the one step that is under way.
  std::shared_ptr<FileReader> file_;
  uint64_t offset_ = 0;
  uint64_t end_ = 0;
  uint64_t sent_ = 0;
  uint32_t crc_ = 0;
  bool last_sent_ = false;

  grpc::ByteBuffer chunk_;  // under mutex_; gRPC reads it while a write is under way
};

}  // namespace collect::control

#include "daemon/ctl/record/android/adb/shell_stream.h"

#include <algorithm>
#include <asio/buffer.hpp>
#include <asio/write.hpp>
#include <utility>

namespace collect::ctl {

using attach::ShellStreamId;

namespace {

constexpr size_t kInputPacketBytes = 16u << 10;

}  // namespace

ShellStream::ShellStream(attach::Socket socket, OnPacket on_packet, OnEnd on_end)
    : socket_(std::move(socket)), on_packet_(std::move(on_packet)), on_end_(std::move(on_end)) {}

std::shared_ptr<ShellStream> ShellStream::start(attach::Socket socket, OnPacket on_packet,
                                                OnEnd on_end) {
  std::shared_ptr<ShellStream> stream(
      new ShellStream(std::move(socket), std::move(on_packet), std::move(on_end)));
  stream->read();
  return stream;
}

void ShellStream::send_input(std::string_view bytes) {
  for (size_t at = 0; at < bytes.size(); at += kInputPacketBytes) {
    input_ += attach::shell_packet(ShellStreamId::kInput, bytes.substr(at, kInputPacketBytes));
  }
  input_ += attach::shell_packet(ShellStreamId::kCloseInput, {});
  // A stream that breaks meanwhile shows in read().
  asio::async_write(socket_, asio::buffer(input_),
                    [self = shared_from_this()](const std::error_code&, size_t) {});
}

void ShellStream::close() {
  std::error_code ignored;
  socket_.close(ignored);
  on_packet_ = nullptr;
  on_end_ = nullptr;
}

void ShellStream::end(const Status& status) {
  const OnEnd on_end = std::move(on_end_);
  close();
  if (on_end) on_end(status);
}

void ShellStream::take_packets() {
  while (on_packet_) {
    Result<std::optional<attach::ShellPacket>> packet = packets_.next();
    if (!packet.ok()) return end(packet.error());
    if (!packet->has_value()) return read();
    const bool is_last = (*packet)->stream == ShellStreamId::kExit;
    const OnPacket on_packet = on_packet_;  // which may close this
    on_packet(std::move(**packet));
    if (is_last) return end({});
  }
}

void ShellStream::read() {
  socket_.async_read_some(
      asio::buffer(piece_), [weak = weak_from_this()](const std::error_code& error, size_t count) {
        const auto self = weak.lock();
        if (!self || !self->on_end_) return;
        if (error) {
          self->end(Error{Code::kUnavailable, "the connection to the device ended"});
          return;
        }
        self->packets_.add({self->piece_.data(), count});
        self->take_packets();
      });
}

}  // namespace collect::ctl

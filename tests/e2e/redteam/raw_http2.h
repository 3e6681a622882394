// A gRPC client by hand: one HTTP/2 connection on which a test sends any bytes. Blocking,
// with a bound on every wait.
#pragma once

#include <cstdint>
#include <string>

namespace collect::e2e {

namespace http2 {
std::string frame(uint8_t type, uint8_t flags, uint32_t stream, const std::string& payload = "");
// The preface and empty SETTINGS: what a client says first.
std::string greeting();
// HEADERS of a call of `path`, "/package.Service/Method", without its end.
std::string call(uint32_t stream, const std::string& path, uint8_t flags = 0x4);
std::string header_field(const std::string& name, const std::string& value);
std::string reset(uint32_t stream);
}  // namespace http2

class RawHttp2 {
 public:
  explicit RawHttp2(uint16_t port);
  explicit RawHttp2(const std::string& unix_path);
  ~RawHttp2();
  RawHttp2(RawHttp2&& other) noexcept;
  RawHttp2(const RawHttp2&) = delete;
  RawHttp2& operator=(const RawHttp2&) = delete;

  bool is_connected() const { return socket_ >= 0; }
  // All of it, or false: the server has closed, or takes nothing for too long. What the server says
  // meanwhile is kept, so that it never waits for us.
  bool send(const std::string& bytes);
  // Reads until `text` has come, or the end, or the bound; whether it has come.
  bool receives(const std::string& text);
  bool is_closed_by_peer();
  const std::string& received() const { return received_; }

 private:
  bool read_some(int wait_ms);

  int socket_ = -1;
  bool at_end_ = false;
  std::string received_;  // the newest bytes
};

}  // namespace collect::e2e

// An agent by hand: one connection to a collector's ingest port, on which a test sends any bytes,
// right or wrong. Blocking, with a bound on every wait.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "proto/wire/layout.h"
#include "proto/wire/wire.pb.h"
#include "tests/fakes/handshake.h"
#include "tests/fakes/machine/socket_address.h"

namespace collect::e2e {

using Octets = std::vector<uint8_t>;

struct ReceivedFrame {
  wire::FrameType type{};
  std::string body;
};

class RawConnection {
 public:
  // `from` is the address that the collector sees; none: the system's choice.
  explicit RawConnection(uint16_t port, in_addr_t from = INADDR_ANY);
  explicit RawConnection(const std::string& unix_path);
  ~RawConnection();
  RawConnection(RawConnection&& other) noexcept;
  void close();
  RawConnection(const RawConnection&) = delete;
  RawConnection& operator=(const RawConnection&) = delete;

  // False when the collector has closed already.
  bool send(const Octets& bytes);
  bool send(wire::FrameType type, const google::protobuf::MessageLite& message);
  // As much as the collector takes until it has taken nothing for so long; how much that was.
  size_t send_until_held(const Octets& bytes, std::chrono::milliseconds patience);
  // The next whole frame; nothing when the collector closes or is silent for too long.
  std::optional<ReceivedFrame> receive();
  // Skips to an Ack that says that the stream's index records below `next` are stored.
  bool receive_ack(uint32_t stream_id, uint64_t next);
  // Skips to the Refuse, if one comes before the end.
  std::optional<wire::Refuse> refusal();
  // The collector closed within the bound; what it said before is skipped.
  bool is_closed_by_peer();

 private:
  void connect_to(const fakes::SocketAddress& address, in_addr_t from = INADDR_ANY);
  bool read_more();
  int socket_ = -1;
  Octets buffer_;
  bool at_end_ = false;
};

Octets frame_bytes(wire::FrameType type, const std::string& body);
// `records` whole 32-byte version 2 events; the checksum is right unless `checksum_error`.
Octets page_bytes(uint32_t stream_id, uint64_t first_seq, const Octets& records,
                  bool checksum_error = false);
// The same encoded; raw where that is no shorter.
Octets encoded_page_bytes(uint32_t stream_id, uint64_t first_seq, const Octets& records,
                          Codec codec = Codec::kColumns);
// A page frame with this header and any bytes, its checksums right.
Octets page_frame(PageHeader page, const Octets& sent);
// `count` events beginning at this time, calls and returns in turn.
Octets events(uint64_t first_ns, uint32_t count);

inline constexpr uint32_t kRawParentPid = 4'199'999;  // above the largest pid
inline constexpr char kRawAgentVersion[] = "raw 1.0";
// It offers every page codec that an agent of this machine may use.
wire::Hello hello(wire::Channel channel, uint32_t pid, const std::string& process_id);
// Sends the hello and answers the challenge with what `secrets` has; the frame that comes then.
std::optional<ReceivedFrame> introduce(RawConnection& connection, const wire::Hello& hello,
                                       const fakes::Secrets& secrets = {});
// The same up to the Welcome, whose resume key goes into `secrets`.
bool be_welcomed(RawConnection& connection, const wire::Hello& hello, fakes::Secrets& secrets);

bool start_recording(RawConnection& data, uint32_t recording);
bool open_stream(RawConnection& data, uint32_t recording, uint32_t stream_id,
                 const std::string& thread_name = "");
// `index_count` events of it were sent in all.
bool close_stream(RawConnection& data, uint32_t stream_id, uint64_t index_count);
bool end_recording(RawConnection& data, uint32_t recording);

// Both channels of one process, welcomed, with recording 1 and stream 1 open: ready for pages.
class RawAgent {
 public:
  // With the secrets of an earlier life of the same process it comes back.
  RawAgent(uint16_t port, uint32_t pid, fakes::Secrets known = {})
      : RawAgent(RawConnection(port), RawConnection(port), pid, std::move(known)) {}
  RawAgent(const std::string& unix_path, uint32_t pid, fakes::Secrets known = {})
      : RawAgent(RawConnection(unix_path), RawConnection(unix_path), pid, std::move(known)) {}
  RawConnection control;
  RawConnection data;
  std::string process_id;
  fakes::Secrets secrets;
  bool ready = false;

 private:
  RawAgent(RawConnection to_control, RawConnection to_data, uint32_t pid, fakes::Secrets known);
};

}  // namespace collect::e2e

#include "tests/fakes/phones/fake_adbd.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <vector>

#include "tests/fakes/phones/plain_socket.h"

namespace collect::fakes {
namespace {

constexpr uint32_t command(const char (&name)[5]) {
  return static_cast<uint32_t>(name[0]) | static_cast<uint32_t>(name[1]) << 8 |
         static_cast<uint32_t>(name[2]) << 16 | static_cast<uint32_t>(name[3]) << 24;
}
constexpr uint32_t kConnect = command("CNXN");
constexpr uint32_t kAuth = command("AUTH");
constexpr uint32_t kOpen = command("OPEN");
constexpr uint32_t kOkay = command("OKAY");
constexpr uint32_t kWrite = command("WRTE");
constexpr uint32_t kClose = command("CLSE");
constexpr uint32_t kVersion = 0x01000001;  // from here on no one looks at checksums
constexpr uint32_t kMaxData = 1u << 20;
constexpr uint32_t kAuthToken = 1;
constexpr uint32_t kAuthSignature = 2;
constexpr size_t kTokenBytes = 20;
constexpr size_t kWriteBytes = 64u << 10;
constexpr int kLookMs = 10;

}  // namespace

FakeAdbd::FakeAdbd(FakeAdbdOptions options, uint16_t port) : options_(std::move(options)) {
  port_ = port;
  listener_ = listen_on_loopback(&port_, 4);
  thread_ = std::thread([this] { serve(); });
}

FakeAdbd::~FakeAdbd() {
  ending_ = true;
  thread_.join();
  ::close(listener_);
}

void FakeAdbd::add_socket(const std::string& name) {
  const std::lock_guard lock(mutex_);
  options_.sockets.insert(name);
}

void FakeAdbd::serve() {
  while (!ending_) {
    pollfd waiting{listener_, POLLIN, 0};
    if (::poll(&waiting, 1, kLookMs) <= 0) continue;
    const int server = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (server < 0) continue;
    const int on = 1;
    ::setsockopt(server, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    serve_transport(server);
    ::close(server);
    for (auto& [id, stream] : streams_) {
      if (stream.fd >= 0) ::close(stream.fd);
    }
    streams_.clear();
  }
}

void FakeAdbd::serve_transport(int server) {
  while (!ending_) {
    std::vector<pollfd> all = {{server, POLLIN, 0}};
    std::vector<uint32_t> ids;
    for (const auto& [id, stream] : streams_) {
      if (stream.in_flight) continue;
      ids.push_back(id);
      // A stream that has something to say by itself is always ready.
      all.push_back({stream.fd, POLLIN, 0});
    }
    bool says = false;
    for (const uint32_t id : ids) says = says || streams_.at(id).fd < 0;
    if (::poll(all.data(), all.size(), says ? 0 : kLookMs) < 0) return;
    for (size_t i = 0; i < ids.size(); ++i) {
      const bool is_ready = streams_.at(ids[i]).fd < 0 || all[i + 1].revents != 0;
      if (is_ready && !pass_on(server, ids[i])) return;
    }
    if (all[0].revents == 0) continue;
    Packet packet;
    if (!read_packet(server, packet) || !on_packet(server, packet)) return;
  }
}

bool FakeAdbd::read_packet(int server, Packet& packet) {
  uint32_t header[6];
  if (!read_exactly(server, reinterpret_cast<char*>(header), sizeof header)) return false;
  if (header[5] != ~header[0] || header[3] > kMaxData) return false;
  packet = {header[0], header[1], header[2], std::string(header[3], '\0')};
  return read_exactly(server, packet.data.data(), packet.data.size());
}

bool FakeAdbd::send_packet(int server, uint32_t what, uint32_t arg0, uint32_t arg1,
                           const std::string& data) {
  const uint32_t header[6] = {what, arg0, arg1, static_cast<uint32_t>(data.size()), 0, ~what};
  return send_all(server, reinterpret_cast<const char*>(header), sizeof header) &&
         send_all(server, data.data(), data.size());
}

bool FakeAdbd::on_packet(int server, const Packet& packet) {
  const auto found = streams_.find(packet.arg1);
  switch (packet.command) {
    case kConnect:
      if (!options_.trusts) {
        return send_packet(server, kAuth, kAuthToken, 0, std::string(kTokenBytes, 't'));
      }
      return send_packet(server, kConnect, kVersion, kMaxData,
                         "device::ro.product.name=sim;ro.product.model=" + options_.model +
                             ";ro.product.device=sim;features=shell_v2,cmd");
    case kAuth:  // a signature is not the right one; of a public key no one is asked
      return packet.arg0 != kAuthSignature ||
             send_packet(server, kAuth, kAuthToken, 0, std::string(kTokenBytes, 't'));
    case kOpen:
      return open(server, packet);
    case kOkay:
      if (found != streams_.end()) found->second.in_flight = false;
      return true;
    case kWrite:
      if (found == streams_.end()) return true;
      if (found->second.fd >= 0 &&
          !send_all(found->second.fd, packet.data.data(), packet.data.size())) {
        return end(server, packet.arg1);
      }
      return send_packet(server, kOkay, packet.arg1, packet.arg0);
    case kClose:
      if (found == streams_.end()) return true;
      if (found->second.fd >= 0) ::close(found->second.fd);
      streams_.erase(found);
      return true;
    default:
      return true;
  }
}

bool FakeAdbd::open(int server, const Packet& packet) {
  const std::string abstract = "localabstract:";
  const std::string service(packet.data.c_str());  // without the zero byte behind it
  Stream stream;
  stream.remote = packet.arg0;
  if (service.starts_with(abstract)) {
    const std::string name = service.substr(abstract.size());
    bool is_ours = false;
    {
      const std::lock_guard lock(mutex_);
      is_ours = options_.sockets.contains(name);
    }
    stream.fd = is_ours ? connect_abstract(name) : -1;
    if (stream.fd < 0) return send_packet(server, kClose, 0, packet.arg0);
  } else if (service == "shell,v2,raw:cat /proc/net/unix") {
    stream.output = socket_list();
  } else {
    return send_packet(server, kClose, 0, packet.arg0);
  }
  const uint32_t id = next_id_++;
  streams_[id] = std::move(stream);
  return send_packet(server, kOkay, id, packet.arg0);
}

// One WRTE at a time: the next when the server has taken it.
bool FakeAdbd::pass_on(int server, uint32_t id) {
  Stream& stream = streams_.at(id);
  std::string data;
  if (stream.fd < 0) {
    data = stream.output.substr(0, kWriteBytes);
    stream.output.erase(0, data.size());
  } else {
    data.resize(kWriteBytes);
    const ssize_t got = ::recv(stream.fd, data.data(), data.size(), 0);
    data.resize(got > 0 ? static_cast<size_t>(got) : 0);
  }
  if (data.empty()) return end(server, id);
  stream.in_flight = true;
  return send_packet(server, kWrite, id, stream.remote, data);
}

bool FakeAdbd::end(int server, uint32_t id) {
  const Stream stream = streams_.at(id);
  if (stream.fd >= 0) ::close(stream.fd);
  streams_.erase(id);
  return send_packet(server, kClose, id, stream.remote);
}

// As packets of shell,v2: this machine's lines that belong to the phone.
std::string FakeAdbd::socket_list() {
  std::string text = "Num       RefCount Protocol Flags    Type St Inode Path\n";
  const std::lock_guard lock(mutex_);
  std::ifstream file("/proc/net/unix");
  for (std::string line; std::getline(file, line);) {
    const size_t at = line.rfind('@');
    if (at != std::string::npos && options_.sockets.contains(line.substr(at + 1))) {
      text += line + "\n";
    }
  }
  std::string packets(1, '\x01');
  for (unsigned shift = 0; shift < 32; shift += 8) {
    packets += static_cast<char>((text.size() >> shift) & 0xFF);
  }
  return packets + text + std::string("\x03\x01\0\0\0\0", 6);
}

}  // namespace collect::fakes

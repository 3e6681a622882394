#include "tests/fakes/phones/fake_usbmuxd.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace collect::fakes {
namespace {

constexpr size_t kHeaderBytes = 16;
constexpr size_t kBufferBytes = 64 * 1024;
constexpr int kPaceMs = 1;
constexpr uint32_t kBadCommand = 1, kBadDevice = 2, kRefused = 3;

void check(bool ok) {
  if (!ok) std::abort();
}

sockaddr_in loopback(uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

std::string key(const std::string& name, uint64_t value) {
  return "<key>" + name + "</key><integer>" + std::to_string(value) + "</integer>";
}

std::string key(const std::string& name, const std::string& value) {
  return "<key>" + name + "</key><string>" + value + "</string>";
}

// The text of the element behind a key; empty when it is not there.
std::string value_of(const std::string& plist, const std::string& name) {
  const size_t at = plist.find("<key>" + name + "</key>");
  if (at == std::string::npos) return "";
  const size_t open = plist.find('>', plist.find('<', at + name.size() + 11));
  if (open == std::string::npos) return "";
  return plist.substr(open + 1, plist.find('<', open) - open - 1);
}

uint32_t number_of(const std::string& plist, const std::string& name) {
  return static_cast<uint32_t>(std::strtoul(value_of(plist, name).c_str(), nullptr, 10));
}

std::string result(uint32_t tag, uint32_t number) {
  return FakeUsbmuxd::message(tag, key("MessageType", "Result") + key("Number", number));
}

}  // namespace

struct FakeUsbmuxd::Client {
  int fd = -1;
  std::string in;
  std::deque<std::string> out;  // pieces
  bool listens = false;
  bool waits = false;  // for an answer to its Connect
  uint32_t device_id = 0;
  int device = -1;  // the listener behind its stream
  // Read from [0] the client, [1] the device, and owed to the other.
  std::array<std::string, 2> owed;

  ~Client() {
    if (fd >= 0) close(fd);
    if (device >= 0) close(device);
  }
  void end() {
    if (fd >= 0) close(fd);
    fd = -1;
  }
};

std::string FakeUsbmuxd::message(uint32_t tag, const std::string& dictionary) {
  const std::string body =
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
      "<!DOCTYPE plist PUBLIC \"-//Apple//DTD PLIST 1.0//EN\" "
      "\"http://www.apple.com/DTDs/PropertyList-1.0.dtd\">\n"
      "<plist version=\"1.0\">\n<dict>\n" +
      dictionary + "\n</dict>\n</plist>\n";
  const std::array<uint32_t, 4> header{static_cast<uint32_t>(kHeaderBytes + body.size()), 1, 8,
                                       tag};
  std::string bytes(kHeaderBytes, '\0');
  std::memcpy(bytes.data(), header.data(), kHeaderBytes);
  return bytes + body;
}

std::string FakeUsbmuxd::attached_dictionary(uint32_t device_id, const std::string& serial,
                                             const std::string& connection) {
  return key("MessageType", "Attached") + key("DeviceID", device_id) +
         "<key>Properties</key><dict>" + key("ConnectionSpeed", 480000000) +
         key("ConnectionType", connection) + key("DeviceID", device_id) +
         key("LocationID", 0x14100000 + device_id) + key("ProductID", 0x12A8) +
         key("SerialNumber", serial) + "</dict>";
}

FakeUsbmuxd::FakeUsbmuxd(std::string path) : path_(std::move(path)) {
  start();
}

FakeUsbmuxd::~FakeUsbmuxd() {
  stop();
}

std::string FakeUsbmuxd::address() const {
  return path_.empty() ? "127.0.0.1:" + std::to_string(port_) : "UNIX:" + path_;
}

void FakeUsbmuxd::open_listener() {
  const int family = path_.empty() ? AF_INET : AF_UNIX;
  listener_ = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (path_.empty()) {
    const int on = 1;
    setsockopt(listener_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    sockaddr_in address = loopback(port_);
    socklen_t length = sizeof address;
    check(bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
    check(getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &length) == 0);
    port_ = ntohs(address.sin_port);
  } else {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    check(path_.size() < sizeof address.sun_path);
    std::memcpy(address.sun_path, path_.c_str(), path_.size() + 1);
    unlink(path_.c_str());
    check(bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
  }
  check(listen(listener_, 64) == 0);
}

void FakeUsbmuxd::start() {
  over_ = false;
  {
    const std::lock_guard lock(mutex_);
    open_listener();
    std::map<uint32_t, Device> again;
    for (auto& [id, device] : devices_) again[++last_id_] = std::move(device);
    devices_ = std::move(again);
  }
  thread_ = std::thread([this] { run(); });
}

void FakeUsbmuxd::stop() {
  if (!thread_.joinable()) return;
  over_ = true;
  thread_.join();
  const std::lock_guard lock(mutex_);
  clients_.clear();
  close(listener_);
  if (!path_.empty()) unlink(path_.c_str());
}

uint32_t FakeUsbmuxd::attach(const std::string& serial, const std::string& connection) {
  const std::lock_guard lock(mutex_);
  const uint32_t id = ++last_id_;
  devices_[id] = {serial, connection};
  for (const auto& client : clients_) {
    if (client->listens) send(*client, message(0, attached_dictionary(id, serial, connection)));
  }
  return id;
}

void FakeUsbmuxd::detach(uint32_t device_id) {
  const std::lock_guard lock(mutex_);
  devices_.erase(device_id);
  end_streams(device_id);
  for (const auto& client : clients_) {
    if (!client->listens) continue;
    send(*client, message(0, key("MessageType", "Detached") + key("DeviceID", device_id)));
  }
}

void FakeUsbmuxd::end_streams(uint32_t device_id) {
  for (const auto& client : clients_) {
    if (client->device >= 0 && client->device_id == device_id) client->end();
  }
}

void FakeUsbmuxd::map_port(const std::string& serial, uint16_t device_port, uint16_t local_port) {
  const std::lock_guard lock(mutex_);
  ports_[{serial, device_port}] = local_port;
}

void FakeUsbmuxd::unmap_port(const std::string& serial, uint16_t device_port) {
  const std::lock_guard lock(mutex_);
  ports_.erase({serial, device_port});
}

void FakeUsbmuxd::greet_with(const std::string& bytes) {
  const std::lock_guard lock(mutex_);
  greeting_ = bytes;
}

void FakeUsbmuxd::send_to_listeners(const std::string& bytes) {
  const std::lock_guard lock(mutex_);
  for (const auto& client : clients_) {
    if (client->listens) send(*client, bytes);
  }
}

size_t FakeUsbmuxd::listeners() const {
  const std::lock_guard lock(mutex_);
  return static_cast<size_t>(std::count_if(clients_.begin(), clients_.end(),
                                           [](const auto& c) { return c->listens && c->fd >= 0; }));
}

size_t FakeUsbmuxd::streams() const {
  const std::lock_guard lock(mutex_);
  return static_cast<size_t>(std::count_if(clients_.begin(), clients_.end(), [](const auto& c) {
    return c->device >= 0 && c->fd >= 0;
  }));
}

size_t FakeUsbmuxd::unanswered() const {
  const std::lock_guard lock(mutex_);
  return static_cast<size_t>(std::count_if(clients_.begin(), clients_.end(),
                                           [](const auto& c) { return c->waits && c->fd >= 0; }));
}

void FakeUsbmuxd::send(Client& client, const std::string& bytes) {
  const size_t split = split_;
  if (split == 0 || split >= bytes.size()) {
    client.out.push_back(bytes);
  } else {
    client.out.push_back(bytes.substr(0, split));
    client.out.push_back(bytes.substr(split));
  }
  flush(client);
}

void FakeUsbmuxd::flush(Client& client) {
  while (client.fd >= 0 && !client.out.empty()) {
    int unread = 0;
    if (split_ != 0 && ioctl(client.fd, SIOCOUTQ, &unread) == 0 && unread != 0) return;
    std::string& piece = client.out.front();
    const ssize_t put = ::send(client.fd, piece.data(), piece.size(), MSG_NOSIGNAL);
    if (put < 0) {
      if (errno != EAGAIN) client.end();
      return;
    }
    piece.erase(0, static_cast<size_t>(put));
    if (piece.empty()) client.out.pop_front();
  }
}

void FakeUsbmuxd::read_requests(Client& client) {
  std::array<char, 4096> bytes{};
  const ssize_t got = recv(client.fd, bytes.data(), bytes.size(), 0);
  if (got == 0 || (got < 0 && errno != EAGAIN)) {
    client.end();
    return;
  }
  if (got > 0) client.in.append(bytes.data(), static_cast<size_t>(got));
  while (client.fd >= 0 && client.device < 0 && client.in.size() >= kHeaderBytes) {
    std::array<uint32_t, 4> header{};
    std::memcpy(header.data(), client.in.data(), kHeaderBytes);
    if (client.in.size() < header[0]) return;
    const std::string request = client.in.substr(kHeaderBytes, header[0] - kHeaderBytes);
    client.in.erase(0, header[0]);
    answer(client, header[3], request);
  }
}

void FakeUsbmuxd::answer(Client& client, uint32_t tag, const std::string& request) {
  const std::string type = value_of(request, "MessageType");
  if (type == "Listen") {
    send(client, result(tag, listen_result_));
    if (listen_result_ != 0) return;
    client.listens = true;
    for (const auto& [id, device] : devices_) {
      send(client, message(0, attached_dictionary(id, device.serial, device.connection)));
    }
  } else if (type == "ListDevices" && list_result_ == 0) {
    std::string list;
    for (const auto& [id, device] : devices_) {
      list += "<dict>" + attached_dictionary(id, device.serial, device.connection) + "</dict>";
    }
    send(client, message(tag, "<key>DeviceList</key><array>" + list + "</array>"));
  } else if (type == "Connect") {
    connect(client, tag, request);
  } else {
    send(client, result(tag, list_result_ != 0 ? list_result_.load() : kBadCommand));
  }
}

void FakeUsbmuxd::connect(Client& client, uint32_t tag, const std::string& request) {
  ++connects_;
  if (another_tag_) ++tag;
  if (unanswered_) {
    client.waits = true;
    return;
  }
  const auto device = devices_.find(number_of(request, "DeviceID"));
  const uint16_t port = ntohs(static_cast<uint16_t>(number_of(request, "PortNumber")));
  if (forced_result_ != 0 || device == devices_.end()) {
    send(client, result(tag, forced_result_ != 0 ? forced_result_.load() : kBadDevice));
    return;
  }
  const auto mapped = ports_.find({device->second.serial, port});
  int to = -1;
  if (mapped != ports_.end()) {
    to = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const sockaddr_in address = loopback(mapped->second);
    if (::connect(to, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
      close(to);
      to = -1;
    }
  }
  if (to < 0) {
    send(client, result(tag, kRefused));
    return;
  }
  fcntl(to, F_SETFL, fcntl(to, F_GETFL) | O_NONBLOCK);
  const int on = 1;
  setsockopt(to, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (ends_at_once_) shutdown(client.fd, SHUT_RD);
  send(client, result(tag, 0) + greeting_);
  if (ends_at_once_) client.end();
  client.device = to;
  client.device_id = device->first;
  client.owed[0] = std::exchange(client.in, {});
}

// What came from one side goes to the other; the end of either is the end of both.
void FakeUsbmuxd::relay(Client& client, size_t from) {
  const std::array<int, 2> sides{client.fd, client.device};
  std::string& owed = client.owed[from];
  if (owed.empty()) {
    owed.resize(kBufferBytes);
    const ssize_t got = recv(sides[from], owed.data(), owed.size(), 0);
    owed.resize(got > 0 ? static_cast<size_t>(got) : 0);
    if (got == 0 || (got < 0 && errno != EAGAIN)) {
      client.end();
      return;
    }
  }
  if (owed.empty()) return;
  const ssize_t put = ::send(sides[1 - from], owed.data(), owed.size(), MSG_NOSIGNAL);
  if (put > 0) owed.erase(0, static_cast<size_t>(put));
  if (put < 0 && errno != EAGAIN) client.end();
}

void FakeUsbmuxd::run() {
  std::vector<pollfd> polled;
  while (!over_) {
    polled.clear();
    {
      const std::lock_guard lock(mutex_);
      std::erase_if(clients_, [](const auto& client) { return client->fd < 0; });
      polled.push_back({listener_, POLLIN, 0});
      for (const auto& client : clients_) {
        const bool is_stream = client->device >= 0;
        if (is_stream && held_) continue;
        const auto wants = [&](size_t side) {
          return static_cast<short>((client->owed[side].empty() ? POLLIN : 0) |
                                    (client->owed[1 - side].empty() ? 0 : POLLOUT));
        };
        polled.push_back({client->fd, is_stream ? wants(0) : short{POLLIN}, 0});
        if (is_stream) polled.push_back({client->device, wants(1), 0});
      }
    }
    (void)poll(polled.data(), polled.size(), split_ != 0 ? kPaceMs : 5 * kPaceMs);
    const std::lock_guard lock(mutex_);
    const int fd = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd >= 0) {
      ++accepted_;
      const int on = 1;
      if (path_.empty()) setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
      clients_.push_back(std::make_unique<Client>());
      clients_.back()->fd = fd;
    }
    for (const auto& client : clients_) {
      flush(*client);
      if (client->fd < 0) continue;
      if (client->device < 0) {
        read_requests(*client);
      } else if (!held_ && client->out.empty()) {
        for (size_t from = 0; from < 2 && client->fd >= 0; ++from) relay(*client, from);
      }
    }
  }
}

}  // namespace collect::fakes

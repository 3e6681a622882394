#include "tests/fakes/phones/fake_adb_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <fstream>
#include <sstream>

#include "tests/fakes/phones/plain_socket.h"

namespace collect::fakes {
namespace {

constexpr std::chrono::milliseconds kLook{10};

std::string hex4(size_t value) {
  char digits[8];
  std::snprintf(digits, sizeof digits, "%04zx", value & 0xFFFF);
  return digits;
}

bool starts(const std::string& text, const std::string& prefix) {
  return text.compare(0, prefix.size(), prefix) == 0;
}

std::string packet(uint8_t stream, const std::string& data) {
  std::string bytes(1, static_cast<char>(stream));
  for (unsigned shift = 0; shift < 32; shift += 8) {
    bytes += static_cast<char>((data.size() >> shift) & 0xFF);
  }
  return bytes + data;
}

}  // namespace

FakeAdbServer::~FakeAdbServer() {
  stop();
}

std::string FakeAdbServer::address() const {
  return "127.0.0.1:" + std::to_string(port_);
}

void FakeAdbServer::start() {
  listener_ = listen_on_loopback(&port_, 64);
  const std::lock_guard lock(mutex_);
  running_ = true;
  threads_.emplace_back([this] { accept_loop(); });
}

void FakeAdbServer::stop() {
  std::vector<std::thread> threads;
  {
    const std::lock_guard lock(mutex_);
    if (!running_) return;
    running_ = false;
    for (const int fd : connections_) ::shutdown(fd, SHUT_RDWR);
    ::shutdown(listener_, SHUT_RDWR);
    changed_.notify_all();
  }
  while (true) {  // accepting ends first, so that nothing is added behind our back
    {
      const std::lock_guard lock(mutex_);
      threads.swap(threads_);
    }
    if (threads.empty()) break;
    for (std::thread& thread : threads) thread.join();
    threads.clear();
  }
  ::close(listener_);
}

void FakeAdbServer::accept_loop() {
  while (true) {
    const int fd = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    const std::lock_guard lock(mutex_);
    if (fd < 0 || !running_) {
      if (fd >= 0) ::close(fd);
      return;
    }
    const int on = 1;
    ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    connections_.insert(fd);
    threads_.emplace_back([this, fd] {
      serve_connection(fd);
      const std::lock_guard ending(mutex_);
      connections_.erase(fd);
      ::close(fd);
    });
  }
}

// ---- what a test does

void FakeAdbServer::plug(const std::string& serial, FakePhone phone) {
  const std::lock_guard lock(mutex_);
  Phone& entry = phones_[serial];
  end_streams(entry);
  entry = Phone{};
  entry.is = std::move(phone);
  entry.transport_id = next_transport_++;
  ++version_;
  changed_.notify_all();
}

void FakeAdbServer::unplug(const std::string& serial) {
  const std::lock_guard lock(mutex_);
  const auto phone = phones_.find(serial);
  if (phone == phones_.end()) return;
  end_streams(phone->second);
  phones_.erase(phone);
  ++version_;
  changed_.notify_all();
}

void FakeAdbServer::end_streams(Phone& phone) {
  for (const int fd : phone.streams) ::shutdown(fd, SHUT_RDWR);
  phone.streams.clear();
}

void FakeAdbServer::set_state(const std::string& serial, const std::string& state,
                              bool tell_trackers) {
  const std::lock_guard lock(mutex_);
  Phone& phone = phones_.at(serial);
  phone.is.state = state;
  if (state != "device") end_streams(phone);
  if (!tell_trackers) return;
  ++version_;
  changed_.notify_all();
}

void FakeAdbServer::add_socket(const std::string& serial, const std::string& name) {
  const std::lock_guard lock(mutex_);
  phones_.at(serial).is.sockets.insert(name);
}

void FakeAdbServer::remove_socket(const std::string& serial, const std::string& name) {
  const std::lock_guard lock(mutex_);
  phones_.at(serial).is.sockets.erase(name);
  phones_.at(serial).handlers.erase(name);
}

void FakeAdbServer::serve(const std::string& serial, const std::string& name, Handler handler) {
  const std::lock_guard lock(mutex_);
  phones_.at(serial).handlers[name] = std::move(handler);
}

void FakeAdbServer::fall_silent(const std::string& serial) {
  const std::lock_guard lock(mutex_);
  Phone& phone = phones_.at(serial);
  phone.silent = true;
  phone.is.state = "offline";
  end_streams(phone);
}

void FakeAdbServer::unplug_after(const std::string& serial, uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  phones_.at(serial).bytes_left = bytes;
}

void FakeAdbServer::limit_pushes(const std::string& serial, PushLimits limits) {
  const std::lock_guard lock(mutex_);
  phones_.at(serial).pushes = limits;
}

void FakeAdbServer::stall(bool stalled) {
  const std::lock_guard lock(mutex_);
  stalled_ = stalled;
}

void FakeAdbServer::split_answers(size_t piece_bytes) {
  const std::lock_guard lock(mutex_);
  piece_bytes_ = piece_bytes;
}

void FakeAdbServer::answer_version_with(const std::string& text) {
  const std::lock_guard lock(mutex_);
  version_text_ = text;
}

void FakeAdbServer::fail_next(const std::string& prefix, const std::string& text) {
  const std::lock_guard lock(mutex_);
  fail_prefix_ = prefix;
  fail_text_ = text;
}

uint64_t FakeAdbServer::requests(const std::string& prefix) {
  const std::lock_guard lock(mutex_);
  uint64_t count = 0;
  for (const std::string& request : requests_) count += starts(request, prefix) ? 1 : 0;
  return count;
}

size_t FakeAdbServer::trackers() {
  const std::lock_guard lock(mutex_);
  return trackers_;
}

size_t FakeAdbServer::connections() {
  const std::lock_guard lock(mutex_);
  return connections_.size();
}

// ---- what a client hears

bool FakeAdbServer::send_pieces(int fd, const std::string& bytes) {
  size_t piece = 0;
  {
    const std::lock_guard lock(mutex_);
    piece = piece_bytes_ == 0 ? bytes.size() : piece_bytes_;
  }
  for (size_t at = 0; at < bytes.size(); at += piece) {
    if (!send_all(fd, bytes.data() + at, std::min(piece, bytes.size() - at))) return false;
    if (at + piece < bytes.size()) std::this_thread::yield();
  }
  return true;
}

bool FakeAdbServer::okay(int fd, const std::string* text) {
  return send_pieces(fd, text == nullptr ? "OKAY" : "OKAY" + hex4(text->size()) + *text);
}

bool FakeAdbServer::fail(int fd, const std::string& text) {
  return send_pieces(fd, "FAIL" + hex4(text.size()) + text);
}

std::string FakeAdbServer::list_text() const {
  std::string text;
  for (const auto& [serial, phone] : phones_) {
    std::string name = serial;
    if (name.size() < 22) name.resize(22, ' ');
    text += name + " " + phone.is.state;
    if (!phone.is.attributes.empty()) text += " " + phone.is.attributes;
    text += " transport_id:" + std::to_string(phone.transport_id) + "\n";
  }
  return text;
}

std::string FakeAdbServer::why_not(const std::string& serial) const {
  const auto phone = phones_.find(serial);
  if (phone == phones_.end()) return "device '" + serial + "' not found";
  if (phone->second.silent || phone->second.is.state == "offline") return "device offline";
  if (phone->second.is.state == "device") return "";
  return "device " + phone->second.is.state;
}

void FakeAdbServer::serve_connection(int fd) {
  std::string serial;
  while (true) {
    char digits[5] = {};
    if (!read_exactly(fd, digits, 4)) return;
    std::string request(std::strtoul(digits, nullptr, 16), '\0');
    if (!read_exactly(fd, request.data(), request.size())) return;
    {
      const std::lock_guard lock(mutex_);
      requests_.push_back(request);
      if (!fail_prefix_.empty() && starts(request, fail_prefix_)) {
        const std::string text = fail_text_;
        fail_prefix_.clear();
        (void)send_all(fd, ("FAIL" + hex4(text.size()) + text).data(), 8 + text.size());
        return;
      }
    }
    if (!serial.empty()) {
      serve_phone(fd, serial, request);
      return;
    }
    if (!serve_host(fd, request, serial)) return;
  }
}

// False: the conversation is over.
bool FakeAdbServer::serve_host(int fd, const std::string& request, std::string& serial) {
  const std::string transport = "host:transport:";
  const std::string per_serial = "host-serial:";
  const std::string features = ":features";
  if (request == "host:track-devices-l") {
    track(fd);
    return false;
  }
  if (request == "host:version") {
    std::string version;
    {
      const std::lock_guard lock(mutex_);
      version = version_text_;
    }
    okay(fd, &version);
    return false;
  }
  if (request == "host:devices-l") {
    std::string text;
    {
      const std::lock_guard lock(mutex_);
      text = list_text();
    }
    okay(fd, &text);
    return false;
  }
  if (starts(request, transport)) {
    std::string fault;
    {
      const std::lock_guard lock(mutex_);
      serial = request.substr(transport.size());
      fault = why_not(serial);
      if (fault.empty()) phones_.at(serial).streams.insert(fd);
    }
    if (fault.empty()) return okay(fd);
    fail(fd, fault);
    return false;
  }
  if (starts(request, per_serial) && request.ends_with(features)) {
    const std::string named =
        request.substr(per_serial.size(), request.size() - per_serial.size() - features.size());
    std::string fault;
    std::string text;
    {
      const std::lock_guard lock(mutex_);
      fault = why_not(named);
      if (fault.empty()) text = phones_.at(named).is.features;
    }
    fault.empty() ? okay(fd, &text) : fail(fd, fault);
    return false;
  }
  fail(fd, "unknown host service");
  return false;
}

void FakeAdbServer::track(int fd) {
  if (!okay(fd)) return;
  std::unique_lock lock(mutex_);
  ++trackers_;
  uint64_t shown = version_ + 1;  // the whole list at once
  while (running_) {
    if (shown != version_) {
      shown = version_;
      const std::string text = list_text();
      lock.unlock();
      const bool sent = send_pieces(fd, hex4(text.size()) + text);
      lock.lock();
      if (!sent) break;
      continue;
    }
    changed_.wait_for(lock, kLook);
    pollfd gone{fd, POLLIN | POLLRDHUP, 0};
    if (::poll(&gone, 1, 0) > 0) break;  // clients say nothing here
  }
  --trackers_;
}

void FakeAdbServer::serve_phone(int fd, const std::string& serial, const std::string& service) {
  const std::string abstract = "localabstract:";
  if (service == "shell,v2,raw:cat /proc/net/unix" || service == "shell:cat /proc/net/unix") {
    shell(fd, serial, starts(service, "shell,"));
  } else if (service == "shell:getprop ro.serialno") {
    std::string number;
    {
      const std::lock_guard lock(mutex_);
      const auto phone = phones_.find(serial);
      if (phone != phones_.end()) number = phone->second.is.number;
    }
    if (okay(fd)) send_pieces(fd, number.empty() ? "sh: getprop: not found\r\n" : number + "\r\n");
  } else if (starts(service, abstract)) {
    const int target = open_target(serial, service.substr(abstract.size()));
    if (target < 0) {
      fail(fd, "closed");
    } else {
      if (okay(fd)) relay(fd, target, serial);
      ::close(target);
    }
  } else if (!serve_folder(fd, serial, service)) {
    fail(fd, "closed");
  }
  const std::lock_guard lock(mutex_);
  const auto phone = phones_.find(serial);
  if (phone != phones_.end()) phone->second.streams.erase(fd);
}

bool FakeAdbServer::serve_folder(int fd, const std::string& serial, const std::string& service) {
  const std::string command = "shell,v2,raw:";
  std::string folder;
  PushLimits pushes;
  {
    const std::lock_guard lock(mutex_);
    const auto phone = phones_.find(serial);
    if (phone == phones_.end() || phone->second.is.folder.empty()) return false;
    folder = phone->second.is.folder;
    pushes = phone->second.pushes;
  }
  if (service == "sync:") {
    if (okay(fd) && serve_phone_sync(fd, folder, pushes)) unplug(serial);
    return true;
  }
  if (!starts(service, command)) return false;
  if (!okay(fd)) return true;
  serve_phone_shell(fd, folder, service.substr(command.size()), [this] {
    const std::lock_guard lock(mutex_);
    return running_;
  });
  return true;
}

void FakeAdbServer::shell(int fd, const std::string& serial, bool v2) {
  if (!okay(fd)) return;
  const std::string text = socket_list(serial, !v2);
  if (!v2) {
    send_pieces(fd, text);
    return;
  }
  const size_t half = text.size() / 2;  // a command's output comes in packets of any size
  send_pieces(fd, packet(1, text.substr(0, half)) + packet(2, "") + packet(1, text.substr(half)) +
                      packet(3, std::string(1, '\0')));
}

// The lines of this machine whose names belong to the phone, and one for each handler.
std::string FakeAdbServer::socket_list(const std::string& serial, bool dos) {
  const std::string end = dos ? "\r\n" : "\n";
  std::string text = "Num       RefCount Protocol Flags    Type St Inode Path" + end;
  const std::lock_guard lock(mutex_);
  const auto phone = phones_.find(serial);
  if (phone == phones_.end()) return text;
  std::ifstream file("/proc/net/unix");
  for (std::string line; std::getline(file, line);) {
    const size_t at = line.rfind('@');
    if (at == std::string::npos) continue;
    const std::string name = line.substr(at + 1);
    if (phone->second.is.sockets.contains(name) ||
        (!phone->second.is.folder.empty() && owns_agent_socket(phone->second.is.folder, name))) {
      text += line + end;
    }
  }
  for (const auto& [name, handler] : phone->second.handlers) {
    text += "0000000000000000: 00000002 00000000 00010000 0001 01 99999 @" + name + end;
  }
  return text;
}

int FakeAdbServer::open_target(const std::string& serial, const std::string& name) {
  const std::lock_guard lock(mutex_);
  const auto phone = phones_.find(serial);
  if (phone == phones_.end()) return -1;
  const auto handler = phone->second.handlers.find(name);
  if (handler == phone->second.handlers.end()) {
    const FakePhone& is = phone->second.is;
    const bool is_its =
        is.sockets.contains(name) || (!is.folder.empty() && owns_agent_socket(is.folder, name));
    return is_its ? connect_abstract(name) : -1;
  }
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return -1;
  threads_.emplace_back([handle = handler->second, fd = ends[1]] { handle(fd); });
  return ends[0];
}

// adb knows no half-close: the end of one side is the end of both.
void FakeAdbServer::relay(int client, int target, const std::string& serial) {
  while (true) {
    pollfd both[2] = {{client, POLLIN, 0}, {target, POLLIN, 0}};
    {
      const std::lock_guard lock(mutex_);
      if (stalled_) both[0].events = both[1].events = 0;
      if (!running_) return;
    }
    if (::poll(both, 2, static_cast<int>(kLook.count())) < 0) return;
    if (both[1].revents & POLLIN) {
      if (!pass_on(target, client, serial, true)) return;
    } else if (both[0].revents & POLLIN) {
      if (!pass_on(client, target, serial, false)) return;
    } else if ((both[0].revents | both[1].revents) & (POLLHUP | POLLERR)) {
      return;
    }
  }
}

bool FakeAdbServer::pass_on(int from, int to, const std::string& serial, bool from_phone) {
  std::string bytes(64u << 10, '\0');
  const ssize_t got = ::recv(from, bytes.data(), bytes.size(), 0);
  if (got <= 0) return false;
  uint64_t allowed = static_cast<uint64_t>(got);
  bool cut = false;
  {
    const std::lock_guard lock(mutex_);
    const auto phone = phones_.find(serial);
    if (phone == phones_.end()) return false;
    if (from_phone && phone->second.bytes_left != UINT64_MAX) {
      cut = phone->second.bytes_left <= allowed;
      allowed = std::min(allowed, phone->second.bytes_left);
      phone->second.bytes_left -= allowed;
    }
  }
  const bool sent = send_all(to, bytes.data(), allowed);
  if (cut) unplug(serial);
  return sent && !cut;
}

}  // namespace collect::fakes

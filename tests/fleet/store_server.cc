#include "tests/fleet/store_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "daemon/upload/s3/digests.h"
#include "daemon/upload/s3/s3_xml.h"
#include "formats/core/text/base64.h"
#include "tests/fleet/simulated_time.h"

namespace collect::fleet {
namespace {

constexpr char kBucket[] = "fleet";
constexpr size_t kMaxRequestBytes = 80u << 20;  // an object that goes in parts is refused
constexpr int64_t kMaxSkewS = 900;              // as AWS has it
constexpr size_t kPageOfList = 1000;

std::string decoded(std::string_view text) {
  std::string out;
  for (size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '%' && at + 2 < text.size()) {
      out +=
          static_cast<char>(std::strtol(std::string(text.substr(at + 1, 2)).c_str(), nullptr, 16));
      at += 2;
    } else {
      out += text[at];
    }
  }
  return out;
}

// As encoding-type=url wants it.
std::string encoded(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool is_plain = std::isalnum(static_cast<unsigned char>(c)) != 0 ||
                          std::string_view("-._~/").find(c) != std::string_view::npos;
    if (is_plain) {
      out += c;
      continue;
    }
    constexpr char kDigits[] = "0123456789ABCDEF";
    const auto byte = static_cast<unsigned char>(c);
    out += {'%', kDigits[byte >> 4], kDigits[byte & 15]};
  }
  return out;
}

std::string etag_of(const std::string& body) {
  std::string hex;
  for (const uint8_t byte : upload::md5(upload::bytes_of(body))) {
    constexpr char kDigits[] = "0123456789abcdef";
    hex += {kDigits[byte >> 4], kDigits[byte & 15]};
  }
  return '"' + hex + '"';
}

std::string failure(const std::string& code) {
  return "<Error><Code>" + code + "</Code><Message>" + code + "</Message></Error>";
}

std::string http_date() {
  const auto seconds = static_cast<time_t>(SimulatedTime::unix_ns() / kNsPerS);
  tm parts{};
  ::gmtime_r(&seconds, &parts);
  char text[64];
  return {text, ::strftime(text, sizeof text, "%a, %d %b %Y %H:%M:%S GMT", &parts)};
}

// "20260131T235959Z".
bool is_skewed(const std::string& amz_date) {
  tm parts{};
  if (::strptime(amz_date.c_str(), "%Y%m%dT%H%M%SZ", &parts) == nullptr) return true;
  const auto now = static_cast<int64_t>(SimulatedTime::unix_ns() / kNsPerS);
  return std::abs(static_cast<int64_t>(::timegm(&parts)) - now) > kMaxSkewS;
}

std::string taken(std::string_view& rest, std::string_view separator) {
  const size_t at = std::min(rest.find(separator), rest.size());
  std::string part(rest.substr(0, at));
  rest.remove_prefix(std::min(at + separator.size(), rest.size()));
  return part;
}

}  // namespace

StoreServer::StoreServer() {
  epoll_ = ::epoll_create1(EPOLL_CLOEXEC);
  wake_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  epoll_event event{EPOLLIN, {.fd = wake_}};
  ::epoll_ctl(epoll_, EPOLL_CTL_ADD, wake_, &event);
  listen();
  thread_ = std::thread([this] { serve(); });
}

StoreServer::~StoreServer() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  ::eventfd_write(wake_, 1);
  thread_.join();
  close_all();
  ::close(wake_);
  ::close(epoll_);
}

upload::S3Settings StoreServer::settings() const {
  upload::S3Settings settings;
  settings.endpoint = "http://127.0.0.1:" + std::to_string(port_);
  settings.bucket = kBucket;
  return settings;
}

void StoreServer::set_away(bool is_away) {
  {
    const std::lock_guard lock(mutex_);
    wants_away_ = is_away;
  }
  ::eventfd_write(wake_, 1);
  while (true) {
    {
      const std::lock_guard lock(mutex_);
      if (is_away_ == is_away) return;
    }
    ::sched_yield();
  }
}

uint64_t StoreServer::requests() const {
  const std::lock_guard lock(mutex_);
  return requests_;
}

uint64_t StoreServer::skewed_requests() const {
  const std::lock_guard lock(mutex_);
  return skewed_;
}

uint64_t StoreServer::bytes() const {
  const std::lock_guard lock(mutex_);
  return bytes_;
}

void StoreServer::for_each(
    std::string_view ending,
    const std::function<void(const std::string& key, const std::string& body)>& call) const {
  const std::lock_guard lock(mutex_);
  for (const auto& [key, body] : objects_) {
    if (key.ends_with(ending)) call(key, body);
  }
}

void StoreServer::listen() {
  listening_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  const int on = 1;
  ::setsockopt(listening_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port_);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t bytes = sizeof address;
  COLLECT_CHECK(::bind(listening_, reinterpret_cast<sockaddr*>(&address), bytes) == 0);
  COLLECT_CHECK(::listen(listening_, 512) == 0);
  ::getsockname(listening_, reinterpret_cast<sockaddr*>(&address), &bytes);
  port_ = ntohs(address.sin_port);
  epoll_event event{EPOLLIN, {.fd = listening_}};
  ::epoll_ctl(epoll_, EPOLL_CTL_ADD, listening_, &event);
}

void StoreServer::close_all() {
  // With a reset, so that no port waits for the peer's end.
  const linger now{1, 0};
  for (auto& [handle, connection] : connections_) {
    ::setsockopt(handle, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    ::close(handle);
  }
  connections_.clear();
  if (listening_ >= 0) ::close(listening_);
  listening_ = -1;
}

void StoreServer::obey() {
  uint64_t ignored = 0;
  ::eventfd_read(wake_, &ignored);
  const std::lock_guard lock(mutex_);
  if (wants_away_ == is_away_) return;
  wants_away_ ? close_all() : listen();
  is_away_ = wants_away_;
}

void StoreServer::serve() {
  epoll_event events[64];
  while (true) {
    const int count = ::epoll_wait(epoll_, events, 64, -1);
    {
      const std::lock_guard lock(mutex_);
      if (stopping_) return;
    }
    for (int i = 0; i < count; ++i) {
      const int handle = events[i].data.fd;
      if (handle == wake_) {
        obey();
      } else if (handle == listening_) {
        const int accepted = ::accept4(handle, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (accepted < 0) continue;
        connections_[accepted];
        epoll_event event{EPOLLIN, {.fd = accepted}};
        ::epoll_ctl(epoll_, EPOLL_CTL_ADD, accepted, &event);
      } else if (connections_.contains(handle) && !read_from(handle)) {
        ::close(handle);
        connections_.erase(handle);
      }
    }
  }
}

// False: the connection is over.
bool StoreServer::read_from(int handle) {
  Connection& connection = connections_[handle];
  char block[64 << 10];
  const ssize_t count = ::recv(handle, block, sizeof block, 0);
  if (count < 0) return errno == EAGAIN;
  if (count == 0) return false;
  connection.in.append(block, static_cast<size_t>(count));
  while (answer_next(connection)) {
  }
  return connection.in.size() <= kMaxRequestBytes && write_to(handle, connection);
}

// Answers are small, or read at once: waiting for room here stops no one for long.
bool StoreServer::write_to(int handle, Connection& connection) {
  std::string_view rest = connection.out;
  while (!rest.empty()) {
    const ssize_t count = ::send(handle, rest.data(), rest.size(), MSG_NOSIGNAL);
    if (count < 0 && errno == EAGAIN) {
      ::sched_yield();
      continue;
    }
    if (count <= 0) return false;
    rest.remove_prefix(static_cast<size_t>(count));
  }
  connection.out.clear();
  return true;
}

bool StoreServer::answer_next(Connection& connection) {
  const size_t end = connection.in.find("\r\n\r\n");
  if (end == std::string::npos) return false;
  std::string_view head = std::string_view(connection.in).substr(0, end);
  Request request;
  request.method = taken(head, " ");
  std::string target = taken(head, " ");
  (void)taken(head, "\r\n");
  while (!head.empty()) {
    std::string name = taken(head, ":");
    std::transform(name.begin(), name.end(), name.begin(), [](char c) { return std::tolower(c); });
    std::string value = taken(head, "\r\n");
    value.erase(0, value.find_first_not_of(' '));
    request.fields[name] = value;
  }
  const uint64_t length = std::strtoull(request.fields["content-length"].c_str(), nullptr, 10);
  if (connection.in.size() < end + 4 + length) return false;
  request.body = std::string_view(connection.in).substr(end + 4, length);
  std::string_view query = target;
  std::string path = taken(query, "?");
  const std::string prefix = std::string("/") + kBucket;
  request.key = decoded(path.substr(std::min(path.size(), prefix.size())));
  if (request.key.starts_with('/')) request.key.erase(0, 1);
  while (!query.empty()) {
    const std::string pair = taken(query, "&");
    std::string_view value = pair;
    const std::string name = decoded(taken(value, "="));
    request.query[name] = decoded(value);
  }
  const Answer said = answer(request);
  connection.out += "HTTP/1.1 " + std::to_string(said.status) + " as said\r\nDate: " + http_date() +
                    "\r\n" + said.fields + "Content-Length: " + std::to_string(said.body.size()) +
                    "\r\n\r\n" + said.body;
  connection.in.erase(0, end + 4 + length);
  return true;
}

StoreServer::Answer StoreServer::answer(const Request& request) {
  const std::lock_guard lock(mutex_);
  ++requests_;
  const auto date = request.fields.find("x-amz-date");
  if (date == request.fields.end() || is_skewed(date->second)) {
    ++skewed_;
    return {403, failure("RequestTimeTooSkewed")};
  }
  if (request.method == "PUT" && request.query.empty()) return put(request);
  if (request.method == "GET" && !request.key.empty()) return get(request);
  if (request.method == "GET" && request.query.contains("list-type")) return list(request);
  if (request.method == "GET" && request.query.contains("uploads")) {
    return {200,
            "<ListMultipartUploadsResult><IsTruncated>false</IsTruncated>"
            "</ListMultipartUploadsResult>"};
  }
  return {501, failure("NotImplemented")};
}

StoreServer::Answer StoreServer::put(const Request& request) {
  std::string body(request.body);
  const auto md5 = request.fields.find("content-md5");
  if (md5 == request.fields.end() || md5->second != base64(upload::md5(upload::bytes_of(body)))) {
    return {400, failure("BadDigest")};
  }
  if (request.fields.contains("if-none-match") && objects_.contains(request.key)) {
    return {412, failure("PreconditionFailed")};
  }
  std::string fields = "ETag: " + etag_of(body) + "\r\n";
  std::string& object = objects_[request.key];
  bytes_ += body.size() - object.size();
  object = std::move(body);
  return {200, {}, std::move(fields)};
}

StoreServer::Answer StoreServer::get(const Request& request) {
  const auto found = objects_.find(request.key);
  if (found == objects_.end()) return {404, failure("NoSuchKey")};
  return {200, found->second, "ETag: " + etag_of(found->second) + "\r\n"};
}

StoreServer::Answer StoreServer::list(const Request& request) {
  const auto field = [&request](const char* name) {
    const auto found = request.query.find(name);
    return found == request.query.end() ? std::string() : found->second;
  };
  const std::string prefix = field("prefix");
  const std::string from = field("continuation-token");
  std::string body = "<ListBucketResult><EncodingType>url</EncodingType>";
  size_t listed = 0;
  std::string next;
  for (auto at = objects_.lower_bound(std::max(prefix, from));
       at != objects_.end() && at->first.starts_with(prefix); ++at) {
    if (listed++ == kPageOfList) {
      next = at->first;
      break;
    }
    body += "<Contents><Key>" + upload::escape_xml(encoded(at->first)) + "</Key><Size>" +
            std::to_string(at->second.size()) + "</Size><ETag>" +
            upload::escape_xml(etag_of(at->second)) + "</ETag></Contents>";
  }
  body += next.empty() ? "<IsTruncated>false</IsTruncated>"
                       : "<IsTruncated>true</IsTruncated><NextContinuationToken>" +
                             upload::escape_xml(next) + "</NextContinuationToken>";
  return {200, body + "</ListBucketResult>"};
}

}  // namespace collect::fleet

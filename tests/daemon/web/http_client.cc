#include "tests/daemon/web/http_client.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <utility>

namespace collect::web {
namespace {

constexpr std::chrono::seconds kReadBound{60};

std::string lower(std::string text) {
  for (char& c : text) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return text;
}

}  // namespace

HttpClient::HttpClient(uint16_t port) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  if (::connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) close();
}

HttpClient::~HttpClient() {
  close();
}

HttpClient::HttpClient(HttpClient&& other) noexcept
    : socket_(std::exchange(other.socket_, -1)), received_(std::move(other.received_)) {}

void HttpClient::close() {
  if (socket_ >= 0) ::close(std::exchange(socket_, -1));
}

bool HttpClient::send(const std::string& bytes) {
  for (size_t at = 0; at < bytes.size();) {
    const ssize_t sent = ::send(socket_, bytes.data() + at, bytes.size() - at, MSG_NOSIGNAL);
    if (sent <= 0) return false;
    at += static_cast<size_t>(sent);
  }
  return true;
}

// More of it; false: the end, or nothing within the bound.
bool HttpClient::receive() {
  pollfd waited{socket_, POLLIN, 0};
  const auto bound = std::chrono::duration_cast<std::chrono::milliseconds>(kReadBound);
  if (::poll(&waited, 1, static_cast<int>(bound.count())) <= 0) return false;
  char block[64 * 1024];
  const ssize_t got = ::recv(socket_, block, sizeof block, 0);
  if (got <= 0) return false;
  received_.append(block, static_cast<size_t>(got));
  return true;
}

std::string HttpClient::read_until(const std::string& end) {
  size_t searched = 0;
  while (true) {
    const size_t at = received_.find(end, searched);
    if (at != std::string::npos) {
      std::string text = received_.substr(0, at + end.size());
      received_.erase(0, text.size());
      return text;
    }
    searched = received_.size() < end.size() ? 0 : received_.size() - end.size();
    if (!receive()) return "";
  }
}

ReceivedAnswer HttpClient::read_head() {
  ReceivedAnswer answer;
  const std::string head = read_until("\r\n\r\n");
  if (!head.starts_with("HTTP/1.1 ")) return answer;
  answer.status = std::stoi(head.substr(9, 3));
  for (size_t at = head.find("\r\n") + 2; at + 2 < head.size();) {
    const size_t end = head.find("\r\n", at);
    const size_t colon = head.find(": ", at);
    if (colon < end) {
      answer.fields[lower(head.substr(at, colon - at))] = head.substr(colon + 2, end - colon - 2);
    }
    at = end + 2;
  }
  return answer;
}

ReceivedAnswer HttpClient::read_answer() {
  ReceivedAnswer answer = read_head();
  const auto length = answer.fields.find("content-length");
  if (length == answer.fields.end()) return {};
  const size_t bytes = std::stoull(length->second);
  while (received_.size() < bytes) {
    if (!receive()) return {};
  }
  answer.body = received_.substr(0, bytes);
  received_.erase(0, bytes);
  return answer;
}

bool HttpClient::is_closed_by_server() {
  const auto end = std::chrono::steady_clock::now() + kReadBound;
  while (receive()) received_.clear();
  return std::chrono::steady_clock::now() < end;
}

WebAddress parse_url(const std::string& url) {
  constexpr std::string_view kBegin = "http://127.0.0.1:";
  constexpr std::string_view kToken = "/#token=";
  const size_t token = url.find(kToken);
  if (!url.starts_with(kBegin) || token == std::string::npos) return {};
  const auto port = static_cast<uint16_t>(std::stoul(url.substr(kBegin.size())));
  return {port, url.substr(token + kToken.size())};
}

ReceivedAnswer Browser::sign_in() {
  ReceivedAnswer answer = post("/api/sign-in", "{\"token\":\"" + address_.token + "\"}");
  const std::string& cookie = answer.fields["set-cookie"];
  cookie_ = cookie.substr(0, cookie.find(';'));
  return answer;
}

ReceivedAnswer Browser::get(const std::string& path) const {
  return ask(get_with(path, cookie_line()));
}

ReceivedAnswer Browser::post(const std::string& path, const std::string& json) const {
  return ask("POST " + path + " HTTP/1.1\r\nHost: " + address_.host() + "\r\nOrigin: http://" +
             address_.host() +
             "\r\nSec-Fetch-Site: same-origin\r\nContent-Type: application/json\r\n" +
             cookie_line() + "Content-Length: " + std::to_string(json.size()) + "\r\n\r\n" + json);
}

std::string Browser::get_with(const std::string& path, const std::string& lines) const {
  return "GET " + path + " HTTP/1.1\r\nHost: " + address_.host() + "\r\n" + lines + "\r\n";
}

ReceivedAnswer Browser::ask(const std::string& request) const {
  HttpClient client(address_.port);
  return client.send(request) ? client.read_answer() : ReceivedAnswer{};
}

}  // namespace collect::web

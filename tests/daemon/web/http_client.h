// A client that speaks HTTP/1.1 as a test wants it, over a real socket of this machine. Every wait
// has a bound.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace collect::web {

struct ReceivedAnswer {
  int status = 0;                             // 0: none came
  std::map<std::string, std::string> fields;  // names in lower case
  std::string body;
};

class HttpClient {
 public:
  explicit HttpClient(uint16_t port);
  ~HttpClient();
  HttpClient(HttpClient&& other) noexcept;
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  // False: the server has closed the connection.
  bool send(const std::string& bytes);
  // The next answer; status 0 when the connection ends, or kReadBound is over, before it is whole.
  ReceivedAnswer read_answer();
  // Only its head; what follows is read by read_until().
  ReceivedAnswer read_head();
  // What comes, up to and with `end`; empty when it does not come.
  std::string read_until(const std::string& end);
  // Whether the server ends the connection within the bound. What it still sends is dropped.
  bool is_closed_by_server();
  void close();

 private:
  bool receive();

  int socket_ = -1;
  std::string received_;
};

// http://127.0.0.1:PORT/#token=TOKEN
struct WebAddress {
  uint16_t port = 0;
  std::string token;
  std::string host() const { return "127.0.0.1:" + std::to_string(port); }
};
WebAddress parse_url(const std::string& url);

// A browser that has opened the page: one connection for each request, its Host and Origin right,
// and the cookie that the token was exchanged for.
class Browser {
 public:
  explicit Browser(const std::string& url) : address_(parse_url(url)) {}

  ReceivedAnswer sign_in();  // what the token is answered with
  ReceivedAnswer get(const std::string& path) const;
  ReceivedAnswer post(const std::string& path, const std::string& json) const;

  const WebAddress& address() const { return address_; }
  const std::string& cookie() const { return cookie_; }  // "name=value"
  // A GET with these further lines, each with its end, instead of the cookie.
  std::string get_with(const std::string& path, const std::string& lines) const;
  std::string cookie_line() const { return "Cookie: " + cookie_ + "\r\n"; }

 private:
  ReceivedAnswer ask(const std::string& request) const;

  const WebAddress address_;
  std::string cookie_;
};

}  // namespace collect::web

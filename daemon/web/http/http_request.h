// Reads requests of HTTP/1.1 (RFC 9112) from bytes, one after the other. Stricter than the RFC
// where that leaves a choice, because what a proxy reads differently is not ours to guess: lines
// end in CR LF, a field has one line, a body has a Content-Length, and every length has a limit.
//
// Bytes in, values out: no socket, no clock. One thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace collect::web {

struct HttpRequest {
  std::string method;
  std::string target;  // as it came: it begins with a slash
  bool keeps_alive = true;
  std::vector<std::pair<std::string, std::string>> fields;  // names in lower case
  std::string body;

  // The first of this name, in lower case; null: there is none.
  const std::string* field(std::string_view name) const;
  std::string_view path() const;  // of the target, without a query
};

class HttpReader {
 public:
  enum class Step : uint8_t { kMore, kDone, kBad };

  // Takes the bytes of one request from the front of `bytes`. kDone: take() has it, and what is
  // left of `bytes` belongs to the next one. kBad: status() and why() say what to answer; nothing
  // more can be read from this connection.
  Step push(std::string_view& bytes);
  // After kDone; from then on the next request is read.
  HttpRequest take();

  bool is_empty() const { return head_.empty() && !is_in_body_; }  // nothing of a request came yet
  int status() const { return status_; }  // 400, 413, 414, 417, 431, 501, 505
  const std::string& why() const { return why_; }

 private:
  Step push_head(std::string_view& bytes);
  Step read_head();
  bool read_request_line(std::string_view line);
  bool read_field(std::string_view line);
  bool check_fields();
  bool fail(int status, std::string why);

  std::string head_;
  bool is_in_body_ = false;
  size_t body_bytes_ = 0;
  HttpRequest request_;
  int status_ = 0;
  std::string why_;
};

}  // namespace collect::web

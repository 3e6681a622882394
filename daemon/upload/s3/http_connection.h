// One HTTP request after another over libcurl, with a bound for each wait and a way to end one from
// outside. It knows nothing of S3.
//
// Used on one thread; cancel() may be called from any.
#pragma once

#include <memory>
#include <string>

#include "daemon/upload/s3/http_message.h"
#include "formats/core/byte_sink.h"
#include "formats/core/result.h"

namespace collect::upload {

inline constexpr size_t kMaxHeaderBytes = 64u << 10;  // of one answer; more is refused

struct HttpSettings {
  uint64_t connect_ms = 10'000;
  // Nothing sent and nothing received for so long ends a request.
  uint64_t stall_ms = 30'000;
  // The longest that a request may take; what `most_send_bytes_per_s` needs comes on top.
  uint64_t request_ms = 600'000;
  std::string ca_file{};  // PEM; empty: the system's authorities
};

class HttpConnection {
 public:
  explicit HttpConnection(HttpSettings settings);
  ~HttpConnection();
  HttpConnection(const HttpConnection&) = delete;
  HttpConnection& operator=(const HttpConnection&) = delete;

  // The server's answer with any status. With `sink`, the body goes there
  // when the status is the request's sink_status.
  // kUnavailable: no connection, it broke, or a bound was reached; kCancelled; kLimit: the answer
  // is longer than the request allows; what the sink said.
  Result<HttpAnswer> perform(const HttpRequest& request, ByteSink* sink = nullptr);

  // Ends the request that is under way, and each later one. Any thread.
  void cancel();

 private:
  struct State;
  const std::unique_ptr<State> state_;
};

}  // namespace collect::upload

// What goes to an HTTP server and what comes back, as values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/core/bytes.h"

namespace collect::upload {

struct HttpField {
  std::string name;  // in lower case
  std::string value;
};

// Names and values as they are, before any encoding.
using QueryFields = std::vector<std::pair<std::string, std::string>>;

struct HttpRequest {
  std::string method;  // GET, HEAD, PUT, POST, DELETE
  std::string url;     // encoded
  std::vector<HttpField> headers{};
  Bytes body{};                        // borrowed until the answer is there
  size_t most_answer_bytes = 0;        // of a body that goes to HttpAnswer::body
  int sink_status = 200;               // of an answer whose body goes to the sink
  uint64_t most_send_bytes_per_s = 0;  // 0: as fast as it goes
};

struct HttpAnswer {
  int status = 0;
  std::vector<HttpField> headers{};
  std::string body{};       // of an error, or of every answer where no sink was given
  uint64_t body_bytes = 0;  // that went to the sink

  const std::string* header(std::string_view name) const {
    for (const HttpField& field : headers) {
      if (field.name == name) return &field.value;
    }
    return nullptr;
  }
};

}  // namespace collect::upload

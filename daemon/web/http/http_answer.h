// Answers of HTTP/1.1 as bytes. Every answer forbids what the page does not need: other origins,
// frames, guessing of types, caches.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/core/result.h"

namespace collect::web {

// What a document may load and do, unless an answer says otherwise.
inline constexpr char kContentPolicy[] =
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

struct HttpAnswer {
  int status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body;
  std::string content_policy = kContentPolicy;
  std::vector<std::pair<std::string, std::string>> fields =
      {};                      // further ones; ours, never a peer's
  bool is_foreign = false;     // a file of another program, which brings its own policies
  bool opens_windows = false;  // which it may speak to, as to a viewer of another origin
  bool is_stream = false;      // of live events: no length, and `body` is only its beginning
  std::shared_ptr<void> held = nullptr;  // until it was sent
};

// The head that comes before the body, with the empty line. `closes`: the connection ends after it.
std::string head_of(const HttpAnswer& answer, bool closes);

// {"error": "…"}
HttpAnswer error_answer(int status, std::string_view sentence);
// With the status that fits the code.
HttpAnswer error_answer(const Error& error);
HttpAnswer json_answer(std::string json);

}  // namespace collect::web

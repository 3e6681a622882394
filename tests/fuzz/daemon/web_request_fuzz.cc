// Any bytes as requests to the live page, in two pieces and at once: the same requests or the same
// refusal, within their limits, and every check that looks at a request takes what was read.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/web/http/http_request.h"
#include "daemon/web/http/web_access.h"
#include "daemon/web/limits.h"

namespace {

using collect::web::HttpReader;
using collect::web::HttpRequest;

const collect::web::WebAccess& access() {
  static const collect::web::WebAccess made({"token", "cookie"}, "127.0.0.1", 7712);
  return made;
}

void check(const HttpRequest& request) {
  if (!request.target.starts_with('/') || request.field("host") == nullptr) std::abort();
  if (request.target.size() > collect::web::kMaxTargetBytes) std::abort();
  if (request.fields.size() > collect::web::kMaxFields) std::abort();
  if (request.body.size() > collect::web::kMaxBodyBytes) std::abort();
  const auto refused = access().refusal(request);
  const std::string* origin = request.field("origin");
  if (!refused && request.method != "GET" &&
      (origin == nullptr || origin->size() != 7 + request.field("host")->size())) {
    std::abort();
  }
  const std::string* cookie = request.field("cookie");
  if (access().is_signed_in(request) &&
      (cookie == nullptr || cookie->find("collectord_7712=cookie") == std::string::npos)) {
    std::abort();
  }
}

struct Outcome {
  std::vector<std::string> requests;
  int status = 0;
  bool operator==(const Outcome&) const = default;
};

void read(HttpReader& reader, std::string_view bytes, Outcome& outcome) {
  while (!bytes.empty()) {
    const HttpReader::Step step = reader.push(bytes);
    if (step == HttpReader::Step::kMore) return;
    if (step == HttpReader::Step::kBad) {
      outcome.status = reader.status();
      if (outcome.status < 400 || reader.why().empty()) std::abort();
      return;
    }
    const HttpRequest request = reader.take();
    check(request);
    outcome.requests.push_back(request.method + " " + request.target + "\n" + request.body);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  Outcome at_once;
  HttpReader reader;
  read(reader, input, at_once);
  Outcome in_pieces;
  HttpReader second;
  const size_t half = size / 2;
  read(second, input.substr(0, half), in_pieces);
  if (in_pieces.status == 0) read(second, input.substr(half), in_pieces);
  if (!(at_once == in_pieces)) std::abort();
  return 0;
}

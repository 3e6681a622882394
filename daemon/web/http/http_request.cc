#include "daemon/web/http/http_request.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>

#include "daemon/web/limits.h"
#include "formats/core/text/lower_case.h"

namespace collect::web {
namespace {

constexpr std::string_view kHeadEnd = "\r\n\r\n";

// RFC 9110, 5.6.2.
bool is_token_byte(char c) {
  if ((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) return true;
  return std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos && c != '\0';
}

bool is_token(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), is_token_byte);
}

bool is_visible(char c) {
  return c > ' ' && c < 0x7f;
}

std::string_view without_blanks(std::string_view text) {
  const auto is_blank = [](char c) { return c == ' ' || c == '\t'; };
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

// What may be in a head after `before`: text, blanks, and line ends of two bytes.
bool may_follow(char before, char c) {
  if (before == '\r') return c == '\n';
  if (c == '\n') return false;
  const auto byte = static_cast<unsigned char>(c);
  return c == '\r' || c == '\t' || (byte >= ' ' && byte != 0x7f);
}

}  // namespace

const std::string* HttpRequest::field(std::string_view name) const {
  const auto found = std::find_if(fields.begin(), fields.end(),
                                  [&](const auto& one) { return one.first == name; });
  return found == fields.end() ? nullptr : &found->second;
}

std::string_view HttpRequest::path() const {
  return std::string_view(target).substr(0, target.find('?'));
}

HttpReader::Step HttpReader::push(std::string_view& bytes) {
  if (status_ != 0) return Step::kBad;
  if (!is_in_body_) {
    const Step step = push_head(bytes);
    if (step != Step::kDone) return step;
    is_in_body_ = true;
  }
  const size_t wanted = std::min(body_bytes_ - request_.body.size(), bytes.size());
  request_.body += bytes.substr(0, wanted);
  bytes.remove_prefix(wanted);
  return request_.body.size() == body_bytes_ ? Step::kDone : Step::kMore;
}

HttpRequest HttpReader::take() {
  head_.clear();
  is_in_body_ = false;
  body_bytes_ = 0;
  return std::exchange(request_, {});
}

// Byte by byte, so that what can be no head is refused as soon as it comes, and not when its sender
// has kept a connection for as long as it likes.
HttpReader::Step HttpReader::push_head(std::string_view& bytes) {
  while (!bytes.empty()) {
    const char c = bytes.front();
    bytes.remove_prefix(1);
    const bool is_first = head_.empty();
    if (is_first ? !is_token_byte(c) : !may_follow(head_.back(), c)) {
      fail(400, "a byte that is not allowed in the head of a request");
      return Step::kBad;
    }
    head_ += c;
    if (head_.ends_with(kHeadEnd)) return read_head();
    if (head_.size() >= kMaxHeadBytes) {
      fail(431, fmt::format("the head has more than {} bytes", kMaxHeadBytes));
      return Step::kBad;
    }
  }
  return Step::kMore;
}

HttpReader::Step HttpReader::read_head() {
  std::string_view rest(head_);
  const auto next_line = [&rest] {
    const size_t end = rest.find("\r\n");
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(end + 2);
    return line;
  };
  if (!read_request_line(next_line())) return Step::kBad;
  for (std::string_view line = next_line(); !line.empty(); line = next_line()) {
    if (!read_field(line)) return Step::kBad;
  }
  return check_fields() ? Step::kDone : Step::kBad;
}

bool HttpReader::read_request_line(std::string_view line) {
  const size_t first = line.find(' ');
  const size_t last = line.rfind(' ');
  if (first == std::string_view::npos || first == last) {
    return fail(400, "the first line is not: METHOD PATH HTTP/1.1");
  }
  const std::string_view method = line.substr(0, first);
  const std::string_view target = line.substr(first + 1, last - first - 1);
  const std::string_view version = line.substr(last + 1);
  if (!is_token(method)) return fail(400, "the method is no token");
  if (target.size() > kMaxTargetBytes) {
    return fail(414, fmt::format("the path has more than {} bytes", kMaxTargetBytes));
  }
  if (!target.starts_with('/') || !std::all_of(target.begin(), target.end(), is_visible)) {
    return fail(400, "the path does not begin with a slash, or has blanks");
  }
  if (version != "HTTP/1.1") return fail(505, "the version is not HTTP/1.1");
  request_.method = method;
  request_.target = target;
  return true;
}

bool HttpReader::read_field(std::string_view line) {
  if (request_.fields.size() == kMaxFields) {
    return fail(431, fmt::format("more than {} header fields", kMaxFields));
  }
  const size_t colon = line.find(':');
  if (colon == std::string_view::npos || !is_token(line.substr(0, colon))) {
    return fail(400, "a header field is not: Name: value");
  }
  request_.fields.emplace_back(lower_case(line.substr(0, colon)),
                               std::string(without_blanks(line.substr(colon + 1))));
  return true;
}

bool HttpReader::check_fields() {
  const auto& fields = request_.fields;
  const auto count_of = [&fields](std::string_view name) {
    return std::count_if(fields.begin(), fields.end(),
                         [name](const auto& one) { return one.first == name; });
  };
  if (count_of("host") != 1) return fail(400, "exactly one Host is needed");
  for (const std::string_view name : {"content-length", "origin", "cookie", "content-type"}) {
    if (count_of(name) > 1) return fail(400, "more than one " + std::string(name));
  }
  if (count_of("transfer-encoding") != 0) return fail(501, "a body needs a Content-Length");
  if (count_of("expect") != 0) return fail(417, "Expect is not supported");
  if (const std::string* length = request_.field("content-length")) {
    const char* const end = length->data() + length->size();
    uint64_t bytes = 0;
    const auto read = std::from_chars(length->data(), end, bytes);
    if (length->empty() || read.ptr != end) return fail(400, "Content-Length is no number");
    if (read.ec != std::errc() || bytes > kMaxBodyBytes) {
      return fail(413, fmt::format("the body has more than {} bytes", kMaxBodyBytes));
    }
    body_bytes_ = bytes;
  }
  if (const std::string* connection = request_.field("connection")) {
    request_.keeps_alive = lower_case(*connection).find("close") == std::string::npos;
  }
  return true;
}

bool HttpReader::fail(int status, std::string why) {
  status_ = status;
  why_ = std::move(why);
  return false;
}

}  // namespace collect::web

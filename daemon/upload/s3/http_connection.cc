#include "daemon/upload/s3/http_connection.h"

#include <curl/curl.h>
#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>

#include "daemon/upload/s3/digests.h"
#include "formats/core/text/lower_case.h"

namespace collect::upload {
namespace {

constexpr int kPollMs = 1000;  // curl's own timers wake it before; cancel() does too

struct HeaderListFree {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};
using HeaderList = std::unique_ptr<curl_slist, HeaderListFree>;

// What the callbacks of one request share.
struct Exchange {
  Bytes body{};
  size_t sent = 0;
  HttpAnswer answer{};
  size_t header_bytes = 0;
  size_t most_answer_bytes = 0;
  ByteSink* sink = nullptr;
  int sink_status = 0;
  Status failure{};  // of a callback: it ended the request
};

size_t read_body(char* out, size_t size, size_t count, void* user) {
  auto& exchange = *static_cast<Exchange*>(user);
  const size_t bytes = std::min(size * count, exchange.body.size() - exchange.sent);
  if (bytes > 0) std::memcpy(out, exchange.body.data() + exchange.sent, bytes);
  exchange.sent += bytes;
  return bytes;
}

// For a connection that turns out to be closed after the first bytes were sent.
int seek_body(void* user, curl_off_t offset, int origin) {
  auto& exchange = *static_cast<Exchange*>(user);
  if (origin != SEEK_SET || offset < 0 || static_cast<uint64_t>(offset) > exchange.body.size()) {
    return CURL_SEEKFUNC_FAIL;
  }
  exchange.sent = static_cast<size_t>(offset);
  return CURL_SEEKFUNC_OK;
}

size_t take_header(char* data, size_t size, size_t count, void* user) {
  auto& exchange = *static_cast<Exchange*>(user);
  std::string_view line(data, size * count);
  exchange.header_bytes += line.size();
  if (exchange.header_bytes > kMaxHeaderBytes) {
    exchange.failure =
        Error{Code::kLimit, fmt::format("headers of more than {} bytes", kMaxHeaderBytes)};
    return 0;
  }
  if (line.starts_with("HTTP/")) {  // a status line, perhaps behind that of "100 Continue"
    exchange.answer = {};
    const size_t space = line.find(' ');
    if (space != std::string_view::npos) {
      exchange.answer.status = std::atoi(std::string(line.substr(space + 1, 3)).c_str());
    }
    return size * count;
  }
  const size_t colon = line.find(':');
  if (colon != std::string_view::npos) {
    std::string_view value = line.substr(colon + 1);
    while (!value.empty() && (value.front() == ' ' || value.front() == '\t'))
      value.remove_prefix(1);
    while (!value.empty() &&
           (value.back() == '\n' || value.back() == '\r' || value.back() == ' ')) {
      value.remove_suffix(1);
    }
    exchange.answer.headers.push_back({lower_case(line.substr(0, colon)), std::string(value)});
  }
  return size * count;
}

size_t take_body(char* data, size_t size, size_t count, void* user) {
  auto& exchange = *static_cast<Exchange*>(user);
  const size_t bytes = size * count;
  if (exchange.sink != nullptr && exchange.answer.status == exchange.sink_status) {
    exchange.failure = exchange.sink->write(bytes_of({data, bytes}));
    if (!exchange.failure.ok()) return 0;
    exchange.answer.body_bytes += bytes;
    return bytes;
  }
  if (bytes > exchange.most_answer_bytes - exchange.answer.body.size()) {
    exchange.failure = Error{
        Code::kLimit, fmt::format("an answer of more than {} bytes", exchange.most_answer_bytes)};
    return 0;
  }
  exchange.answer.body.append(data, bytes);
  return bytes;
}

// Before the first thread that uses it, and never undone.
void initialise_libcurl() {
  static std::once_flag once;
  std::call_once(once, [] { COLLECT_CHECK(curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK); });
}

}  // namespace

struct HttpConnection::State {
  HttpSettings settings;
  CURLM* multi = nullptr;
  CURL* easy = nullptr;
  std::atomic<bool> cancelled{false};

  void prepare(const HttpRequest& request, Exchange& exchange, curl_slist* headers, char* text);
  Result<CURLcode> run();
};

HttpConnection::HttpConnection(HttpSettings settings) : state_(std::make_unique<State>()) {
  initialise_libcurl();
  state_->settings = std::move(settings);
  state_->multi = curl_multi_init();
  state_->easy = curl_easy_init();
  COLLECT_CHECK(state_->multi != nullptr && state_->easy != nullptr);
}

HttpConnection::~HttpConnection() {
  curl_easy_cleanup(state_->easy);
  curl_multi_cleanup(state_->multi);
}

void HttpConnection::cancel() {
  state_->cancelled = true;
  curl_multi_wakeup(state_->multi);
}

void HttpConnection::State::prepare(const HttpRequest& request, Exchange& exchange,
                                    curl_slist* headers, char* text) {
  curl_easy_reset(easy);
  curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, text);
  curl_easy_setopt(easy, CURLOPT_URL, request.url.c_str());
  curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(easy, CURLOPT_PATH_AS_IS, 1L);
  curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers);
  curl_easy_setopt(easy, CURLOPT_USERAGENT, "collectord");
  curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(settings.connect_ms));
  curl_easy_setopt(easy, CURLOPT_LOW_SPEED_LIMIT, 1L);
  curl_easy_setopt(easy, CURLOPT_LOW_SPEED_TIME,
                   static_cast<long>(std::max<uint64_t>(1, settings.stall_ms / 1000)));
  uint64_t most_ms = settings.request_ms;
  if (request.most_send_bytes_per_s > 0) {
    curl_easy_setopt(easy, CURLOPT_MAX_SEND_SPEED_LARGE,
                     static_cast<curl_off_t>(request.most_send_bytes_per_s));
    most_ms += request.body.size() / request.most_send_bytes_per_s * 2000;
  }
  curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, static_cast<long>(most_ms));
  if (!settings.ca_file.empty()) {
    curl_easy_setopt(easy, CURLOPT_CAINFO, settings.ca_file.c_str());
  }
  if (request.method == "HEAD") {
    curl_easy_setopt(easy, CURLOPT_NOBODY, 1L);
  } else if (request.method == "PUT" || request.method == "POST") {
    // As an upload, so that the body is read without a copy, and libcurl adds no content-type.
    curl_easy_setopt(easy, CURLOPT_UPLOAD, 1L);
    curl_easy_setopt(easy, CURLOPT_INFILESIZE_LARGE, static_cast<curl_off_t>(request.body.size()));
  }
  if (request.method != "GET" && request.method != "HEAD") {
    curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, request.method.c_str());
  }
  curl_easy_setopt(easy, CURLOPT_READFUNCTION, read_body);
  curl_easy_setopt(easy, CURLOPT_READDATA, &exchange);
  curl_easy_setopt(easy, CURLOPT_SEEKFUNCTION, seek_body);
  curl_easy_setopt(easy, CURLOPT_SEEKDATA, &exchange);
  curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, take_header);
  curl_easy_setopt(easy, CURLOPT_HEADERDATA, &exchange);
  curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, take_body);
  curl_easy_setopt(easy, CURLOPT_WRITEDATA, &exchange);
}

Result<CURLcode> HttpConnection::State::run() {
  for (;;) {
    if (cancelled) return Error{Code::kCancelled, "cancelled"};
    int running = 0;
    if (const CURLMcode code = curl_multi_perform(multi, &running); code != CURLM_OK) {
      return Error{Code::kExhausted, curl_multi_strerror(code)};
    }
    int left = 0;
    while (const CURLMsg* message = curl_multi_info_read(multi, &left)) {
      if (message->msg == CURLMSG_DONE) return message->data.result;
    }
    if (const CURLMcode code = curl_multi_poll(multi, nullptr, 0, kPollMs, nullptr);
        code != CURLM_OK) {
      return Error{Code::kExhausted, curl_multi_strerror(code)};
    }
  }
}

Result<HttpAnswer> HttpConnection::perform(const HttpRequest& request, ByteSink* sink) {
  Exchange exchange;
  exchange.body = request.body;
  exchange.most_answer_bytes = request.most_answer_bytes;
  exchange.sink = sink;
  exchange.sink_status = request.sink_status;
  // Waiting for "100 Continue" costs a round trip, and servers that do not know it a second.
  HeaderList headers(curl_slist_append(nullptr, "expect:"));
  for (const HttpField& field : request.headers) {
    // libcurl leaves out a field whose value is empty, unless it is written with ';'.
    const std::string line =
        field.value.empty() ? field.name + ";" : fmt::format("{}: {}", field.name, field.value);
    curl_slist* longer = curl_slist_append(headers.get(), line.c_str());
    COLLECT_CHECK(longer != nullptr);
    (void)headers.release();
    headers.reset(longer);
  }
  char text[CURL_ERROR_SIZE] = "";
  state_->prepare(request, exchange, headers.get(), text);
  COLLECT_CHECK(curl_multi_add_handle(state_->multi, state_->easy) == CURLM_OK);
  const Result<CURLcode> done = state_->run();
  curl_multi_remove_handle(state_->multi, state_->easy);
  curl_easy_setopt(state_->easy, CURLOPT_ERRORBUFFER, nullptr);

  const std::string what =
      fmt::format("{} {}: ", request.method, request.url.substr(0, request.url.find('?')));
  if (!done.ok()) return Error{done.code(), what + done.error().message};
  if (!exchange.failure.ok()) {
    return Error{exchange.failure.code(), what + exchange.failure.error().message};
  }
  if (*done != CURLE_OK) {
    return Error{Code::kUnavailable, what + (text[0] != '\0' ? text : curl_easy_strerror(*done))};
  }
  return std::move(exchange.answer);
}

}  // namespace collect::upload

#include "daemon/warehouse/clickhouse_client.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <random>

#include "daemon/upload/s3/digests.h"
#include "daemon/upload/s3/uri.h"

namespace collect::warehouse {
namespace {

// What no row can contain but by luck: drawn again for each client.
std::string draw_boundary() {
  std::random_device random;
  std::string boundary = "collect-rows";
  for (int i = 0; i < 4; ++i) boundary += fmt::format("-{}", random());
  return boundary;
}

// ClickHouse's ErrorCodes, as far as the caller can do something about them.
constexpr std::array kMayPass = {159, 202, 209, 210, 241, 242, 252, 279, 285, 319, 394, 425, 999};
constexpr std::array kRefused = {164, 192, 193, 194, 195, 291, 497, 516};
constexpr std::array kNotThere = {36, 60, 81};

template <size_t N>
bool is_in(const std::array<int, N>& codes, int code) {
  return std::find(codes.begin(), codes.end(), code) != codes.end();
}

// N of "Code: N"; 0: there is none.
int code_in(std::string_view body) {
  constexpr std::string_view kBefore = "Code: ";
  const size_t at = body.find(kBefore);
  return at == std::string_view::npos
             ? 0
             : std::atoi(std::string(body.substr(at + kBefore.size(), 6)).c_str());
}

Code code_of(int http_status, int code) {
  if (is_in(kMayPass, code)) return Code::kUnavailable;
  if (is_in(kRefused, code)) return Code::kPermission;
  if (is_in(kNotThere, code)) return Code::kNotFound;
  if (code != 0) return Code::kInvalidArgument;
  switch (http_status) {
    case 401:
    case 403:
      return Code::kPermission;
    case 404:
      return Code::kNotFound;
    case 408:
    case 429:
    case 500:
    case 502:
    case 503:
    case 504:
      return Code::kUnavailable;
    default:
      return Code::kInvalidArgument;
  }
}

// Reads a field of TabSeparated.
std::string unescaped(std::string_view field) {
  std::string text;
  for (size_t i = 0; i < field.size(); ++i) {
    if (field[i] != '\\' || i + 1 == field.size()) {
      text += field[i];
      continue;
    }
    const char next = field[++i];
    text += next == 'n'   ? '\n'
            : next == 't' ? '\t'
            : next == 'r' ? '\r'
            : next == '0' ? '\0'
                          : next;
  }
  return text;
}

std::vector<std::vector<std::string>> rows_of(std::string_view text) {
  std::vector<std::vector<std::string>> rows;
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    std::vector<std::string>& row = rows.emplace_back();
    for (;;) {
      const size_t end = line.find('\t');
      row.push_back(unescaped(line.substr(0, end)));
      if (end == std::string_view::npos) break;
      line.remove_prefix(end + 1);
    }
  }
  return rows;
}

}  // namespace

Result<ClickHouseSettings> clickhouse_settings(std::string url, std::string database) {
  const auto wrong = [&](const char* rule) {
    return Error{Code::kInvalidArgument, fmt::format("server '{}': {}", url, rule)};
  };
  while (url.ends_with('/')) url.pop_back();
  const size_t scheme = url.find("://");
  const std::string_view kind = std::string_view(url).substr(0, std::min(scheme, url.size()));
  if (scheme == std::string::npos || (kind != "http" && kind != "https")) {
    return wrong("must begin with http:// or https://");
  }
  const std::string_view host = std::string_view(url).substr(scheme + 3);
  if (host.find('@') != std::string_view::npos) {
    url = std::string(kind) + "://…";
    return wrong("user and password come from CLICKHOUSE_USER and CLICKHOUSE_PASSWORD");
  }
  if (host.empty() || host.find_first_of("/?# ") != std::string_view::npos) {
    return wrong("a host and perhaps a port must follow, no more");
  }
  ClickHouseSettings settings;
  settings.url = std::move(url);
  settings.database = std::move(database);
  if (const char* user = std::getenv("CLICKHOUSE_USER")) settings.user = user;
  if (const char* password = std::getenv("CLICKHOUSE_PASSWORD")) settings.password = password;
  return settings;
}

Error server_error(int http_status, std::string_view body) {
  const int code = code_in(body);
  std::string text(body.substr(0, kMaxShownErrorBytes));
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  if (text.empty()) text = "no words";
  std::string message = fmt::format("the server answers {}: {}", http_status, text);
  if (is_in(kNotThere, code)) {
    message += " (deploy/clickhouse/schema.sql makes the tables, --database says where they are)";
  }
  return {code_of(http_status, code), std::move(message)};
}

std::string sql_text(std::string_view text) {
  std::string quoted = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + "'";
}

ClickHouseClient::ClickHouseClient(ClickHouseSettings settings, upload::Pauses& pauses,
                                   std::function<void(const Error&)> remark)
    : settings_(std::move(settings)),
      boundary_(draw_boundary()),
      http_(settings_.http),
      retries_(settings_.retry, pauses, std::random_device()(), std::move(remark)) {}

Result<upload::HttpAnswer> ClickHouseClient::post(const Parameters& parameters, Bytes body,
                                                  const std::string& content_type,
                                                  size_t most_answer_bytes, ByteSink* sink) {
  upload::HttpRequest request;
  request.method = "POST";
  request.url =
      fmt::format("{}/?database={}", settings_.url, upload::encode_uri(settings_.database));
  for (const auto& [name, value] : parameters) {
    request.url += fmt::format("&{}={}", name, upload::encode_uri(value));
  }
  if (!settings_.user.empty()) request.headers.push_back({"x-clickhouse-user", settings_.user});
  if (!settings_.password.empty()) {
    request.headers.push_back({"x-clickhouse-key", settings_.password});
  }
  if (!content_type.empty()) request.headers.push_back({"content-type", content_type});
  request.body = body;
  request.most_answer_bytes = std::max(most_answer_bytes, kMaxServerErrorBytes);
  auto answer = http_.perform(request, sink);
  if (!answer.ok()) return answer.error();
  if (answer->status != 200) return server_error(answer->status, answer->body);
  return answer;
}

Status ClickHouseClient::send_rows(const Parameters& parameters, Bytes body,
                                   const std::string& content_type) {
  return retries_.run([&]() -> Status {
    const auto answer = post(parameters, body, content_type, 0, nullptr);
    if (!answer.ok()) return answer.error();
    // An INSERT has no answer: what the server says behind its 200 is an error.
    return answer->body.empty() ? Status() : Status(server_error(answer->status, answer->body));
  });
}

Status ClickHouseClient::insert(std::string_view table, std::string_view columns, Bytes rows) {
  const Parameters parameters = {
      {"query", fmt::format("INSERT INTO {} ({}) FORMAT RowBinary", table, columns)}};
  return send_rows(parameters, rows, "");
}

Status ClickHouseClient::insert_selected(std::string_view table, std::string_view columns,
                                         std::string_view selection, std::string_view structure,
                                         Bytes rows) {
  const Parameters parameters = {
      {"query", fmt::format("INSERT INTO {} ({}) SELECT {} FROM sent", table, columns, selection)},
      {"sent_format", "RowBinary"},
      {"sent_structure", std::string(structure)}};
  const std::string head = fmt::format(
      "--{}\r\nContent-Disposition: form-data; name=\"sent\"; filename=\"sent\"\r\nContent-Type: "
      "application/octet-stream\r\n\r\n",
      boundary_);
  const std::string tail = fmt::format("\r\n--{}--\r\n", boundary_);
  std::vector<uint8_t> body;
  body.reserve(head.size() + rows.size() + tail.size());
  body.insert(body.end(), head.begin(), head.end());
  body.insert(body.end(), rows.begin(), rows.end());
  body.insert(body.end(), tail.begin(), tail.end());
  const std::string type = "multipart/form-data; boundary=" + boundary_;
  return send_rows(parameters, body, type);
}

Result<std::vector<std::vector<std::string>>> ClickHouseClient::ask(std::string_view sql) {
  const Parameters parameters = {{"default_format", "TabSeparated"}};
  const auto answer = retries_.run(
      [&] { return post(parameters, upload::bytes_of(sql), "", kMaxShortAnswerBytes, nullptr); });
  if (!answer.ok()) return answer.error();
  return rows_of(answer->body);
}

Status ClickHouseClient::query(std::string_view sql, std::string_view format, ByteSink& out) {
  // The server keeps the answer until it is whole: an error would come in the middle of it.
  const Parameters parameters = {{"default_format", std::string(format)},
                                 {"wait_end_of_query", "1"}};
  const auto answer = post(parameters, upload::bytes_of(sql), "", 0, &out);
  return answer.ok() ? Status() : Status(answer.error());
}

}  // namespace collect::warehouse

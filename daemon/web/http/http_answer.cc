#include "daemon/web/http/http_answer.h"

#include <fmt/core.h>

#include "formats/core/text/printable.h"

namespace collect::web {
namespace {

std::string_view reason_of(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 204:
      return "No Content";
    case 400:
      return "Bad Request";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 409:
      return "Conflict";
    case 413:
      return "Content Too Large";
    case 414:
      return "URI Too Long";
    case 415:
      return "Unsupported Media Type";
    case 417:
      return "Expectation Failed";
    case 421:
      return "Misdirected Request";
    case 431:
      return "Request Header Fields Too Large";
    case 501:
      return "Not Implemented";
    case 503:
      return "Service Unavailable";
    case 504:
      return "Gateway Timeout";
    case 505:
      return "HTTP Version Not Supported";
    default:
      return "Internal Server Error";
  }
}

int status_of(Code code) {
  switch (code) {
    case Code::kInvalidArgument:
      return 400;
    case Code::kPermission:
      return 403;
    case Code::kNotFound:
      return 404;
    case Code::kAlreadyExists:
    case Code::kUnsupported:
    case Code::kCancelled:
      return 409;
    case Code::kLimit:
    case Code::kExhausted:
    case Code::kNoSpace:
    case Code::kUnavailable:
      return 503;
    default:
      return 500;
  }
}

}  // namespace

std::string head_of(const HttpAnswer& answer, bool closes) {
  std::string head = fmt::format("HTTP/1.1 {} ", answer.status);
  head += reason_of(answer.status);
  head += "\r\nContent-Type: " + answer.content_type;
  if (!answer.is_stream) head += fmt::format("\r\nContent-Length: {}", answer.body.size());
  if (!answer.is_foreign) {
    head +=
        fmt::format("\r\nContent-Security-Policy: {}\r\nCross-Origin-Opener-Policy: same-origin",
                    answer.content_policy);
    if (answer.opens_windows) head += "-allow-popups";
  }
  head +=
      "\r\nX-Frame-Options: DENY"
      "\r\nX-Content-Type-Options: nosniff"
      "\r\nReferrer-Policy: no-referrer"
      "\r\nCross-Origin-Resource-Policy: same-origin"
      "\r\nCache-Control: no-store";
  for (const auto& [name, value] : answer.fields) head += fmt::format("\r\n{}: {}", name, value);
  head += closes ? "\r\nConnection: close\r\n\r\n" : "\r\n\r\n";
  return head;
}

HttpAnswer error_answer(int status, std::string_view sentence) {
  std::string json = "{\"error\":";
  append_json_string(json, sentence);
  HttpAnswer answer = json_answer(json + "}\n");
  answer.status = status;
  return answer;
}

HttpAnswer error_answer(const Error& error) {
  return error_answer(status_of(error.code), error.message);
}

HttpAnswer json_answer(std::string json) {
  HttpAnswer answer;
  answer.content_type = "application/json";
  answer.body = std::move(json);
  return answer;
}

}  // namespace collect::web

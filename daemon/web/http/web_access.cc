#include "daemon/web/http/web_access.h"

#include <arpa/inet.h>
#include <fmt/core.h>
#include <netinet/in.h>

#include <algorithm>
#include <utility>

#include "daemon/principal/secret.h"
#include "formats/core/text/lower_case.h"

namespace collect::web {
namespace {

// Takes the same time wherever they differ.
bool are_equal(std::string_view shown, std::string_view secret) {
  if (shown.size() != secret.size()) return false;
  unsigned difference = 0;
  for (size_t i = 0; i < secret.size(); ++i) {
    difference |= static_cast<unsigned char>(shown[i]) ^ static_cast<unsigned char>(secret[i]);
  }
  return difference == 0;
}

// "name" of "name" and "name:port"; empty when it is neither.
std::string_view name_of(std::string_view host) {
  const size_t bracket = host.find(']');
  const size_t colon = host.find(':', bracket == std::string_view::npos ? 0 : bracket);
  if (colon == std::string_view::npos) return host;
  const std::string_view port = host.substr(colon + 1);
  const bool is_port =
      !port.empty() && port.size() <= 5 &&
      std::all_of(port.begin(), port.end(), [](char c) { return c >= '0' && c <= '9'; });
  return is_port ? host.substr(0, colon) : std::string_view();
}

bool is_loopback_name(const std::string& name) {
  if (name == "localhost" || name == "[::1]") return true;
  in_addr address{};
  return ::inet_pton(AF_INET, name.c_str(), &address) == 1 && (ntohl(address.s_addr) >> 24) == 127;
}

}  // namespace

Result<WebSecrets> WebSecrets::make() {
  auto token = principal::make_secret();
  if (!token.ok()) return token.error();
  auto cookie = principal::make_secret();
  if (!cookie.ok()) return cookie.error();
  return WebSecrets{std::move(*token), std::move(*cookie)};
}

WebAccess::WebAccess(WebSecrets secrets, std::string host, uint16_t port)
    : secrets_(std::move(secrets)),
      host_(host.find(':') == std::string::npos ? host : fmt::format("[{}]", host)),
      address_(fmt::format("{}:{}", host_, port)),
      cookie_name_(fmt::format("collectord_{}", port)) {}

std::string WebAccess::url() const {
  return fmt::format("{}/#token={}", address(), secrets_.token);
}

std::optional<HttpAnswer> WebAccess::refusal(const HttpRequest& request) const {
  const std::string* host = request.field("host");
  if (host == nullptr || !is_our_host(*host)) {
    return error_answer(421, "this server is not that host: use its address, " + address_);
  }
  // Browsers say whose request it is. A link on another page may lead to the live page, and to
  // nothing else here.
  const std::string* site = request.field("sec-fetch-site");
  const bool is_foreign = site != nullptr && *site != "same-origin" && *site != "none";
  if (is_foreign && (request.method != "GET" || request.path() != "/")) {
    return error_answer(403, "a page of another origin may not ask for this");
  }
  if (request.method == "GET") return std::nullopt;
  const std::string* origin = request.field("origin");
  if (origin == nullptr || lower_case(*origin) != "http://" + lower_case(*host)) {
    return error_answer(403, "a request that changes something needs the Origin of this page");
  }
  return std::nullopt;
}

bool WebAccess::is_our_host(std::string_view host) const {
  const std::string name = lower_case(name_of(host));
  return !name.empty() && (is_loopback_name(name) || name == lower_case(host_));
}

bool WebAccess::is_signed_in(const HttpRequest& request) const {
  const std::string* cookies = request.field("cookie");
  if (cookies == nullptr) return false;
  std::string_view rest = *cookies;
  while (!rest.empty()) {
    const size_t end = rest.find(';');
    std::string_view one = rest.substr(0, end);
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
    while (one.starts_with(' ')) one.remove_prefix(1);
    const size_t equals = one.find('=');
    if (equals == std::string_view::npos || one.substr(0, equals) != cookie_name_) continue;
    if (are_equal(one.substr(equals + 1), secrets_.cookie)) return true;
  }
  return false;
}

HttpAnswer WebAccess::sign_in(std::string_view token) const {
  if (!are_equal(token, secrets_.token)) {
    return error_answer(403, "this is not the token: take the address that collectord printed");
  }
  HttpAnswer answer = json_answer("{}\n");
  answer.fields.emplace_back("Set-Cookie", fmt::format("{}={}; Path=/; HttpOnly; SameSite=Strict",
                                                       cookie_name_, secrets_.cookie));
  return answer;
}

}  // namespace collect::web

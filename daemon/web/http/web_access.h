// Which requests are the page's own: the rules of WEB.md "Who gets in" that a request itself
// shows. Whose connection it is was decided before (daemon/principal).
//
// Immutable; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "daemon/web/http/http_answer.h"
#include "daemon/web/http/http_request.h"
#include "formats/core/result.h"

namespace collect::web {

// Hex digits, made at random at each start.
struct WebSecrets {
  std::string token;   // in the address that people get
  std::string cookie;  // what a browser gets for it

  // kIo: the system has no random bytes.
  static Result<WebSecrets> make();
};

class WebAccess {
 public:
  // `host` is the bound address, without brackets.
  WebAccess(WebSecrets secrets, std::string host, uint16_t port);

  std::string address() const { return "http://" + address_; }
  // http://127.0.0.1:7712/#token=…
  std::string url() const;

  // Why nothing is served: a Host that is neither a name of this machine's loopback nor the bound
  // address, as after DNS rebinding; a POST of another origin; a request that a page of another
  // origin makes. Nothing: continue.
  std::optional<HttpAnswer> refusal(const HttpRequest& request) const;
  // Whether it has the cookie.
  bool is_signed_in(const HttpRequest& request) const;
  // 200 with the cookie, for the right token.
  HttpAnswer sign_in(std::string_view token) const;

 private:
  bool is_our_host(std::string_view host) const;

  const WebSecrets secrets_;
  const std::string host_;  // as it is in addresses: IPv6 in brackets
  const std::string address_;
  const std::string cookie_name_;  // cookies do not know ports
};

}  // namespace collect::web

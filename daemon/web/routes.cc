#include "daemon/web/routes.h"

#include <fmt/core.h>
#include <openssl/evp.h>

#include <array>
#include <utility>

#include "daemon/web/http/json_body.h"
#include "daemon/web/session_target.h"
#include "daemon/web/static_files.h"
#include "formats/core/text/base64.h"
#include "formats/html/writer.h"

namespace collect::web {
namespace {

constexpr std::string_view kSessions = "/sessions/";
constexpr std::string_view kSignIn = "/api/sign-in";
constexpr std::string_view kState = "/api/state";
constexpr std::string_view kEvents = "/api/events";
constexpr std::string_view kViewer = "/api/viewer";

// 'sha256-…', as a content security policy names an inline script or style.
std::string hash_source(std::string_view text) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest;
  unsigned digest_bytes = 0;
  COLLECT_CHECK(EVP_Digest(text.data(), text.size(), digest.data(), &digest_bytes, EVP_sha256(),
                           nullptr) == 1);
  return fmt::format("'sha256-{}'", base64(Bytes(digest.data(), digest_bytes)));
}

// A page of a session is one file that loads nothing; it asks its server alone for windows. Names
// in it are data; should one of them ever become a script, it would not run.
std::string policy_of_pages() {
  return fmt::format(
      "default-src 'none'; script-src {}; style-src {}; connect-src 'self'; base-uri 'none'; "
      "form-action 'none'; frame-ancestors 'none'",
      hash_source(html::page_script()), hash_source(html::page_style()));
}

HttpAnswer wrong_method(std::string_view allowed) {
  HttpAnswer answer = error_answer(405, fmt::format("this path takes {} only", allowed));
  answer.fields.emplace_back("Allow", allowed);
  return answer;
}

bool is_json(const HttpRequest& request) {
  const std::string* type = request.field("content-type");
  return type != nullptr &&
         std::string_view(*type).substr(0, type->find(';')) == "application/json";
}

}  // namespace

Routes::Routes(const WebAccess& access, WebContent& content, LiveFeed& feed, PageMaker& pages,
               std::optional<PageRequest::Symbols> symbols, std::string viewer)
    : access_(access),
      content_(content),
      feed_(feed),
      pages_(pages),
      symbols_(std::move(symbols)),
      viewer_(std::move(viewer)),
      page_policy_(policy_of_pages()) {}

void Routes::serve(const HttpRequest& request, PageMaker::Cancelled cancelled, AnswerTo answer) {
  if (auto refused = access_.refusal(request)) {
    answer(std::move(*refused));
    return;
  }
  const std::string_view path = request.path();
  WebActions* const actions = content_.actions();
  const bool is_post = path == kSignIn || (actions != nullptr && actions->is_action(path));
  if (request.method != (is_post ? "POST" : "GET")) {
    answer(wrong_method(is_post ? "POST" : "GET"));
  } else if (is_post && !is_json(request)) {
    answer(error_answer(415, "the Content-Type has to be application/json"));
  } else if (const StaticFile* file = static_file(path)) {
    HttpAnswer found;
    found.content_type = file->content_type;
    found.body = file->text;
    answer(std::move(found));
  } else if (path == kSignIn) {
    const auto token = word_in(request.body, "token");
    answer(token.ok() ? access_.sign_in(*token) : error_answer(token.error()));
  } else if (!access_.is_signed_in(request)) {
    answer(error_answer(403, "open the address that collectord printed, with its token"));
  } else {
    serve_private(request, std::move(cancelled), std::move(answer));
  }
}

void Routes::serve_private(const HttpRequest& request, PageMaker::Cancelled cancelled,
                           AnswerTo answer) {
  const std::string_view path = request.path();
  if (path == kState) {
    answer(json_answer(feed_.look()));
  } else if (path == kEvents) {
    HttpAnswer stream;
    stream.content_type = "text/event-stream";
    stream.is_stream = true;
    answer(std::move(stream));
  } else if (path == kViewer) {
    // Without a collector the server is there as long as its pages are.
    answer(json_answer(fmt::format("{{\"perfetto\":\"{}\",\"is_held_by_pages\":{}}}\n", viewer_,
                                   content_.actions() == nullptr)));
  } else if (path.starts_with(kSessions)) {
    serve_page(request, std::move(cancelled), std::move(answer));
  } else if (content_.actions() != nullptr && content_.actions()->is_action(path)) {
    content_.actions()->run(request, std::move(answer));
  } else {
    answer(error_answer(404, "nothing is here"));
  }
}

void Routes::serve_page(const HttpRequest& asked, PageMaker::Cancelled cancelled, AnswerTo answer) {
  PageRequest request;
  const auto name = read_session_target(asked.target, request);
  if (!name.ok()) {
    answer(error_answer(name.error()));
    return;
  }
  serve_session(*name, std::move(request), std::move(cancelled), std::move(answer));
}

void Routes::serve_session(std::string_view name, PageRequest request,
                           PageMaker::Cancelled cancelled, AnswerTo answer) {
  // A name that is known, and nothing that becomes a path here.
  auto found = content_.find_session(name);
  if (!found) {
    answer(error_answer(404, "there is no session of this name"));
    return;
  }
  request.directory = std::move(found->directory);
  request.can_change = found->can_change;
  request.symbols = symbols_;
  const PageWant want = request.want;
  pages_.make(
      std::move(request), std::move(cancelled),
      [want, policy = page_policy_, answer = std::move(answer)](Result<PageMaker::Page> page) {
        if (!page.ok()) {
          answer(error_answer(page.error()));
          return;
        }
        HttpAnswer made;
        if (want == PageWant::kPage) {
          made.content_type = "text/html; charset=utf-8";
          made.content_policy = policy;
          made.opens_windows = true;
        } else {
          made.content_type =
              want == PageWant::kPerfetto ? "application/octet-stream" : "application/json";
        }
        made.body = std::move(page->html);
        made.held = std::move(page->slot);
        answer(std::move(made));
      });
}

}  // namespace collect::web

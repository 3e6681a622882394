// What is served at which path, to whom. WEB.md "Paths" has the table.
//
// On the server's thread; answers come on any.
#pragma once

#include <optional>
#include <string>

#include "daemon/web/http/web_access.h"
#include "daemon/web/live/live_feed.h"
#include "daemon/web/page_maker.h"
#include "daemon/web/web_content.h"

namespace collect::web {

class Routes {
 public:
  // Everything that is referred to outlives it. `viewer`: the address of Perfetto's UI.
  Routes(const WebAccess& access, WebContent& content, LiveFeed& feed, PageMaker& pages,
         std::optional<PageRequest::Symbols> symbols, std::string viewer);

  // Answers exactly once. `cancelled` is set when no one waits for the answer any more.
  void serve(const HttpRequest& request, PageMaker::Cancelled cancelled, AnswerTo answer);

 private:
  void serve_private(const HttpRequest& request, PageMaker::Cancelled cancelled, AnswerTo answer);
  void serve_page(const HttpRequest& asked, PageMaker::Cancelled cancelled, AnswerTo answer);
  void serve_session(std::string_view name, PageRequest request, PageMaker::Cancelled cancelled,
                     AnswerTo answer);

  const WebAccess& access_;
  WebContent& content_;
  LiveFeed& feed_;
  PageMaker& pages_;
  const std::optional<PageRequest::Symbols> symbols_;
  const std::string viewer_;
  const std::string page_policy_;  // of the pages of sessions
};

}  // namespace collect::web

// The server of the live page: plain HTTP/1.1 on an address that only this machine can reach, for
// those users whom `local_access` admits. WEB.md has the picture.
//
// Threads: one of its own, "web", does everything but make pages. start() and stop() belong to the
// owner.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "daemon/principal/local_access.h"
#include "daemon/web/page_request.h"
#include "daemon/web/web_content.h"
#include "formats/core/result.h"

namespace collect::web {

struct WebOptions {
  std::string address;  // "127.0.0.1:7712", "localhost:0"; port 0: any free one
  principal::LocalAccess local;
  std::string page_program;                     // collect-page
  std::optional<PageRequest::Symbols> symbols;  // none: no names are looked up for pages
  // Folder of an unpacked Perfetto UI, served at another port; empty: ui.perfetto.dev is used.
  std::string viewer_folder{};
  std::function<void(const std::string& sentence)> warn{};  // of who was refused; on its thread
};

class WebServer {
 public:
  // kInvalidArgument: no address, a Unix socket, or one that other machines can reach;
  // kAlreadyExists: a process listens there; kNotFound: no viewer is in its folder; kPermission,
  // kIo.
  static Result<std::unique_ptr<WebServer>> start(const WebOptions& options,
                                                  std::unique_ptr<WebContent> content);
  ~WebServer();  // as stop()
  WebServer(const WebServer&) = delete;
  WebServer& operator=(const WebServer&) = delete;

  // What a browser opens: http://127.0.0.1:7712/#token=…
  const std::string& url() const;
  // A page is open somewhere, or is being made. Any thread.
  bool is_in_use() const;
  // Ends every connection, and pages that are being made. Answers that the collector gives later go
  // nowhere. Calling it again does nothing.
  void stop();

 private:
  struct State;
  explicit WebServer(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace collect::web

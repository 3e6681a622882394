#include "daemon/ctl/look/served_page.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <ostream>
#include <string_view>
#include <thread>
#include <utility>

#include "daemon/ctl/look/browser.h"
#include "daemon/symbolize/child_program.h"
#include "daemon/symbolize/symbolizer.h"
#include "daemon/web/web_server.h"

namespace collect::ctl {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kLook{200};  // whether pages are open

// As it is in the path of the page: "session_…/pid_N" where it has such a directory.
std::string name_of(const std::string& directory) {
  const std::filesystem::path path(directory);
  std::string name = path.filename().string();
  if (name.starts_with("pid_")) name = path.parent_path().filename().string() + "/" + name;
  constexpr std::string_view kPlain =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._/";
  std::replace_if(
      name.begin(), name.end(), [&](char c) { return kPlain.find(c) == std::string_view::npos; },
      '_');
  return name;
}

class OneSession final : public web::WebContent {
 public:
  explicit OneSession(const ServedPage& page) : name_(name_of(page.directory)) {
    request_.directory = page.directory;
    request_.can_change = page.can_change;
  }

  std::optional<web::PageRequest> find_session(std::string_view name) override {
    return name == name_ ? std::optional(request_) : std::nullopt;
  }
  std::string look() override { return nlohmann::json{{"version", 1}, {"opens", name_}}.dump(); }

 private:
  const std::string name_;
  web::PageRequest request_;
};

Result<std::unique_ptr<web::WebServer>> start_server(const ServedPage& page) {
  web::WebOptions options;
  options.address = "127.0.0.1:0";
  options.page_program = symbolize::own_program("collect-page");
  if (::access(options.page_program.c_str(), X_OK) != 0) {
    return errno_error(errno, options.page_program);
  }
  symbolize::SymbolizerOptions symbols;
  options.symbols = {std::move(symbols.directories), std::move(symbols.roots)};
  return web::WebServer::start(options, std::make_unique<OneSession>(page));
}

}  // namespace

Status serve_page(ServedPage page, std::ostream& out, std::ostream& err) {
  auto server = start_server(page);
  if (!server.ok()) return server.error();
  std::mutex mutex;  // of `server`, between this thread and the one that waits for signals
  const storage::EndingAction end([&] {
    mutex.lock();  // for good
    server->reset();
    page.made = {};
    std::_Exit(0);
  });
  const std::string url = (*server)->url();
  out << url << "\n" << std::flush;
  err << "collectctl: served until Ctrl-C, or until its last page is closed for a minute\n";
  if (!page.no_browser) (void)show_in_browser(url, err);
  std::optional<Clock::time_point> used;  // nothing before the first page
  for (;;) {
    std::this_thread::sleep_for(kLook);
    const std::lock_guard lock(mutex);
    if ((*server)->is_in_use()) {
      used = Clock::now();
    } else if (used && Clock::now() - *used >= page.closed_after) {
      return {};
    }
  }
}

}  // namespace collect::ctl

#include "daemon/ctl/look/browser.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <unistd.h>

#include <cstdlib>
#include <ostream>

#include "formats/core/result.h"

namespace collect::ctl {
namespace {

std::string desktop_variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// Empty: there is none, or no display for it.
std::string browser_program() {
  const std::string chosen = desktop_variable("BROWSER");
  if (!chosen.empty()) return chosen.substr(0, chosen.find(':'));
#if defined(__APPLE__)
  return "open";
#else
  if (desktop_variable("DISPLAY").empty() && desktop_variable("WAYLAND_DISPLAY").empty()) return "";
  return "xdg-open";
#endif
}

// In a session of its own, so that Ctrl-C does not end it, and without our streams.
Status start_browser(const std::string& program, const std::string& address) {
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  ::posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  sigset_t none;
  sigset_t all;
  ::sigemptyset(&none);
  ::sigfillset(&all);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  ::posix_spawnattr_setsigdefault(&attributes, &all);
  ::posix_spawnattr_setflags(&attributes,
                             POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  std::string name = program;
  std::string page = address;
  char* arguments[] = {name.data(), page.data(), nullptr};
  pid_t pid = 0;
  const int error = ::posix_spawnp(&pid, name.c_str(), &actions, &attributes, arguments, environ);
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return errno_error(error, program);
  return {};
}

}  // namespace

bool show_in_browser(const std::string& address, std::ostream& err) {
  const std::string browser = browser_program();
  if (browser.empty()) {
    err << "collectctl: there is no display: open the page in a browser\n";
    return false;
  }
  const Status started = start_browser(browser, address);
  if (!started.ok()) {
    err << "collectctl: " << to_string(started.error()) << ": open the page in a browser\n";
  }
  return started.ok();
}

}  // namespace collect::ctl

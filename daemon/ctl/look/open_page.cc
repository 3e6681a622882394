#include "daemon/ctl/look/open_page.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <signal.h>
#include <spawn.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <utility>
#include <vector>

#include "formats/core/crc32.h"
#include "formats/core/text/printable.h"
#include "storage/read/session_files.h"

namespace collect::ctl {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxNameBytes = 200;  // of a page, before its number; file systems take 255

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

Result<fs::path> page_directory() {
  fs::path cache = variable("XDG_CACHE_HOME");  // a relative one is to be ignored
  if (!cache.is_absolute() && !variable("HOME").empty()) cache = variable("HOME") + "/.cache";
  if (!cache.is_absolute()) {
    return Error{Code::kNotFound, "HOME is not set: name a file for the page with -o"};
  }
  fs::path pages = cache / "collectord";
  std::error_code error;
  fs::create_directories(pages, error);
  if (error) return Error{Code::kIo, fmt::format("{}: {}", pages.string(), error.message())};
  fs::permissions(pages, fs::perms::owner_all, error);
  return pages;
}

// One for each capture, or for these several: a page that is made again replaces the one before.
std::string page_name(const std::vector<std::string>& captures) {
  const fs::path capture = captures.front();
  const fs::path above = capture.parent_path().filename();
  std::string name = capture.filename().string();
  if (name.starts_with("pid_")) name = fmt::format("{}-{}", above.string(), name);
  std::replace_if(
      name.begin(), name.end(),
      [](char c) { return std::string_view("/%?#\\ ").find(c) != std::string_view::npos; }, '_');
  uint32_t paths = 0;
  for (const std::string& path : captures) {
    paths = crc32c(Bytes(reinterpret_cast<const uint8_t*>(path.c_str()), path.size() + 1), paths);
  }
  std::ostringstream text;
  text << name.substr(0, kMaxNameBytes) << "-" << std::hex << paths << ".html";
  return text.str();
}

// So that there is room for another.
void remove_old_pages(const fs::path& directory) {
  std::error_code error;
  std::vector<std::pair<fs::file_time_type, fs::path>> pages;
  for (fs::directory_iterator at(directory, error), end; !error && at != end; at.increment(error)) {
    if (at->path().extension() != ".html") continue;
    pages.emplace_back(at->last_write_time(error), at->path());
  }
  std::sort(pages.rbegin(), pages.rend());
  for (size_t i = kKeptPages - 1; i < pages.size(); ++i) fs::remove(pages[i].second, error);
}

// Empty: there is none, or no display for it.
std::string browser_program() {
  const std::string chosen = variable("BROWSER");
  if (!chosen.empty()) return chosen.substr(0, chosen.find(':'));
#if defined(__APPLE__)
  return "open";
#else
  if (variable("DISPLAY").empty() && variable("WAYLAND_DISPLAY").empty()) return "";
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

std::string file_address(const std::string& path) {
  constexpr std::string_view kPlain =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~/";
  constexpr char kHex[] = "0123456789ABCDEF";
  std::string address = "file://";
  for (const char c : path) {
    if (kPlain.find(c) != std::string_view::npos) {
      address += c;
    } else {
      const auto byte = static_cast<uint8_t>(c);
      address += {'%', kHex[byte >> 4], kHex[byte & 15]};
    }
  }
  return address;
}

int open_page(const OpenOptions& options, std::ostream& out, std::ostream& err) {
  ConvertOptions page = options.page;
  page.to = exports::Target::kHtml;
  page.look_names_up = true;
  std::error_code ignored;
  for (std::string& input : page.inputs) {
    if (fs::is_regular_file(input, ignored)) {  // which may have to be unpacked: once is enough
      input = fs::absolute(input, ignored).lexically_normal().string();
      continue;
    }
    const auto trace = read::open_trace(input);
    if (!trace.ok()) {
      err << "collectctl: " << to_string(trace.error()) << "\n";
      return 2;
    }
    if (!trace->choice.empty()) err << "collectctl: " << printable_sentence(trace->choice) << "\n";
    input = fs::absolute(trace->path, ignored).lexically_normal().string();
  }
  if (page.output.empty()) {
    const auto directory = page_directory();
    if (!directory.ok()) {
      err << "collectctl: " << to_string(directory.error()) << "\n";
      return 2;
    }
    page.output = *directory / page_name(page.inputs);
    fs::remove(page.output, ignored);  // so that one that is there afterwards is this one
    remove_old_pages(*directory);
  }
  std::ostringstream sizes;  // of the page: no one asked
  const int converted = convert(page, sizes, err);
  if (converted == 2 || !fs::exists(page.output, ignored)) return converted;
  const std::string address = file_address(fs::absolute(page.output, ignored).string());
  out << address << "\n";
  out.flush();
  if (options.no_browser) return 0;
  const std::string browser = browser_program();
  if (browser.empty()) {
    err << "collectctl: there is no display: open the page in a browser\n";
    return 1;
  }
  if (const Status started = start_browser(browser, address); !started.ok()) {
    err << "collectctl: " << to_string(started.error()) << ": open the page in a browser\n";
    return 1;
  }
  return 0;
}

}  // namespace collect::ctl

#include "daemon/ctl/command_line/shared_options.h"

#include <fmt/core.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cctype>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <string_view>
#include <utility>

#include "daemon/ctl/command_line/newest_capture.h"
#include "daemon/ctl/control/connection/collector_choice.h"
#include "daemon/symbolize/child_program.h"
#include "storage/fs/leftovers.h"
#include "storage/model/thread_pattern.h"

namespace collect::ctl {
namespace {

constexpr char kFromHelp[] =
    "Only from this time on: 1ms or 2.5s since the start, a time of day such as 14:03:05.250, or a "
    "number of ns as dump --json prints them (of several captures: since the epoch)";
constexpr char kUntilHelp[] = "Only up to this time, the same";

std::string check_thread(std::string& word) {
  const auto pattern = storage::ThreadPattern::parse(word);
  return pattern.ok() ? std::string() : pattern.error().message;
}

std::string check_moment(std::string& word) {
  const auto moment = select::parse_moment(word, {});
  const bool is_one = moment.ok() || moment.code() == Code::kNotFound;
  return is_one ? std::string() : moment.error().message;
}

std::string check_store_url(std::string& url) {
  const auto parsed = upload::parse_store_url(url);
  return parsed.ok() ? std::string() : parsed.error().message;
}

// "For viewers: only …"
std::string help_when(const std::string& when, const std::string& text) {
  if (when.empty()) return text;
  return fmt::format("{}: {}{}", when, static_cast<char>(std::tolower(text[0])), text.substr(1));
}

std::array<Argument, 2> add_window_when(const Command& command, select::WindowWords& words,
                                        const std::string& when) {
  return {
      command.option("--from", "TIME", &words.from, help_when(when, kFromHelp), check_moment),
      command.option("--until", "TIME", &words.until, help_when(when, kUntilHelp), check_moment)};
}

}  // namespace

Argument add_thread(const Command& command, std::vector<std::string>& threads) {
  return command.option("--thread", "THREAD", threads, kThreadHelp, check_thread);
}

Argument add_function(const Command& command, std::vector<std::string>& functions) {
  return command.option("--function", "FUNCTION", functions, kFunctionHelp);
}

std::array<Argument, 2> add_window(const Command& command, select::WindowWords& when) {
  return add_window_when(command, when, "");
}

std::array<Argument, 2> add_follow_times(const Command& command, FollowedCalls& followed) {
  followed.interval = std::chrono::seconds(1);
  return {command.duration("--interval", followed.interval,
                           "Time between two updates (default 1s, at least 100ms)"),
          command.duration(
              "--duration", followed.duration,
              "End after this time, for example 30s (default: when the session is sealed)")};
}

void add_selection(const Command& command, exports::ExportSelection& selection,
                   const std::string& when) {
  add_window_when(command, selection.when, when);
  command.option("--thread", "THREAD", selection.threads, help_when(when, kThreadHelp),
                 check_thread);
  command.option("--function", "FUNCTION", selection.functions, help_when(when, kFunctionHelp));
}

void add_color(const Command& command, ColorChoice& color) {
  command.choice<ColorChoice>(
      "--color", "WHEN", color,
      {{"auto", ColorChoice::kAuto}, {"always", ColorChoice::kOn}, {"never", ColorChoice::kOff}},
      "When to colour: auto, on a terminal unless NO_COLOR or TERM=dumb says otherwise (the "
      "default), always or never");
}

Argument add_store(const Command& command, std::string& url, const char* help) {
  return command.option("--store", "URL", &url, help, check_store_url);
}

bool has_capture(std::string& path, bool json) {
  if (!path.empty()) return true;
  Result<std::string> newest = newest_capture(std::cerr);
  if (newest.ok()) {
    path = std::move(*newest);
    return true;
  }
  Answer{json, std::cout, std::cerr}.refuse_briefly(newest.error(), kExitUsage);
  return false;
}

bool has_capture(std::vector<std::string>& paths, bool json) {
  if (!paths.empty()) return true;
  paths.emplace_back();
  return has_capture(paths.front(), json);
}

pid_t process_in(const std::string& word) {
  pid_t pid = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), pid);
  return error == std::errc() && end == word.data() + word.size() && pid > 0 ? pid : 0;
}

bool is_path(const std::string& word) {
  std::error_code ignored;
  return word.starts_with("/") || word.starts_with("./") || word.starts_with("../") ||
         std::filesystem::is_directory(word, ignored);
}

bool is_terminal(int fd) {
  const char* const term = std::getenv("TERM");
  return ::isatty(fd) == 1 && (term == nullptr || std::string_view(term) != "dumb");
}

size_t terminal_columns() {
  winsize size{};
  if (::isatty(STDOUT_FILENO) != 1 || ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0) return 0;
  return size.ws_col;
}

bool shows_color(ColorChoice choice, bool json) {
  return !json && wants_color(choice, ::isatty(STDOUT_FILENO) == 1, std::getenv("NO_COLOR"),
                              std::getenv("TERM"));
}

Answer answer_of(const Invocation& invocation) {
  return {invocation.json, std::cout, std::cerr};
}

Online online(const Invocation& invocation) {
  ControlTarget control = invocation.control;
  add_from_environment(control);
  choose_collector(control, std::cerr);
  return {control,   invocation.json, is_terminal(STDOUT_FILENO),
          std::cout, std::cerr,       terminal_columns()};
}

void take_default_signals() {
  std::signal(SIGPIPE, SIG_IGN);
  storage::remove_leftovers_on_signals();
}

int become_program(const std::string& name, std::vector<std::string> words) {
  words.insert(words.begin(), symbolize::own_program(name));
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  std::cout.flush();
  ::execv(arguments.front(), arguments.data());
  std::cerr
      << "collectctl: " << words.front() << ": " << std::strerror(errno)
      << "; it is a part of the installation, and of a whole build (cmake --build DIRECTORY)\n";
  return kExitUsage;
}

int become_store_program(upload::StoreRequest request, bool json) {
  request.json = json;
  request.progress = is_terminal(STDERR_FILENO);
  request.columns = terminal_columns();
  return become_program("collect-store", request.to_arguments());
}

}  // namespace collect::ctl

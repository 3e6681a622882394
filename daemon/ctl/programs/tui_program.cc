// collect-tui: a report in a terminal, with keys. collectctl becomes it for `report --tui`, so that
// no other command loads ncurses.
#include <csignal>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "daemon/ctl/captures/capture_format.h"
#include "daemon/ctl/convert/made_session.h"
#include "daemon/ctl/report/tui_request.h"
#include "daemon/ctl/terminal/terminal.h"
#include "daemon/ctl/tui/curses_terminal.h"
#include "daemon/ctl/tui/view.h"
#include "daemon/machine/machine_limits.h"
#include "formats/core/threads.h"
#include "storage/fs/leftovers.h"
#include "storage/fs/standard_streams.h"

namespace collect::ctl {
namespace {

// A capture that is no session is made one as long as it is shown.
Result<std::optional<MadeSession>> session_of(const std::string& path) {
  const auto trace = read::open_trace(path);
  const bool is_other = trace.ok() && trace->kind == read::TraceKind::kUnknownFile &&
                        capture_format_of(trace->file()) != nullptr;
  if (!is_other) return std::optional<MadeSession>();
  ConvertOptions capture;
  capture.inputs = {path};
  capture.progress = true;
  auto made = make_session(capture, std::cerr);
  if (!made.ok()) return made.error();
  return std::optional(std::move(*made));
}

int show(ReportOptions options) {
  const Answer answer{false, std::cout, std::cerr};
  options.progress = true;
  tui::CursesTerminal* shown = nullptr;
  const auto busy = [&shown](const std::string& what) {
    if (shown != nullptr) shown->show_busy(what);
  };
  const auto session = session_of(options.path);
  if (!session.ok()) return answer.refuse_briefly(session.error(), 2);
  std::string shown_path;
  if (session->has_value()) shown_path = std::exchange(options.path, (*session)->directory);
  auto capture = std::make_unique<tui::Capture>(busy, shown_path);
  if (const int code = capture->open(options, answer); code != 0) return code;
  const int code = capture->reported().has_unreadable_threads() ? 1 : 0;
  tui::View view(std::move(capture));
  auto terminal = tui::CursesTerminal::open(options.color);
  if (!terminal.ok()) return answer.refuse_briefly(terminal.error(), 2);
  shown = terminal->get();
  for (;;) {
    (*terminal)->show(view.lines((*terminal)->columns(), (*terminal)->rows()));
    tui::KeyPress key;
    const auto got = (*terminal)->wait(key);
    if (got == tui::CursesTerminal::Wait::kClosed) return 1;
    if (got == tui::CursesTerminal::Wait::kKey && !view.press(key)) return code;
  }
}

}  // namespace
}  // namespace collect::ctl

int main(int argc, char** argv) {
  using namespace collect;
  fit_into_address_space();
  storage::hold_standard_streams();
  std::signal(SIGPIPE, SIG_IGN);
  storage::remove_leftovers_on_signals();
  int code = 0;
  ctl::PrintableStream err(std::cerr);
  const Status done = contain([&] {
    const auto options = ctl::parse_tui_arguments(std::vector<std::string>(argv + 1, argv + argc));
    if (!options.ok()) {
      std::cerr << ctl::kTuiProgram << ": " << options.error().message << "\n";
      code = 2;
      return;
    }
    code = ctl::show(*options);
  });
  if (done.ok()) return code;
  std::cerr << ctl::kTuiProgram << ": " << to_string(done.error()) << "\n";
  return 1;
}

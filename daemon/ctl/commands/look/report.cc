// collectctl report
#include "daemon/ctl/report/report.h"

#include <unistd.h>

#include <iostream>

#include "daemon/ctl/command_line/shared_options.h"
#include "daemon/ctl/commands/commands.h"
#include "daemon/ctl/report/tui_request.h"
#include "daemon/symbolize/child_program.h"

namespace collect::ctl {
namespace {

void add_rows(const Command& command, ReportOptions& report) {
  command.choice<ReportBy>("--by", "KIND", report.by,
                           {{"function", ReportBy::kFunction},
                            {"thread", ReportBy::kThread},
                            {"module", ReportBy::kModule},
                            {"caller", ReportBy::kCaller}},
                           "What a row is (default function)");
  command.option("--graph", "FUNCTION", &report.graph,
                 "Instead: on which paths this function was called, and what it called");
  command.flag("--waits", report.waits,
               "Instead: on which paths threads were off the processor, the longest first");
  command.flag("--locks", report.locks,
               "Instead: which locks functions waited for, and which threads had them");
  command.flag("--samples", report.samples,
               "Instead: in which functions threads ran, and in which calls, by the samples of "
               "run --sample");
  command.option("--diff", "PATH", &report.other, "What is different in this other capture");
  add_window(command, report.when);
  command.flag("--percentiles", report.percentiles,
               "With columns of how long the calls took: p50, p95, p99");
  command.flag("--lines", report.lines,
               "With the file and line where each function begins, where they are known");
  command.choice<ReportSort>("--sort", "COLUMN", report.sort,
                             {{"total", ReportSort::kTotal},
                              {"self", ReportSort::kSelf},
                              {"cpu", ReportSort::kCpu},
                              {"calls", ReportSort::kCalls},
                              {"name", ReportSort::kName}},
                             "Column to sort by (default cpu where it is known, else total)");
  command.flag("--wall", report.wall, "Without time on the processor, where that is known");
  command.number("--limit", "N", &report.limit, "Print at most this many rows");
  add_thread(command, report.threads);
}

// What goes with --tui: threads, times and the order. 0, or the exit code.
int check_tui(const ReportOptions& report, const Answer& answer) {
  const auto refuse = [&](std::string sentence) {
    return answer.refuse_briefly({Code::kInvalidArgument, std::move(sentence)}, kExitUsage);
  };
  if (answer.json || report.by != ReportBy::kFunction || !report.graph.empty() ||
      !report.other.empty() || report.waits || report.locks || report.samples ||
      report.percentiles || report.lines || report.limit != ReportOptions().limit) {
    return refuse("--tui goes with --sort, --wall, --thread, --from, --until and --color alone");
  }
  if (::isatty(STDIN_FILENO) != 1 || ::isatty(STDOUT_FILENO) != 1) {
    return refuse(
        "--tui needs a terminal as standard input and output: without it, report prints text "
        "(--percentiles, --graph FUNCTION), or with --json one document");
  }
  if (::access(symbolize::own_program(kTuiProgram).c_str(), X_OK) != 0) {
    return refuse(
        "--tui is not in this build: install ncurses (apt-get install libncurses-dev), then "
        "configure and build again");
  }
  return 0;
}

}  // namespace

void add_report(const CommandGroup& group) {
  const Command command =
      group.add("report", "Show calls, total and self time of each function, without stalls");
  struct Options {
    ReportOptions report;
    ColorChoice color = ColorChoice::kAuto;
    bool tui = false;
  };
  const auto options = std::make_shared<Options>();
  add_capture(command, options->report.path);
  command.json();
  add_color(command, options->color);
  add_rows(command, options->report);
  command.flag(
      "--tui", options->tui,
      "Show it in the terminal, with keys: functions, callers and callees, call graph, slowest "
      "calls; ? lists the keys");
  command.footer(
      "Percent are of the time that all threads ran together.\n"
      "--tui takes captures of every format, the rest sessions of ATF.\n"
      "Example: collectctl report OLD --diff NEW --sort self --limit 20");
  command.run([options](const Invocation& invocation) {
    ReportOptions& wanted = options->report;
    if (options->tui) {
      const int code = check_tui(wanted, answer_of(invocation));
      if (code != 0) return code;
    }
    if (!has_capture(wanted.path, invocation.json)) return kExitUsage;
    wanted.json = invocation.json;
    wanted.color = shows_color(options->color, invocation.json);
    if (options->tui) return become_program(kTuiProgram, tui_arguments(wanted));
    wanted.columns = terminal_columns();
    wanted.progress = is_terminal(STDERR_FILENO);
    return report(wanted, std::cout, std::cerr);
  });
}

}  // namespace collect::ctl
